//! The rules by which llama.cpp splits a text before it divides it into byte-level tokens, by the words of `tokenizer.ggml.pre`
//! (`src/llama-vocab.cpp` and `src/unicode.cpp`), as expressions in the form of Hugging Face's documents.

/// Contractions in both cases, as in Llama 3 and most later rules.
macro_rules! contractions {
    () => {
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    };
}

/// Signs with the line ends after them, line ends, spaces: the end of most rules.
macro_rules! signs {
    () => {
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}

/// As `signs`, with slashes among the line ends.
macro_rules! slashed {
    () => {
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}

/// Words in which a capital begins a new one, with what may follow each. llama.cpp knows the case of ASCII letters only.
macro_rules! cased {
    ($letters:literal, $after:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]*[",
            $letters,
            "&&[^A-Z]]+",
            $after,
            r"|[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]+[",
            $letters,
            "&&[^A-Z]]*",
            $after
        )
    };
}

/// Han characters as llama.cpp counts them.
macro_rules! han {
    () => {
        r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}"
    };
}

/// GPT-2's expression, which a `ByteLevel` with `use_regex` has.
pub(super) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// Single digits, which a `Digits` with `individual_digits` splits off.
pub(super) const DIGIT: &str = r"\p{N}";
/// Whole numbers, which another `Digits` splits off.
pub(super) const NUMBER: &str = r"\p{N}+";
/// Llama 3: contractions, words with one leading sign, numbers of up to three digits, signs, line ends, spaces.
pub(super) const LLAMA_BPE: &str = concat!(contractions!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|", signs!());
/// Qwen2: as Llama 3, but with single digits.
pub(super) const QWEN2: &str = concat!(contractions!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|", signs!());

const THOUSANDS: &str = r"\p{N}{1,3}";
/// Groups of three digits, counted from the right.
const THOUSANDS_FROM_RIGHT: &str = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))";
const LINE_END: &str = r"[\r\n]";
const HANGUL_AND_HAN: &str = "[一-龥ࠀ-一가-퟿]+";
const KANA_AND_HAN: &str = "[一-龥぀-ゟ゠-ヿ]+";
const LATIN_AND_GREEK: &str = concat!(
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-",
    r"ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ",
    r"-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);
/// Signs as llama.cpp matches them: without the ideographic space, which it takes for another one.
const WIDE_SIGNS: &str = r"\s?[!-/:-~！-／：-～‘-‟、。]+";
const WIDE_SIGNS_PUBLISHED: &str = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
const SIGNED_WORDS: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const SIGNED_WORDS_ALONE: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
    r" ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"
);
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
const BLOOM_PUBLISHED: &str = r" ?[^(\s|[.,!?…。，、।۔،])]+";
const ASIAN: &str = "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+";
const EAST_ASIAN: &str = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+";

/// The meaning of a word of `tokenizer.ggml.pre`.
#[derive(Debug)]
pub(super) struct Pre {
    /// llama.cpp's words for the rule; exports write the first.
    words: &'static [&'static str],
    /// Expressions; each isolates its matches within the parts that those before it left.
    pub(super) splits: &'static [&'static str],
    /// Expressions of published documents for which llama.cpp takes the same words, though its own are others.
    published: &'static [&'static [&'static str]],
    /// True if a word that is a token is never built by merges.
    pub(super) whole: bool,
    /// Beginning of a text where the file says nothing.
    pub(super) beginning: Beginning,
}

/// Beginning of a text where a file says nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// There is a token for it, but texts begin without it.
    Known,
    /// A text begins with its token.
    Written,
    /// There is no such token.
    Absent,
}

impl Pre {
    const fn new(words: &'static [&'static str], splits: &'static [&'static str]) -> Self {
        Self { words, splits, published: &[], whole: false, beginning: Beginning::Known }
    }

    const fn also(self, published: &'static [&'static [&'static str]]) -> Self {
        Self { published, ..self }
    }

    const fn whole(self, beginning: Beginning) -> Self {
        Self { whole: true, beginning, ..self }
    }

    /// Returns the rule of the word `pre`; `None` if there is none, or it is refused.
    pub(super) fn of(pre: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.words.contains(&pre))
    }

    /// Returns the word for a rule with these expressions, each in the form of [`canonical`], and true if they are llama.cpp's own.
    pub(super) fn word_for(splits: &[String], whole: bool) -> Option<(&'static str, bool)> {
        let same = |listed: &[&str]| listed.len() == splits.len() && listed.iter().zip(splits).all(|(a, b)| canonical(a) == *b);
        let rules = || RULES.iter().filter(|rule| rule.whole == whole);
        let own = rules().find(|rule| same(rule.splits)).map(|rule| (rule, true));
        let published = || rules().find(|rule| rule.published.iter().any(|listed| same(listed))).map(|rule| (rule, false));
        own.or_else(published).and_then(|(rule, own)| Some((*rule.words.first()?, own)))
    }
}

/// Published spellings of the same parts, and the ones that are used here.
const SPELLINGS: [(&str, &str); 10] = [
    ("\r", r"\r"),
    ("\n", r"\n"),
    ("\t", r"\t"),
    ("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", contractions!()),
    ("'(?i:[sdmt]|ll|ve|re)", contractions!()),
    ("'(?:[sdmt]|ll|ve|re)|", "'s|'t|'re|'ve|'m|'ll|'d|"),
    // No class contains what comes after it, so that giving back changes nothing.
    (r"]?+\p{L}", r"]?\p{L}"),
    (r"]++[\r\n", r"]+[\r\n"),
    // Both end at the last line end of a run of spaces.
    (r"|\s*[\r\n]|", r"|\s*[\r\n]+|"),
    (r"\p{N}{1}|", r"\p{N}|"),
];

/// Returns an expression in the spelling in which equal ones of published documents are equal texts.
pub(super) fn canonical(expression: &str) -> String {
    SPELLINGS.iter().fold(expression.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns true if an expression leaves no part of a text between its matches.
pub(super) fn matches_all(canonical: &str) -> bool {
    [GPT2, LLAMA_BPE, QWEN2].contains(&canonical)
}

/// All rules; of those with equal expressions the first is written by exports. Words without a rule here split other than byte-level tokens
/// (`gemma4`, `sarvam-moe`, `whitespace`), or stand for no rule (`default`).
static RULES: [Pre; 30] = [
    Pre::new(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
            "roberta-bpe",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        &[GPT2],
    ),
    Pre::new(&["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"], &[DIGIT, GPT2]),
    Pre::new(&["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"], &[LLAMA_BPE])
        .whole(Beginning::Written),
    Pre::new(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        &[QWEN2],
    ),
    Pre::new(&["dbrx", "smaug-bpe"], &[LLAMA_BPE]),
    Pre { beginning: Beginning::Absent, ..Pre::new(&["chatglm-bpe"], &[LLAMA_BPE]) },
    Pre::new(&["glm4", "glm5"], &[LLAMA_BPE]).whole(Beginning::Absent),
    Pre::new(&["deepseek-llm"], &[LINE_END, LATIN_AND_GREEK, WIDE_SIGNS, r"\s+$", HANGUL_AND_HAN, NUMBER]).also(&[&[
        LINE_END,
        LATIN_AND_GREEK,
        WIDE_SIGNS_PUBLISHED,
        r"\s+$",
        HANGUL_AND_HAN,
        DIGIT,
    ]]),
    Pre::new(&["deepseek-coder"], &[LINE_END, r"\s?\p{L}+", r"\s?\p{P}+", HANGUL_AND_HAN, DIGIT]),
    Pre::new(&["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], &[THOUSANDS, KANA_AND_HAN, SIGNED_WORDS]),
    Pre::new(&["spark2_5"], &[THOUSANDS, KANA_AND_HAN, SIGNED_WORDS_ALONE, DIGIT]),
    Pre::new(&["youtu"], &[EAST_ASIAN, concat!(r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", contractions!(), r"?|\p{N}|", slashed!())])
        .whole(Beginning::Known),
    Pre::new(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    Pre::new(
        &["qwen35"],
        &[concat!(contractions!(), r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")],
    ),
    Pre::new(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]).also(&[&[BLOOM_PUBLISHED]]),
    Pre::new(&["viking"], &[BLOOM, DIGIT]).also(&[&[BLOOM_PUBLISHED, DIGIT]]),
    Pre::new(&["tekken"], &[concat!(cased!(r"\p{L}", ""), r"|\p{N}|", slashed!())]).whole(Beginning::Written),
    Pre {
        beginning: Beginning::Written,
        ..Pre::new(&["chameleon"], &["<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", r"[\t\n]|    |  ", DIGIT, r"[\p{P}!-/:-@\[-`{-~]", GPT2])
    },
    Pre::new(
        &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        &[concat!(cased!(r"\p{L}", concat!(contractions!(), "?")), r"|\p{N}{1,3}|", slashed!())],
    ),
    Pre::new(&["granite-embed-multi-97m"], &[concat!(cased!(r"\p{L}\p{M}", concat!(contractions!(), "?")), r"|\p{N}{1,3}|", slashed!())])
        .whole(Beginning::Known),
    Pre::new(
        &["tiny_aya", "cohere2moe"],
        &[THOUSANDS_FROM_RIGHT, concat!(r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", contractions!(), r"?|\p{N}{1,3}|", slashed!())],
    ),
    Pre::new(
        &["kimi-k2"],
        &[concat!("[", han!(), r"]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^", han!(), "]]+", contractions!(), r"?|\p{N}{1,3}|", signs!())],
    ),
    Pre::new(&["superbpe"], &[NUMBER, r"(?=([0-9]{3})+(?![0-9]))"]).also(&[&[NUMBER, r"(?=(\d{3})+(?!\d))"]]),
    Pre::new(
        &["seed-coder"],
        &[concat!(contractions!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+")],
    ),
    Pre::new(&["ufakzeka"], &[concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|", signs!())]),
    Pre::new(&["afmoe"], &[THOUSANDS_FROM_RIGHT, ASIAN, SIGNED_WORDS]),
    Pre::new(&["laguna"], &[r"[^\n]+|[\n]+", QWEN2]),
    Pre::new(
        &["exaone-moe"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        )],
    ),
    Pre::new(&["minicpm5"], &[THOUSANDS, concat!(contractions!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|", signs!())]).whole(Beginning::Known),
    Pre::new(
        &["jais-2"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)",
            r"|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
        )],
    ),
];
