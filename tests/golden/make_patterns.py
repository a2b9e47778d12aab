"""Makes patterns.json: expressions of tokenizers, texts, and the ids that Hugging Face's library, whose engine is Oniguruma, gives them.

    pip install tokenizers==0.23.3
    python make_patterns.py > patterns.json

The vocabulary has two tokens for each character, one that begins a word and one that continues it, so that the ids show where an
expression cuts; they are written as the lengths of the words in characters. REAL are those of published tokenizers, one after another as in their `tokenizer.json`; CASES are written for each construct
of Oniguruma's syntax, and more are drawn at random by a fixed seed. An expression that the library refuses has its message in place of words.
"""
import json
import random

import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

assert tokenizers.__version__ == "0.23.3"

LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
NO_HAN = r"&&[^\p{Han}]]"
UPPER_NO_HAN, LOWER_NO_HAN = UPPER[:-1] + NO_HAN, LOWER[:-1] + NO_HAN
CASED = r"[^\r\n\p{L}\p{N}]?%s*%s+%s|[^\r\n\p{L}\p{N}]?%s+%s*%s"
O200K_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CJK = "[一-龥ࠀ-一가-퟿]+"


def cased(upper, lower, end=LETTERS + "?"):
    return CASED % (upper, lower, end, upper, lower, end)


O200K = "|".join([cased(UPPER, LOWER), r"\p{N}{1,3}", O200K_SIGNS, TAIL])
REAL = {
    "gpt2, roberta, phi-2, opt, mpt, olmo, jais, whisper, modern-bert": [GPT2],
    "llama-3, dbrx, glm-4, olmo-2, smollm3, lfm2": ["|".join([LETTERS, WORD, r"\p{N}{1,3}", SIGNS, TAIL])],
    "qwen2, qwen3, stablelm-2, hunyuan, seed-oss": ["|".join([LETTERS, WORD, r"\p{N}", SIGNS, TAIL])],
    "qwen3.5": ["|".join([LETTERS, r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", r"\p{N}", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", TAIL])],
    "cl100k": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "cl100k of tiktoken 0.8": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ],
    "ling, bailing-moe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "gpt-4o, gpt-oss, llama-4, phi-4-mini": [O200K],
    "mistral-nemo (tekken), apertus": ["|".join([cased(UPPER, LOWER, ""), r"\p{N}", O200K_SIGNS, TAIL])],
    "kimi-k2": ["|".join([r"[\p{Han}]+", cased(UPPER_NO_HAN, LOWER_NO_HAN), r"\p{N}{1,3}", SIGNS, TAIL])],
    "deepseek-llm": [
        "[\r\n]", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏]+",
        r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", CJK, r"\p{N}",
    ],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3, deepseek-r1": [
        r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + TAIL,
    ],
    "falcon": ["[0-9][0-9][0-9]"],
    "bloom": [r" ?[^(\s|[.,!?…。，、।۔،])]+"],
    "poro, viking": [r" ?[^(\s|.,!?…。，、।۔،)]+", r"\d", GPT2],
    "clip": [r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"],
    "starcoder, smollm, command-r, granite, exaone, minerva": [r"\p{N}", GPT2],
    "seed-coder": [
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{L}{1}|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + TAIL
    ],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "trinity": [r"\d{1,3}(?=(?:\d{3})*\b)", "|".join([cased(UPPER, LOWER), SIGNS, TAIL])],
    "hunyuan-dense": [
        r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + TAIL,
    ],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", O200K],
    "chameleon": [
        r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]", GPT2,
    ],
    "minimax, dots": ["|".join([LETTERS, WORD, r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", TAIL])],
    "nemotron": ["|".join([cased(UPPER, LOWER, ""), r"\p{N}", O200K_SIGNS, TAIL])],
    "grok-2": ["|".join([LETTERS, WORD, r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", TAIL])],
    "codegen of XLNet kind": [r"[^\S ]|(?<=\S) (?=\S)"],
    "sarvam, plamo": [r"\s+(?=\S)|(?<=\s)(?=\p{L})"],
}
# A construct to a line; the word before it is the refusal that is expected of us, where Oniguruma takes it.
CASES = {
    "intervals": [
        r"\p{N}{1,3}+", r"a{2}?", r"a{2}+", r"a{,2}", r"a{2,}", r"a{2,3}?", r"a{3,2}", r"a{,}", "a{", "a{1", "{", r"[ab]{1,2}{2}", r"\d{2}{2}",
        r"a{0}b", r"a{1}", r"(?:ab){2,}+", r"a{1,2}?+", r"a{2,2}?", r"\d{1,2}{1,2}", r"a{ 1}", r"(?:\p{L}{1,2}+)+", r"\s{2,}+\S", r"a{1,3}+b",
    ],
    "signs": [
        "a*+", "a++b", "a?+a", "a??", "a*?b", "a+?", "(?:a*)*", "(?:a+)?", "(?:a?)+?", "a**", "a+*", "a?*", "a+?*", "a??+", "(?:a|b)*+c", "*a", "+",
        "a|*", "^*", r"(?=a)*", r"\b+", "(?:^)*a", "(?:^|a)*", "()*", "(?:)*a", "x*", "", "a||b", "(?:|a)+", "(?:a|)*b",
    ],
    "anchors": [
        "^", "$", r"\A", r"\z", r"\Z", r"^[ \t]*\w", r"^\s*\S+", r"\s+$", r"\s++$", r"[ \t]+$|\n", "(?m)^.", "(?m:$)", r"\A\w+", r"\w+\z", r"\w+\Z",
        r"\n^", r"^\n", "(?:^|,)a", "a(?:$|b)", "^a|b$", r"(?<=^)a", r"(?<!^)a", r"(?<=^\s*)\S", r"\Ga", r"(?<=\n)^", r"^$", r"(?=^)", r"\G",
    ],
    "boundaries": [r"\b", r"\B", r"\b\w+\b", r"\w+", r"\W+", r"\bs", r"s\B", r"\w\b", r"[\w]+", r"[^\w]+", r"\p{Word}+", r"[[:word:]]+", r"\P{Word}+"],
    "classes": [
        "[a--c]", "[+--]", "[--/]", "[a||b]", "[a~~b]", "[&]", "[&&]", "[a&&&b]", "[]a]", "[^]a]", "[]", "[^]", "[a-c&&b-d]", "[a-z&&[^aeiou]]", "[^a-z&&[b]]",
        "[a&&]", "[&&a]", "[a[bc]]", "[a[^b]]", "[^a[^b]]", "[[a-c]&&[^b]]", r"[\]a]", r"[a\-c]", "[a-]", "[-a]", "[a-c-e]", "[a-c-]", r"[\d-]", r"[\w-x]", "[c-a]",
        "[a^]", "[^^]", r"[\b]", r"[\n-\r]", "[ -~]", r"[#\s]", "[.*+?(){}|$]", r"[\p{L}\p{N}]+", r"[^\p{L}\p{N}]+", r"[\P{L}]+", r"[\p{^L}]+", r"[\h]+", r"[\H]+",
        r"[\S]+", r"[^\S]+", r"[\D\n]+", "[a-[b]]", "[a", "a]", "]", r"[a\]", r"[\x41-\x5a]+", r"[\x{e9}\u00df]", r"[\101]", r"[\R]", r"[a-\d]",
    ],
    "brackets": [
        "[[:%s:]]+" % name for name in "alpha digit alnum upper lower punct space blank cntrl graph print xdigit word ascii ^alpha ^space".split()
    ] + ["[[:foo:]]", "[[:alpha]]", "[:alpha:]", "[^[:alpha:]]+", "[[:alpha:]&&[^a-z]]"],
    "look-around": [
        "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(?<=\d)(?=(?:\d{3})+\b)", r"(?<=a|bc)\S", r"(?<!a|bc)\S", "(?<=a+)b", r"(?<!\s+)\S",
        r"(?<=a{1,2})b", r"(?<=(?:ab|c)*)\d", "(?<=a(?=b))b", "(?<!a(?!b))b", "(?<!(a))b", "(?<=(a))b", r"(?<=\Aa)b", r"(?<=a$)", r"(?<=\z)", r"(?=(?<=a)b)", r"(?!\s)\S",
        r"(?<=[^\w])\w", r"\s+(?!\S)", r"(?<=\b)\w", r"(?<=\p{Lu})(?=\p{Lu}\p{Ll})", r"(?<=\p{Ll})(?=\p{Lu})", r"(?<=\R)\S", r"(?=[^\s]{3})",
    ],
    "groups": [
        "(?>a|ab)c", "(?>a*)b", r"(a)\1", r"(?<x>a)\k<x>", r"(?<x>a)(b)\k<x>", r"(?<x>a)(b)\1", r"(a|ab)(?=\1)", r"\1", r"(a)\2", r"\k<x>", "(?P<x>a)", "(?'x'a)b",
        "(?:a", "a)", "(", "(?#x)a", "a(?#(b)+", "(?#", "(?", "(?z)", "(?<1>a)",
    ],
    "options": [
        "(?i)abc", "(?i:AB)c", "a(?i)b|c", "(a(?i)b|c)B", "(?i)a(?-i)b", "(?i-m:ab)", "(?-i)a", "(?m).+", "(?m:.)b", ".+", "(?s).", "(?x) a b # c\n d", "(?x)a\\ b", "(?x)[a b]+",
        "(?x)a +", "(?ix:A  B)", "(?i)[a-c]+", "(?i)[^a-c]+", r"(?i)\p{Lu}", r"(?i)[\p{Lu}]", r"(?i)[[:upper:]]", r"(?i)[^\p{Lu}]", "(?i)[a-z&&[^K]]", "(?i)k", "(?i)ſ", "(?i)é",
        "(?i)ss", "(?i)ß", "(?i)[ß]", "(?i)[^ß]", "(?i)s{2}", "(?i)s(?:s)", "(?i:s)(?i:s)", "(?i)sss", "(?i)ﬃ", "(?i)ffi", "(?i)st", "(?i)(?<=ss)x", "(?i)i", "(?i)ı", "(?i)σ",
        "(?i)(a)\\1", "(?a)a", "(?I)a", "(?W)\\w", "(?)a",
    ],
    "escapes": [
        r"\t", r"\n", r"\r", r"\f", r"\v", r"\a", r"\e", r"\x41", r"\x4", r"\x", r"\x{41}", r"\x{1F600}", r"\x{41 42}", r"\xC3\xA9", r"\xA0", r"\u00e9", r"\u12", r"\101", r"\012",
        r"\0", r"\8", r"\o{101}", r"\cI", r"\C-I", r"\M-a", r"\h+", r"\H+", r"\R", r"\N+", r"\O", r"\X", r"\K", r"a\Kb", r"\y", r"\Qa", r"\pL", r"\p{", r"\<", r"\>", r"\_", r"\'",
        r"\-", r"\/", r"\ ", r"\é", r"\q", r"\i", r"\U0041", "\\", r"\g<1>(a)", r"(?<n>a)\g<n>", "(?~ab)", "(?~|ab|a*)", "(?(1)a|b)", "(a)?(?(1)b|c)", "(?{x})", "(*FAIL)",
    ],
    "properties": [
        r"\p{%s}+" % name for name in (
            "L", "Lu", "lu", "Letter", "Uppercase_Letter", "uppercase letter", "N", "Nd", "No", "M", "Mn", "P", "S", "Sm", "Z", "Zs", "C", "Cc", "Cn", "Cs", "Han", "Hiragana", "Katakana",
            "Latin", "Greek", "Cyrillic", "Common", "Arabic", "Alpha", "Alnum", "Digit", "Punct", "PosixPunct", "Space", "Upper", "Lower", "Blank", "Cntrl", "Graph", "Print", "XDigit", "ASCII",
            "Any", "Assigned", "White_Space", "Emoji", "Alphabetic", "Extended_Pictographic", "^L", "^^L", "IsL", "Foo", "Script=Han", "In_Basic_Latin",
        )
    ] + [r"\P{L}+", r"\P{^L}+", r"[\p{Punct}]+", r"[^\p{Punct}]+", r"\P{Any}"],
}
# Constructs that our engine cannot say, though Oniguruma can.
REFUSED = [
    r"\K", r"\X", r"\y", r"\G", r"\g<", "(?~", "(?(1)", "(?{x})", "(?W)", "(?I)", "{41 42}", "In_Basic_Latin", "[a-[b]]", r"(?i)(a)\1", r"(?<=\R", r"(?<!\R", "(*FAIL)", r"\M-a",
]
REPLACED = [r"\d{1,3}+", r"^\s*", r"\s{2,}+$", "(?i)ss", r"\w+", r"(?<!\p{L})[[:alpha:]]", "x*"]
TEXTS = [
    "It's 1234567 of  the words,\n\tand don't:  she'LL go.\n\n",
    "a\n  b\nab abc aab-c a--b, x{1} [ab]\n",
    "ss ß ẞ ſS SS ﬃ ffi ﬆ K k É é İ ı σς",
    "x² ½ a\u200cb é\u0301 字漢 かな カナ Привет 😀 ٣٤ ⅷ\u00a0\u2003_\r\n\r\n x",
    "HTTPServer 12,345 snake_case 0xFF (a+b)*c != d && ~e || f",
    "aaaa aabb\tAB\\'q\"/<i>\x0b\x07\x1b \x0c",
    "\n", " a  \n b ",
]
SIGNS_OF = ["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,3}", "{2,}", "{,2}", "{1,2}?", "{1,3}+", "{2}?", "{2,1}"]
ATOMS = [
    "a", "b", "s", " ", "é", "ß", "字", r"\d", r"\s", r"\w", r"\W", r"\S", ".", r"\n", "'", r"\p{L}", r"\p{N}", r"\p{Lu}", r"\P{L}", r"\p{Han}", "ab", "ss", r"\R", "[a-c]", r"[^\s]",
    r"[\p{L}&&[^a]]", r"[\w'-]", "[[:punct:]]", r"[^[:space:]a]",
]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"]
OPENS = ["(?:", "(?:", "(", "(?i:", "(?m:", "(?=", "(?!", "(?<=", "(?<!", "(?>"]


def drawn(draw, depth=0):
    """Returns a random expression."""
    def piece():
        kind = draw.random()
        if kind < 0.15:
            return draw.choice(ANCHORS)
        if kind < 0.35 and depth < 2:
            opened = draw.choice(OPENS)
            behind = opened in ("(?<=", "(?<!")
            inner = "|".join(draw.choice(ATOMS) for _ in range(2)) if behind else drawn(draw, depth + 1)
            return opened + inner + ")" + (draw.choice(SIGNS_OF) if opened[-1] not in "=!" and draw.random() < 0.3 else "")
        return draw.choice(ATOMS) + (draw.choice(SIGNS_OF) if draw.random() < 0.5 else "")

    return "|".join("".join(piece() for _ in range(draw.randint(1, 3))) for _ in range(draw.choice([1, 1, 2])))


def main():
    characters = sorted(set("".join(TEXTS)))
    tokens = [token for character in characters for token in (character, "##" + character)]
    vocabulary = {token: at for at, token in enumerate(tokens)}

    def lengths(tokenizer, text):
        ids = tokenizer.encode(text).ids
        assert "".join(tokens[at].removeprefix("##") for at in ids) == text
        begins = [place for place, at in enumerate(ids) if not tokens[at].startswith("##")] + [len(ids)]
        return [after - begin for begin, after in zip(begins, begins[1:])]

    def row(expressions):
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="a", max_input_chars_per_word=10000))
        try:
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(text), "isolated") for text in expressions])
        except Exception as error:
            return {"expressions": expressions, "error": str(error)}
        return {"expressions": expressions, "words": [lengths(tokenizer, text) for text in TEXTS]}

    def replaced(expression):
        """Returns what a normalizer and a decoder make of the texts that replace what the expression matches."""
        normalizer, decoder = normalizers.Replace(Regex(expression), "<>"), decoders.Replace(Regex(expression), "<>")
        return {"expression": expression, "normalized": [normalizer.normalize_str(text) for text in TEXTS], "decoded": [decoder.decode([text]) for text in TEXTS]}

    rows = {name: [row(expressions)] for name, expressions in REAL.items()}
    rows |= {name: [row([text]) for text in texts] for name, texts in CASES.items()}
    draw = random.Random(57)
    rows["drawn"] = [found for found in (row([drawn(draw)]) for _ in range(150)) if "ids" in found]
    for all_rows in rows.values():
        for found in all_rows:
            signs = [sign for sign in REFUSED if any(text == sign if sign == r"\G" else sign in text for text in found["expressions"])]
            if signs and "words" in found:
                found["refused"] = signs[0]
    lines = ",\n".join(f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(found, ensure_ascii=False, separators=(",", ":")) for found in all_rows) + "\n]" for name, all_rows in rows.items())
    replacing = ",\n".join(json.dumps(replaced(text), ensure_ascii=False) for text in REPLACED)
    print(f'{{"tokens": {json.dumps(tokens)},\n"texts": {json.dumps(TEXTS)},\n"replaced": [\n{replacing}\n],\n"rows": {{\n{lines}\n}}}}')


main()
