#!/usr/bin/env python3
"""Compares the types that GGUF files are written in with gguf-py and libgguf, over many rows of weights.

usage: encoders.py --tabtune PATH [--rows N] [--batch N] [--type T …] [--real FILE …], with numpy 2.4.6, gguf 0.19.0 and libgguf 0.2.2.
Each batch becomes the embedding of a llama of width 256, which `tabtune convert` writes as GGUF in every type; the bytes of the embedding
are then those of the reference (`tests/golden/make_encoded.py` says whose). Half of the rows are random in many ways, a quarter are the hard
rows of the goldens, scaled and shuffled, and a quarter are real weights where --real names files: .npz, or .safetensors of F32, F16, BF16.
Rows that the reference itself cannot write (`lost` in the goldens) become rows of 1. Prints a line for each type; fails on a difference.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from gguf import GGUFReader

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
from make_encoded import TYPES, WIDTH, encode, make_rows  # noqa: E402

SIDE = 256  # rows of the model's other matrices


def rounded_to_bf16(rows):
    return (rows.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def random_rows(random, count):
    """Rows of one kind each, with scales from 1e-9 to 1e3."""
    normal = random.standard_normal
    tails = np.exp(random.standard_normal(WIDTH) / 2)
    makers = [
        normal,
        lambda shape: random.uniform(-1, 1, shape),
        lambda shape: random.uniform(0, 1, shape),
        lambda shape: random.standard_t(3, shape),
        lambda shape: random.standard_t(5, shape) * tails,
        lambda shape: random.exponential(1, shape),
        lambda shape: np.where(random.random(shape) < 0.1, normal(shape), 0),
        lambda shape: normal(shape) + random.uniform(-20, 20, (shape[0], 1)),
        lambda shape: random.integers(-16, 17, shape) / 2,
        lambda shape: rounded_to_bf16(normal(shape)),
        lambda shape: normal(shape).astype(np.float16),
        lambda shape: normal(shape) * np.where(np.arange(WIDTH) == random.integers(0, WIDTH, (shape[0], 1)), 100, 1),
    ]
    kind = random.integers(0, len(makers), count)
    rows = np.zeros((count, WIDTH))
    for number, maker in enumerate(makers):
        rows[kind == number] = maker((int(np.sum(kind == number)), WIDTH))
    scale = np.where(random.random(count) < 0.5, 0.02, 10 ** random.uniform(-9, 3, count))
    # Powers of two keep what is exactly between two steps there.
    scale = np.where(np.isin(kind, (8, 9, 10)), 2.0 ** random.integers(-20, 8, count), scale)
    return (rows * scale[:, None]).astype(np.float32)


def hard_rows(random, count, known):
    rows = known[random.integers(0, len(known), count)]
    rows = random.permuted(rows, axis=1) * 2.0 ** random.integers(-4, 5, (count, 1))
    return np.clip(rows, np.finfo(np.float32).min, np.finfo(np.float32).max).astype(np.float32)


def tensors_of(path):
    """Values of the tensors of a file, each as f32."""
    if path.suffix == ".npz":
        yield from (np.asarray(values, dtype=np.float32) for values in np.load(path).values())
        return
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    for name, record in json.loads(data[8:8 + length]).items():
        if name == "__metadata__" or record["dtype"] not in ("F32", "F16", "BF16"):
            continue
        begin, end = (8 + length + at for at in record["data_offsets"])
        raw = data[begin:end]
        if record["dtype"] == "BF16":
            yield (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            yield np.frombuffer(raw, "<f4" if record["dtype"] == "F32" else "<f2").astype(np.float32)


def real_rows(paths):
    rows = [np.ravel(values) for path in paths for values in tensors_of(pathlib.Path(path))]
    rows = [values[:len(values) // WIDTH * WIDTH].reshape(-1, WIDTH) for values in rows]
    return np.concatenate(rows) if rows else None


def write_folder(folder, rows):
    """A llama of one block whose embedding is `rows`."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": len(rows), "hidden_size": WIDTH,
              "intermediate_size": SIDE, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
              "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    ones = lambda *shape: np.ones(shape, dtype=np.float32)
    tensors = {"model.embed_tokens.weight": rows, "model.norm.weight": ones(WIDTH)}
    layer = "model.layers.0."
    tensors |= {f"{layer}{name}.weight": ones(WIDTH) for name in ("input_layernorm", "post_attention_layernorm")}
    names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    tensors |= {f"{layer}{name}.weight": ones(SIDE, WIDTH) for name in names}
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values).tobytes())


def written(tabtune, rows, word):
    """The bytes of each row as tabtune writes them, or the message of its refusal."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "model"
        folder.mkdir()
        write_folder(folder, rows)
        target = pathlib.Path(place) / "model.gguf"
        command = [tabtune, "convert", "--model", folder, "--to", target, "--format", "gguf", "--type", word]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return (done.stderr or done.stdout).strip()[-500:]
        tensor = next(tensor for tensor in GGUFReader(target).tensors if tensor.name == "token_embd.weight")
        return np.array(tensor.data).view(np.uint8).reshape(len(rows), -1)


def compare(tabtune, rows, word):
    """Rows without and with a difference; the first rows that differ."""
    expected, lost = encode(rows, TYPES[word])
    if lost.any():
        rows = np.where(lost[:, None] == 1, np.float32(1), rows)
        expected, _ = encode(rows, TYPES[word])
    found = written(tabtune, rows, word)
    if isinstance(found, str):
        if len(rows) == 1:
            return [(rows[0], f"refused: {found}")], int(lost.sum())
        half = len(rows) // 2
        parts = [compare(tabtune, part, word) for part in (rows[:half], rows[half:])]
        return parts[0][0] + parts[1][0], int(lost.sum())
    return [(rows[n], "other bytes") for n in np.flatnonzero((found != expected).any(axis=1))], int(lost.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tabtune", required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--type", action="append", choices=sorted(TYPES))
    parser.add_argument("--real", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    real = real_rows(args.real)
    known = np.stack([np.asarray(row, dtype=np.float64) for _, row in make_rows()])
    words = args.type or list(TYPES)
    tally = {word: {"rows": 0, "lost": 0, "seconds": 0.0, "different": []} for word in words}
    for start in range(0, args.rows, args.batch):
        random = np.random.default_rng([args.seed, start])
        count = min(args.batch, args.rows - start)
        quarter = count // 4
        parts = [hard_rows(random, quarter, known)]
        if real is not None:
            parts.append(real[random.integers(0, len(real), quarter)])
        parts.append(random_rows(random, count - sum(len(part) for part in parts)))
        rows = np.concatenate(parts)
        for word in words:
            begun = time.monotonic()
            different, lost = compare(args.tabtune, rows, word)
            entry = tally[word]
            entry["rows"] += count
            entry["lost"] += lost
            entry["different"] += different
            entry["seconds"] += time.monotonic() - begun
        print(f"{start + count} rows", file=sys.stderr, flush=True)
    print("| type | rows | lost | different | s |\n|---|---|---|---|---|")
    for word, entry in tally.items():
        print(f"| {word} | {entry['rows']} | {entry['lost']} | {len(entry['different'])} | {entry['seconds']:.0f} |")
        for row, reason in entry["different"][:3]:
            print(f"  {word}: {reason}: {row.view(np.uint32).tobytes().hex()}")
    sys.exit(any(entry["different"] for entry in tally.values()))


if __name__ == "__main__":
    main()
