"""Makes joints.json: a small tokenizer of each kind, pairs of a prompt and a completion, and the ids of the joined texts.

    pip install tokenizers==0.23.3
    python make_joints.py > joints.json

The vocabularies are trained here; the pairs, and what the Python package `tokenizers` makes of them, come from ../torture/joints/pairs.py.
"""
import collections
import itertools
import json
import math
import pathlib
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torture" / "joints"))
from pairs import BEGINNINGS, ENDS, truth  # noqa: E402

TEXT = ("How many legs has a spider? It has eight legs. And an ant? It has six legs, of course. It's the question that the world asks, "
        "and here's the answer: 2024 spiders have 16192 legs. The cat sat on the mat and the hat. ").split(" ")
CONTROL = ["<unk>", "<s>", "</s>"]
SPLIT = r"'s|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_level():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), level])
    made.decoder = decoders.ByteLevel()
    return made, trainers.BpeTrainer(vocab_size=330, special_tokens=CONTROL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)


def sentence_piece():
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    signs = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256))]
    return made, trainers.BpeTrainer(vocab_size=340, special_tokens=signs, show_progress=False)


def unigram():
    # Every sign, every word and every end of a word; the more often, the better.
    words = ["\u2581" + word for word in TEXT]
    pieces = collections.Counter(itertools.chain("".join(words), words, (word[at:] for word in words for at in (2, 3) if len(word) > at + 1)))
    scores = [(piece, round(math.log(count / pieces.total()), 4)) for piece, count in sorted(pieces.items())]
    made = Tokenizer(models.Unigram([*((token, 0.0) for token in CONTROL), *scores], unk_id=0, byte_fallback=False))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.add_special_tokens([AddedToken(token, normalized=False) for token in CONTROL])
    return made, None


def trained(maker):
    made, trainer = maker()
    rng = random.Random(4)
    if trainer:
        made.train_from_iterator([" ".join(rng.choices(TEXT, k=12)) for _ in range(200)], trainer)
    document = json.loads(made.to_str())
    # The signs of bytes are tokens of the model alone.
    document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] in CONTROL]
    return Tokenizer.from_str(json.dumps(document)), document


def main():
    rng = random.Random(7)
    joints = rng.sample(list(itertools.product(ENDS, BEGINNINGS)), 60)
    said = lambda: " ".join(rng.choices([*TEXT, "caf\u00e9", "\U0001f642", "\u4f60\u597d"], k=rng.randint(1, 4)))
    # In the last ones a token goes across the joint.
    pairs = [*((said() + end, beginning + said()) for end, beginning in joints), ("How many leg", "s has it?"), ("The answe", "r, of course."), ("A s", "pider")]
    out = {"made_with": {"tokenizers": tokenizers.__version__}, "pairs": pairs, "tokenizers": {}}
    for maker in (byte_level, sentence_piece, unigram):
        made, document = trained(maker)
        out["tokenizers"][maker.__name__] = {"document": document, "rows": [truth(made, *pair) for pair in pairs]}
    json.dump(out, sys.stdout, ensure_ascii=False, separators=(",", ":"))


main()
