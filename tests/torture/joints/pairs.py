"""Pairs of a prompt and a completion, and the ids that Hugging Face's tokenizers gives their joined text.

usage: pairs.py NAME FILE FOLDER
FILE is a tokenizer.json, or a model of SentencePiece, of which one is made with the parts of the library. Writes FOLDER/model, a Llama of zeros with this
tokenizer, FOLDER/rows.jsonl, and FOLDER/truth.json: for each row the ids of prompt and completion as one text, which of them begin in the
completion, and whether one has both sides of the joint; or null where the library refuses.
"""
import itertools
import json
import pathlib
import random
import struct
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

PAIRS = 500
ENDS = ["", " ", "  ", "   ", "\n", "\n\n", " \n", "\t", "\r", ":", ": ", "=", "'", "-", "\u00a0", "\u2003", "\U0001f642", " \U0001f642", "\U0001f469\u200d", "\u2764", "e", "\u5341", "1", "12"]
BEGINNINGS = ["", " ", "  ", "    ", "\n", "\n\n", "\n ", "\t", "'s", "s", "ing", "2", "345", ".", "...", "\u00a0", "\u200d\U0001f467", "\ufe0f", "\U0001f3fd", "\U0001f642", " \U0001f389", "\u0301", "\u672c", "\u2581"]
WORDS = ("the of and spider legs eight answer Question world it's WE'LL 1813 2024 x1y22 3.14 {\"k\": [1]} (a+b)*c caf\u00e9 na\u00efve gro\u00dfe "
         "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u4f60\u597d \u4e16\u754c \u65e5\u672c\u8a9e \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 "
         "\ud55c\uad6d\uc5b4 \u1e9b\u0323 \ufb01x \u00bd \U0001f642 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea #tag @name http://a.bc/d?e=f").split(" ")
# Letters of a vocabulary that has no token for what it does not know.
PLAIN = "namni tokko akka isaan biyya keessa jiran dubbate hin beekne gaaffii deebii".split(" ")


def fields(data):
    """Numbers and values of a message of protocol buffers."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        length = {1: 8, 5: 4}.get(key & 7) or number()
        at += length
        yield key >> 3, data[at - length:at]


def of_sentencepiece(data):
    """A Unigram model as transformers makes it of SentencePiece's: precompiled normalizer, then one space for several, then the sign for spaces."""
    parts = list(fields(data))
    pieces = [dict(fields(value)) for number, value in parts if number == 1]
    vocabulary = [(piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0]) for piece in pieces]
    kinds = [piece.get(3, 1) for piece in pieces]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=kinds.index(2), byte_fallback=False))
    charsmap = next(value for number, value in fields(dict(parts)[3]) if number == 2)
    made.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    made.add_special_tokens([AddedToken(vocabulary[at][0], normalized=False) for at, kind in enumerate(kinds) if kind in (2, 3)])
    return made, {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}


def put_weights(folder, count):
    """A model of zeros with a row for each id."""
    hidden = 8
    shapes = {"model.embed_tokens.weight": [count, hidden], "model.norm.weight": [hidden]}
    layer = {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], **{f"self_attn.{name}_proj": [hidden, hidden] for name in "qkvo"},
             **{f"mlp.{name}_proj": [hidden, hidden] for name in ("gate", "up", "down")}}
    shapes.update({f"model.layers.0.{name}.weight": shape for name, shape in layer.items()})
    header, length = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [length, length + size]}
        length += size
    front = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(front)) + front + bytes(length))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": hidden, "head_dim": 4,
              "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "vocab_size": count, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def pairs(name, words):
    """Every end of a prompt with every beginning of a completion, in an order of its own for each tokenizer."""
    rng = random.Random(f"joints of {name}")
    joints = list(itertools.product(ENDS, BEGINNINGS))
    rng.shuffle(joints)
    said = lambda: " ".join(rng.choices(words, k=rng.randint(1, 6)))
    return [(said() + end, beginning + said()) for end, beginning in joints[:PAIRS]]


def truth(made, prompt, completion):
    try:
        encoding = made.encode(prompt + completion, add_special_tokens=False)
    except Exception:  # a text that the vocabulary has no tokens for
        return None
    learned = [first >= len(prompt) for first, _ in encoding.offsets]
    return {"ids": encoding.ids, "learned": learned, "crosses": any(first < len(prompt) < past for first, past in encoding.offsets)}


def main():
    name, file, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    model = folder / "model"
    model.mkdir(parents=True)
    if file.suffix == ".model":
        made, config = of_sentencepiece(file.read_bytes())
    else:
        made, beside = Tokenizer.from_file(str(file)), file.parent / "tokenizer_config.json"
        config = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {"bos_token": "[BOS]", "eos_token": "[EOS]"}
    made.no_truncation()
    made.no_padding()
    made.save(str(model / "tokenizer.json"))
    (model / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    put_weights(model, max(made.get_vocab(with_added_tokens=True).values()) + 1)
    rows = pairs(name, PLAIN + WORDS[:12] if name == "oromo" else WORDS)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"prompt": prompt, "completion": completion}) + "\n" for prompt, completion in rows), encoding="utf-8")
    special = lambda key: made.token_to_id(config[key]["content"] if isinstance(config.get(key), dict) else config.get(key) or "")
    begins = config.get("add_bos_token", bool(made.encode("").ids)) and special("bos_token") is not None
    found = {"kind": json.loads(made.to_str())["model"]["type"], "byte_level": "ByteLevel" in str(made.pre_tokenizer), "size": made.get_vocab_size(),
             "begin": [special("bos_token")] if begins else [], "end": special("eos_token"), "rows": [truth(made, *row) for row in rows]}
    (folder / "truth.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
