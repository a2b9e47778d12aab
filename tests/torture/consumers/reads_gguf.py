"""Whether gguf-py reads what a GGUF file of tabtune was made from: every tensor's name, type, shape and bytes, every key of the metadata.

usage: reads_gguf.py JOBS.json RESULTS.json      jobs: [{"path", "folder"?, "type"?}]
What a file should hold is made anew here, from the Hugging Face folder, by the rules of llama.cpp's own converter and gguf-py's encoders; the
K types, which gguf-py only decodes, are held to half a step of their scale. Without a folder the file is only listed.
"""
import json
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, quants
from model_files import llama3_divisors, metadata, read_folder

FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q4_k": 14, "q4_k_m": 15, "q6_k": 18, "bf16": 32}
BLOCK = {"q4_k": 256, "q6_k": 256, "q8_0": 32, "q4_0": 32, "q4_1": 32, "q5_0": 32, "q5_1": 32}
FALLBACK = {"q4_k": "q5_0", "q6_k": "q8_0", "q8_0": "f16", "q5_0": "f16", "q4_0": "f16", "q4_1": "f16", "q5_1": "f16"}
CONTROL, NORMAL, UNUSED = 3, 1, 5


def mixture(name, layers, tied):
    """llama.cpp's Q4_K_M: Q6_K where it matters most."""
    parts = name.split(".")
    if name == "output.weight" or (tied and name == "token_embd.weight") or "attn_qkv" in parts:
        return "q6_k"
    if parts[0] == "blk" and parts[2] in ("attn_v", "ffn_down"):
        i, eighth = int(parts[1]), layers // 8
        if i < eighth or i >= 7 * layers // 8 or (i - eighth) % 3 == 2:
            return "q6_k"
    return "q4_k"


def type_of(name, shape, wanted, model):
    if len(shape) < 2 or name == "position_embd.weight":
        return "f32"
    word = mixture(name, model.layers, "output.weight" not in model.tensors) if wanted == "q4_k_m" else wanted
    while shape[-1] % BLOCK.get(word, 1):
        word = FALLBACK[word]
    return word


def expected_tensors(model, wanted):
    """Name -> (word, values)."""
    out = {}
    for name, values in model.tensors.items():
        if model.arch in ("llama", "smollm3") and name.split(".")[-2] in ("attn_q", "attn_k"):
            heads = model.heads if "attn_q" in name else model.kv
            values = values.reshape(heads, 2, -1, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        out[name] = (type_of(name, values.shape, wanted, model), values)
    if not np.all(model.divisors == 1):
        out["rope_freqs.weight"] = ("f32", model.divisors.astype(np.float32))
    return out


def read_json(folder, name):
    path = pathlib.Path(folder) / name
    return json.loads(path.read_text()) if path.exists() else {}


def expected_metadata(folder, model, wanted):
    config, arch = read_json(folder, "config.json"), model.arch
    hidden = config.get("hidden_size", config.get("n_embd"))
    out = {
        "general.architecture": arch, "general.file_type": FILE_TYPES[wanted], "general.quantization_version": 2, "general.alignment": 32,
        f"{arch}.vocab_size": config["vocab_size"], f"{arch}.context_length": config.get("max_position_embeddings", config.get("n_positions")),
        f"{arch}.embedding_length": hidden, f"{arch}.block_count": model.layers,
        f"{arch}.feed_forward_length": config.get("intermediate_size", config.get("n_inner")),
        f"{arch}.attention.head_count": model.heads, f"{arch}.attention.head_count_kv": model.kv,
    }
    if arch == "gpt2":
        out[f"{arch}.attention.layer_norm_epsilon"] = model.eps
    else:
        out |= {f"{arch}.attention.layer_norm_rms_epsilon": model.eps, f"{arch}.rope.dimension_count": model.head_dim, f"{arch}.rope.freq_base": model.theta}
        if model.head_dim * model.heads != hidden:
            out |= {f"{arch}.attention.key_length": model.head_dim, f"{arch}.attention.value_length": model.head_dim}
    return out | expected_tokenizer(folder, config["vocab_size"])


# By whether a pattern takes three digits at most, and whether a word that is a token skips the merges.
PRE_OF = {(True, True): "llama-bpe", (True, False): "dbrx", (False, False): "qwen2"}


def expected_tokenizer(folder, rows):
    document = read_json(folder, "tokenizer.json")
    tokens, types = [f"[PAD{i}]" for i in range(rows)], [UNUSED] * rows
    for text, i in document["model"]["vocab"].items():
        tokens[i], types[i] = text, NORMAL
    for added in document["added_tokens"]:
        tokens[added["id"]], types[added["id"]] = added["content"], CONTROL
    words = read_json(folder, "tokenizer_config.json")
    ids = {text: i for i, text in enumerate(tokens)}
    said = read_json(folder, "generation_config.json").get("eos_token_id")
    ends = list(dict.fromkeys([ids[words["eos_token"]], *(said if isinstance(said, list) else [said])]))
    first = document["pre_tokenizer"].get("pretokenizers", [{"type": "ByteLevel"}])[0]
    pre = {"ByteLevel": "gpt-2", "Digits": "smollm"}.get(first["type"]) or PRE_OF["{1,3}" in first["pattern"]["Regex"], document["model"]["ignore_merges"]]
    out = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": document["model"]["merges"], "tokenizer.ggml.add_bos_token": document["post_processor"] is not None,
        "tokenizer.ggml.add_eos_token": False,
    }
    for key, text in (("bos", words.get("bos_token")), ("padding", words.get("pad_token"))):
        if text is not None:
            out[f"tokenizer.ggml.{key}_token_id"] = ids[text]
    out |= {f"tokenizer.ggml.{key}_token_id": i for key, i in zip(("eos", "eot", "eom"), ends)}
    template = pathlib.Path(folder) / "chat_template.jinja"
    if template.exists():
        out["tokenizer.chat_template"] = template.read_text()
    return out


def same(a, b):
    return a == b or isinstance(a, float) and np.float32(a) == np.float32(b)


def compare(reader, folder, wanted):
    model = read_folder(folder)
    wrong, worst = [], 0.0
    tensors = expected_tensors(model, wanted)
    found = {t.name: t for t in reader.tensors}
    wrong += [f"tensor {name} is {'missing' if name in tensors else 'unexpected'}" for name in sorted(set(tensors) ^ set(found))]
    for name in sorted(set(tensors) & set(found)):
        (word, values), tensor = tensors[name], found[name]
        kind = GGMLQuantizationType[word.upper()]
        if (tensor.tensor_type, [int(n) for n in tensor.shape[::-1]]) != (kind, list(values.shape)):
            wrong.append(f"{name}: {tensor.tensor_type.name} {tensor.shape[::-1]}, expected {kind.name} {values.shape}")
        elif word in ("q4_k", "q6_k"):
            # A run's largest error beside its range: half a step of 15 and of 63, and what the rounding of its scale adds.
            decoded = quants.dequantize(tensor.data, kind).reshape(values.shape)
            runs = lambda a: a.reshape(-1, 32 if word == "q4_k" else 16)  # noqa: E731
            span = np.ptp(np.concatenate([runs(values), np.zeros((len(runs(values)), 1), np.float32)], 1), axis=1)
            error = float((np.abs(runs(decoded - values)).max(1) / span).max())
            worst = max(worst, error)
            if error > (0.08 if word == "q4_k" else 0.03):
                wrong.append(f"{name}: off by {error:.3f} of a run's range")
        else:
            same_bytes = quants.quantize(np.ascontiguousarray(values, np.float32), kind).tobytes() == tensor.data.tobytes()
            # The divisors of the frequencies are rounded from float64 on either side.
            if not same_bytes and not (name == "rope_freqs.weight" and np.allclose(tensor.data, values, rtol=1e-6, atol=0)):
                wrong.append(f"{name}: other bytes than gguf-py's {kind.name}")
    said, should = metadata(reader), expected_metadata(folder, model, wanted)
    for key in sorted((set(said) | set(should)) - {"general.name"}):
        if key not in said or key not in should or not same(said[key], should[key]):
            wrong.append(f"key {key}: {str(said.get(key, 'missing'))[:60]}, expected {str(should.get(key, 'none'))[:60]}")
    return wrong, worst


def plain(value):
    return value.item() if isinstance(value, np.generic) else [plain(each) for each in value] if isinstance(value, list) else value


def answer(path, folder=None, type=None):
    reader = GGUFReader(path)
    wrong, worst = compare(reader, folder, type) if folder else ([], 0.0)
    tensors = [
        {"name": t.name, "dtype": t.tensor_type.name, "shape": [int(n) for n in t.shape[::-1]], "offset": int(t.field.parts[5][0])} for t in reader.tensors
    ]
    return {"wrong": wrong, "worst": worst, "tensors": tensors, "metadata": {key: plain(value) for key, value in metadata(reader).items()}}


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    with open(sys.argv[2], "w") as out:
        json.dump([answer(**job) for job in jobs], out)


main()
