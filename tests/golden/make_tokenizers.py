"""Makes tokenizers.json: small vocabularies as GGUF stores them, texts, and the ids that other programs give them.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3
    python make_tokenizers.py pride_and_prejudice.txt > tokenizers.json

The byte-level vocabulary is trained here; each pre-tokenizer is applied by the Python package `tokenizers` (its regexes run on
Oniguruma). The SentencePiece vocabulary is trained and applied by `sentencepiece`.
"""
import io
import json
import sys

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HARD = [
    "", " ", "   ", "\n", "\n\n\n", "\t\tx", "a", " a", "a ", "  a  b  ", "The capital of France is", "12345 67 8", "in 1813, 2nd", "x1y22z333",
    "don't I'll WE'RE he'S they'd", "it’s “quoted” — so", "naïve café", "cafe\u0301 e\u0301", "größe ÄÖÜ ß", "Привет, мир", "你好，世界", "日本語 テスト",
    "🙂👍🏽 👨‍👩‍👧", "a\u00a0b\u2003c", "½ ² ⅷ ٣٤", "if (x == 1) {\n    return y;\n}\n", "a\r\nb\r\n\r\nc", "....!!!???", "---___***", "$3.50 & 100%",
    "http://a.bc/d?e=f", "Hello<|im_end|>\n<|im_start|>user\nHi", "<|endoftext|>", "< |im_end|>", "<|im_end|><|im_end|> x", "\u0000\u0001", "\ufeffbom",
    "A\u0308", "\u1100\u1161\u11a8", "สวัสดี", "नमस्ते", "שלום", "a b", "ﬁ ligature", "🇩🇪", "x\u200by", "word\n \n word", " \n x", "'s 's", "I'M I'm",
]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), byte_level(False)])


PRE = {
    "gpt-2": (None, byte_level(True), False),
    "smollm": (None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)]), False),
    "llama-bpe": (None, split(LLAMA3), True),
    "qwen2": (normalizers.NFC(), split(QWEN2), False),
}


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    lines = HARD + [line for line in text.splitlines() if line][2000:2150]

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = byte_level(True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    # No alphabet beyond bytes; numbers are repeated so that some of them merge.
    numbers = "\n".join(str(n) for n in range(10000))
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator([text, numbers], trainer)
    model = json.loads(trained.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(pair) for pair in model["merges"]]

    expected = {}
    for name, (normalizer, pre, ignore_merges) in PRE.items():
        tokenizer = Tokenizer(models.BPE(model["vocab"], merges, ignore_merges=ignore_merges))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in CONTROL])
        expected[name] = [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]

    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.splitlines()), model_writer=file, vocab_size=700, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.9999, minloglevel=2,
    )
    piece = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    count = piece.get_piece_size()

    def kind(i):
        return 2 if piece.is_unknown(i) else 3 if piece.is_control(i) else 6 if piece.is_byte(i) else 5 if piece.is_unused(i) else 1

    # SentencePiece puts its space in front of an empty text too and takes it away; the text of control tokens means nothing to it.
    plain = [line for line in lines if "<|" not in line and "\0" not in line]
    out = {
        "made_with": {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__},
        "lines": lines,
        "byte_level": {"tokens": tokens, "merges": [" ".join(pair) for pair in merges], "control": [0, 1, 2], "ids": expected},
        "sentence_piece": {
            "tokens": [piece.id_to_piece(i) for i in range(count)],
            "scores": [piece.get_score(i) for i in range(count)],
            "types": [kind(i) for i in range(count)],
            "lines": plain,
            "ids": piece.encode(plain),
        },
    }
    json.dump(out, sys.stdout, ensure_ascii=False, separators=(",", ":"))


main()
