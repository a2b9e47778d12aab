"""What a base with a LoRA adapter of PEFT beside it says of the tokens of a text, in float64, and whether a merged model has its values.

usage: adapted.py JOBS.json RESULTS.json      jobs, with results in the same order:
  {"path", "adapter", "ids", "count"}    as forward.py, of the base at `path` and the adapter's folder
  {"path", "adapter", "merged"}          {"worst", "at"}: of all values of `merged`, the largest difference from the sum in float64, in halves of
                                         the distance between neighbours of its dtype; norms and tables have to be equal
Formulas: W + scale B A (arXiv:2106.09685), scale = alpha / r, or alpha / sqrt(r) (arXiv:2312.03732).
"""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "consumers"))
from forward import Forward, position  # noqa: E402
from model_files import gguf_name, raw_tensors, read_model, widened  # noqa: E402

PREFIX = "base_model.model."
BITS = {"F16": (11, 2.0**-24), "BF16": (8, 2.0**-133), "F32": (24, 2.0**-149)}


def adapter_of(folder, arch):
    """GGUF's name of a matrix -> B A times its scale, rows in Hugging Face's order; of a tensor that is stored in full, its values."""
    import safetensors

    folder = pathlib.Path(folder)
    said = json.loads((folder / "adapter_config.json").read_text())
    read = safetensors.deserialize((folder / "adapter_model.safetensors").read_bytes())
    tensors = {name.removeprefix(PREFIX): widened(one["dtype"], one["shape"], bytes(one["data"])).astype(np.float64) for name, one in read}
    changes, saved = {}, {}
    for name, a in tensors.items():
        if not name.endswith(".lora_A.weight"):
            if not name.endswith(".lora_B.weight"):
                saved[gguf_name(name, arch)] = a
            continue
        module = name.removesuffix(".lora_A.weight")
        r = said["rank_pattern"].get(module, said["r"])
        alpha = said["alpha_pattern"].get(module, said["lora_alpha"])
        assert a.shape[0] == r, f"{module}: rank {a.shape[0]}, the configuration says {r}"
        scale = alpha / (np.sqrt(r) if said["use_rslora"] else r)
        changes[gguf_name(f"{module}.weight", arch)] = scale * tensors[f"{module}.lora_B.weight"] @ a
    return changes, saved


def paired(values, heads):
    """Rows of q or k as llama's GGUF files have them: those of the two halves of a head in turn."""
    out, width = values.shape
    return values.reshape(heads, 2, out // heads // 2, width).swapaxes(1, 2).reshape(out, width)


def adapted(path, adapter):
    """The base with the sums as its weights."""
    model = read_model(path)
    changes, saved = adapter_of(adapter, model.arch)
    sums = {name: values.astype(np.float64) for name, values in model.tensors.items()}
    for name, change in changes.items():
        heads = model.heads if ".attn_q." in name else model.kv if ".attn_k." in name else 0
        sums[name] = sums[name] + (paired(change, heads) if model.pairs and heads else change)
    return model, sums | saved, changes


def run(path, adapter, ids, count):
    model, sums, _ = adapted(path, adapter)
    forward = Forward(model)
    forward.w = sums
    ids, rows = list(ids), list(forward.logits(ids))
    for _ in range(count):
        ids.append(int(np.argmax(rows[-1])))
        rows.extend(forward.logits(ids[-1:]))
    return {"ids": ids, "positions": [position(row) for row in rows]}


def dtypes(path, arch):
    """GGUF's name of each tensor -> its dtype in the file or folder."""
    if pathlib.Path(path).is_dir():
        return {gguf_name(name, arch): dtype for name, (dtype, _, _) in raw_tensors(path).items()}
    import gguf

    return {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}


def compare(path, adapter, merged):
    model, sums, changes = adapted(path, adapter)
    found = read_model(merged)
    worst = (0.0, "")
    kinds = dtypes(merged, model.arch)
    assert set(found.tensors) == set(sums), "other tensors"
    for name, values in found.tensors.items():
        exact = sums[name]
        if found.pairs != model.pairs and (".attn_q." in name or ".attn_k." in name) and exact.ndim == 2:
            heads = model.heads if ".attn_q." in name else model.kv
            exact = paired(exact, heads) if found.pairs else unpaired(exact, heads)
        if kinds[name] not in BITS:
            assert name not in changes and np.array_equal(values, exact), f"{name}: other blocks than the base's"
            continue
        bits, least = BITS[kinds[name]]
        # The sum itself is computed in f32: its parts are off by a few of f32's roundings.
        half = np.maximum(2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-160))) - bits), least / 2)
        slack = np.abs(exact).max() * 2.0**-20 if name in changes else 0.0
        off = np.maximum(np.abs(values.astype(np.float64) - exact) - slack, 0) / half
        if off.max() > worst[0]:
            worst = (float(off.max()), name)
    return {"worst": worst[0], "at": worst[1]}


def unpaired(values, heads):
    out, width = values.shape
    return values.reshape(heads, out // heads // 2, 2, width).swapaxes(1, 2).reshape(out, width)


def main():
    jobs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    results = [compare(**job) if "merged" in job else run(**job) for job in jobs]
    pathlib.Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
