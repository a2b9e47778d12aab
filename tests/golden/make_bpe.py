"""Makes bpe.json: byte-level vocabularies that the Python package `tokenizers` learns from texts made by a rule, as digests.

    pip install tokenizers==0.23.3
    python make_bpe.py > bpe.json

The texts are made again by tests/suite/tokenizer/bpe.rs. The digest of a vocabulary is over its tokens in the order of their ids, each with a
line end; that of the merges over their lines `left right`; that of the document over `Tokenizer.to_str(pretty=True)`.
"""
import hashlib
import json
import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
HEADS = ["b", "ch", "d", "fr", "g", "k", "l", "m", "n", "pl", "qu", "r", "s", "st", "th", "v", "w", "", "Ж", "漢", "é"]
TAILS = ["a", "e", "i", "o", "u", "ar", "en", "ing", "ion", "er", "ly", "ed", "ß", "я", "字"]
BETWEEN = [" "] * 24 + [", ", ". ", "\n", "\n\n", "  ", "\n    ", " - ", "'s ", "'ll ", "' ", '" ', " 12", " 2024 ", "::", "------", "    ", "\t", "🙂", " \n ", "\u00a0", "====", "aaaaaaaa"]


def text(seed, size):
    """Returns a text of `size` bytes or a few more, by a linear congruential generator (Knuth's MMIX): words of syllables, small ones more often."""
    state, parts, length = seed, [], 0

    def below(count):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % count

    while length < size:
        word = "".join(HEADS[below(below(len(HEADS)) + 1)] + TAILS[below(below(len(TAILS)) + 1)] for _ in range(below(4) + 1))
        part = word + BETWEEN[below(len(BETWEEN))]
        parts.append(part)
        length += len(part.encode())
    return "".join(parts)


def trained(texts, vocab_size, min_frequency, special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    return tokenizer


def digest(lines):
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def case(seeds, size, vocab_size, min_frequency, special):
    tokenizer = trained([text(seed, size) for seed in seeds], vocab_size, min_frequency, special)
    document = tokenizer.to_str(pretty=True)
    model = json.loads(document)["model"]
    return {
        "seeds": seeds, "size": size, "vocab_size": vocab_size, "min_frequency": min_frequency, "special_tokens": special,
        "tokens": len(model["vocab"]), "merges": len(model["merges"]),
        "vocab_sha256": digest(sorted(model["vocab"], key=model["vocab"].get)),
        "merges_sha256": digest(" ".join(pair) for pair in model["merges"]),
        "document_sha256": hashlib.sha256(document.encode()).hexdigest(),
        "last": [" ".join(pair) for pair in model["merges"]][-3:],
    }


def main():
    cases = [
        case([1], 20000, 600, 2, [END]),
        case([2, 3, 4], 4000, 400, 0, [END]),
        case([5], 3000, 5000, 3, [END, "<|im_start|>", "<|im_end|>"]),
        case([6], 500, 256, 0, []),
        case([7], 1000000, 8192, 2, [END]),
    ]
    texts = {"seed": 7, "size": 1000000, "sha256": hashlib.sha256(text(7, 1000000).encode()).hexdigest()}
    made = {"tokenizers": tokenizers.__version__, "text": texts, "cases": cases}
    print(json.dumps(made, ensure_ascii=False, indent=1))


main()
