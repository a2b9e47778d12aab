#!/usr/bin/env python3
"""Reads files that other programs wrote: names, dtypes, shapes and counts of NaN and infinity, as `tabtune inspect --json --read` tells them;
with --suite also the bytes of every tensor, and its values in every dtype that the other program decodes.

usage: generated.py --tabtune PATH [--suite PATH] [--files N] [--seed N] [--golden FOLDER], with numpy 2.4.6, safetensors 0.8.0 and gguf 0.19.0.
--suite is the test binary of tests/suite, whose `bundle::generated` compares; --golden writes 100 small files of each format
with their digests for it.
10,000 files of each format by default. Prints tables: what was written, and how often it was read as written, or refused as it has to be;
the tensors and values of each dtype that were compared. Any other answer is a difference, and the script fails.

The formats allow more than tabtune reads. What is refused, and why, stands in REFUSED.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, GGUFWriter, quants
from safetensors import TensorSpec, serialize

BATCH = 250
# What is written rarely: the code of the refusal, and the reason for it.
REFUSED = {
    "rank 9": ("safetensors.shape.rank", "no model has tensors of more than 8 dimensions"),
    "name of 1,025 bytes": ("safetensors.name.invalid", "a limit that keeps reports and memory small"),
    "empty name": ("safetensors.name.invalid", "a tensor without a name cannot be asked for"),
    "array of arrays": ("gguf.value.nested-array", "ggml's own reader refuses it"),
    "key of 65,536 bytes": ("gguf.key.length", "the limit of GGUF's specification"),
    "name of 64 bytes": ("gguf.name.length", "ggml's limit"),
    "type of work buffers": ("gguf.tensor.type-unsupported", "ggml has Q8_1 and Q8_K in memory only; all tensors are listed"),
    "5 dimensions": ("gguf.tensor.rank", "ggml's limit"),
}
WORDS = {"bool": ("BOOL", 1), "uint8": ("U8", 1), "int8": ("I8", 1), "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1),
         "float8_e8m0fnu": ("F8_E8M0", 1), "float8_e4m3fnuz": ("F8_E4M3FNUZ", 1), "float8_e5m2fnuz": ("F8_E5M2FNUZ", 1),
         "float4_e2m1fn_x2": ("F4", 1), "uint16": ("U16", 2), "int16": ("I16", 2), "float16": ("F16", 2), "bfloat16": ("BF16", 2),
         "uint32": ("U32", 4), "int32": ("I32", 4), "float32": ("F32", 4), "uint64": ("U64", 8), "int64": ("I64", 8), "float64": ("F64", 8),
         "complex64": ("C64", 8)}
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789._-/ []{}\"\\':,#%äßñ漢字한😀ﬁ")


def values_digest(values):
    """SHA-256 of F32 values, every NaN written as 0x7fc00000."""
    with np.errstate(all="ignore"):
        values = np.ascontiguousarray(values, dtype="<f4")
    return hashlib.sha256(np.where(np.isnan(values), np.uint32(0x7FC00000), values.view("<u4")).tobytes()).hexdigest()


def described(dtype, shape, count, data, values):
    """What is expected of a tensor: `data` in the file, and `values`, None where nobody decodes it."""
    digest = None if values is None else values_digest(values)
    return dtype, shape, count, {"dtype": dtype, "stored": hashlib.sha256(data.tobytes()).hexdigest(), "values": digest}


def widened(dtype, data):
    """The values of a plain dtype by numpy, or None."""
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}.get(dtype)
    return kind and np.frombuffer(data, kind)


def name_of(random, most_bytes):
    while True:
        name = "".join(random.choice(LETTERS, random.integers(1, 24)))
        if len(name.encode()) <= most_bytes:
            return name


def non_finite(dtype, data):
    """NaN and infinite numbers among bytes; a complex number has two."""
    if dtype in ("F16", "F32", "F64", "C64"):
        kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<f4"}[dtype]
        return int(np.sum(~np.isfinite(np.frombuffer(data, kind))))
    if dtype == "BF16":
        return int(np.sum(np.frombuffer(data, "<u2") & 0x7F80 == 0x7F80))
    of_bytes = {"F8_E4M3": (0x7F, 0x7F), "F8_E5M2": (0x7C, 0x7C), "F8_E8M0": (0xFF, 0xFF), "F8_E4M3FNUZ": (0xFF, 0x80), "F8_E5M2FNUZ": (0xFF, 0x80)}
    mask, value = of_bytes.get(dtype, (0, 1))
    return int(np.sum(np.frombuffer(data, "u1") & mask == value))


def make_safetensors(random, path):
    """Writes a file. Returns what is special in it, if anything, and name → what is expected of the tensor."""
    special, tensors, expected, held = None, {}, {}, []
    for _ in range(random.integers(0, 9)):
        word = random.choice(list(WORDS))
        dtype, width = WORDS[word]
        rank = int(random.integers(1 if dtype == "F4" else 0, 9))
        shape = [int(n) for n in random.integers(0 if random.random() < 0.1 else 1, 5, rank)]
        name = name_of(random, 1024)
        if random.random() < 0.005:
            special = random.choice(["rank 9", "name of 1,025 bytes", "empty name"])
            tensors, expected = {}, {}
            shape = [1] * 9 if special == "rank 9" else shape
            name = {"name of 1,025 bytes": "n" * 1025, "empty name": ""}.get(special, name)
        count = int(np.prod(shape, dtype=np.int64))
        data = random.integers(0, 2 if dtype == "BOOL" else 256, count * width, dtype=np.uint8)
        held.append(data)
        tensors[name] = TensorSpec(dtype=str(word), shape=shape, data_ptr=data.ctypes.data, data_len=len(data))
        logical = shape[:-1] + [2 * shape[-1]] if dtype == "F4" else shape
        expected[name] = described(dtype, logical, non_finite(dtype, data.tobytes()), data, widened(dtype, data.tobytes()))
        if special:
            break
    metadata = {name_of(random, 99): name_of(random, 99) for _ in range(random.integers(0, 4))}
    path.write_bytes(serialize(tensors, metadata or None))
    return special, expected


def add_keys(random, writer):
    """Keys of every type. Returns what is special, if anything."""
    kinds = [kind for kind in GGUFValueType if kind != GGUFValueType.ARRAY]
    for n in range(random.integers(0, 9)):
        def value(kind):
            if kind == GGUFValueType.STRING:
                return name_of(random, 60)
            if kind == GGUFValueType.BOOL:
                return bool(random.integers(0, 2))
            if kind in (GGUFValueType.FLOAT32, GGUFValueType.FLOAT64):
                return float(random.choice([0.5, -1e30, np.inf, np.nan]))
            bits = int(kind.name.lstrip("UINT"))
            low = 0 if kind.name.startswith("U") else -(2 ** (bits - 1))
            return int(random.integers(low, low + 2**bits - 1, endpoint=True, dtype=np.uint64 if low == 0 else np.int64))
        kind, key = kinds[random.integers(0, len(kinds))], f"{name_of(random, 90)}.{n}"
        if random.random() < 0.4:
            writer.add_key_value(key, [value(kind) for _ in range(random.integers(1, 9))], GGUFValueType.ARRAY, sub_type=kind)
        else:
            writer.add_key_value(key, value(kind), kind)
    if random.random() < 0.01:
        writer.add_array("nested", [[1, 2], [3]])
        return "array of arrays"
    if random.random() < 0.01:
        writer.add_uint8("k" * 65536, 1)
        return "key of 65,536 bytes"
    return None


def gguf_dtype(kind):
    return kind.name if GGML_QUANT_SIZES[kind][0] == 1 else f"GGML:{kind.name}"


def add_tensor(random, writer, special):
    """A tensor of any type. Returns what is special, its name and what is expected of it."""
    work = (GGMLQuantizationType.Q8_1, GGMLQuantizationType.Q8_K)
    kinds = [kind for kind in GGMLQuantizationType if kind not in work]
    kind, name, rank = kinds[random.integers(0, len(kinds))], name_of(random, 63), int(random.integers(1, 5))
    if special is None and random.random() < 0.01:
        special = random.choice(["name of 64 bytes", "type of work buffers", "5 dimensions"])
        name = "n" * 64 if special == "name of 64 bytes" else name
        kind = work[random.integers(0, 2)] if special == "type of work buffers" else kind
        rank = 5 if special == "5 dimensions" else rank
    elements, width = GGML_QUANT_SIZES[kind]
    outer = [int(n) for n in random.integers(1, 4, rank - 1)]
    blocks = int(random.integers(1, 3 if elements > 1 else 7))
    data = random.integers(0, 256, outer + [blocks * width], dtype=np.uint8)
    writer.add_tensor(name, data, raw_dtype=kind)
    dtype, values = gguf_dtype(kind), None
    if elements == 1:
        count, values = non_finite(dtype, data.tobytes()), widened(dtype, data.tobytes())
    elif kind in work:
        count = 0
    elif kind.name in ("Q1_0", "Q2_0"):
        # gguf-py does not decode these: a scale and few bits, so that all values of a block are finite or none is.
        scales = data.reshape(-1, width)[:, :2].copy().view("<f2")
        count = elements * int(np.sum(~np.isfinite(scales)))
    else:
        with np.errstate(all="ignore"):
            values = quants.dequantize(data, kind)
        count = int(np.sum(~np.isfinite(values)))
    return special, name, described(dtype, outer + [blocks * elements], count, data, values)


def make_gguf(random, path):
    writer = GGUFWriter(path, "llama")
    if random.random() < 0.2:
        writer.add_custom_alignment(int(2 ** random.integers(3, 13)))
    special, expected = add_keys(random, writer), {}
    for _ in range(random.integers(0, 7)):
        found, name, tensor = None, None, None
        try:
            found, name, tensor = add_tensor(random, writer, special)
        except ValueError as error:
            if "Duplicated tensor name" not in str(error):
                raise
            continue
        special, expected[name] = found, tensor
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return special, expected


def judged(special, expected, report):
    """What is wrong with the report, or None."""
    if special:
        code = REFUSED[special][0]
        if report.get("code") != code:
            return f"expected {code}, found {report.get('code', 'ok')}"
        if report["stage"] != "read":
            return None
    elif not report["ok"]:
        return f"refused: {report['code']} {report.get('message')}"
    found = {tensor["name"]: (tensor["dtype"], tensor["shape"]) for tensor in report["inventory"]}
    wanted = {name: (dtype, shape) for name, (dtype, shape, *_) in expected.items()}
    if found != wanted or len(report["inventory"]) != len(wanted):
        return f"expected {wanted}, found {found}"
    counts = {name: count for name, (_, _, count, _) in expected.items() if count}
    return None if report.get("non_finite", {}) == counts else f"expected NaN and infinity {counts}, found {report.get('non_finite')}"


def write_expected(folder, cases):
    """expected.json of the sound files."""
    sound = {path.name: {name: found for name, (*_, found) in expected.items()} for path, special, expected in cases if not special}
    (folder / "expected.json").write_text(json.dumps(sound, indent=1) + "\n")


def compared(suite, folder):
    """Tensors, those decoded, and values for each dtype, as the test binary counts them; or what differs."""
    command = [suite, "bundle::generated", "--nocapture"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"TABTUNE_GENERATED": str(folder)})
    if done.returncode != 0 or "1 passed" not in done.stdout:
        return None, (done.stderr + done.stdout)[-1500:]
    lines = [line.split("compared ", 1)[1].split() for line in done.stdout.splitlines() if "compared " in line]
    return {dtype: np.array([int(count) for count in counts]) for dtype, *counts in lines}, None


def run(tabtune, suite, ending, make, count, seed):
    """Tallies of (what was written → files), counts for each dtype, and the differences."""
    tally, tensors, different, values = collections.Counter(), 0, [], {}
    for start in range(0, count, BATCH):
        with tempfile.TemporaryDirectory() as place:
            cases = []
            for n in range(start, min(start + BATCH, count)):
                path = pathlib.Path(place) / f"{n}.{ending}"
                cases.append((path, *make(np.random.default_rng([seed, n]), path)))
            command = [tabtune, "inspect", "--json", "--read", *[path for path, _, _ in cases]]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            reports = [json.loads(line) for line in done.stdout.splitlines()]
            assert [report["file"] for report in reports] == [path.name for path, _, _ in cases]
            if suite and any(not special for _, special, _ in cases):
                write_expected(pathlib.Path(place), cases)
                found, fault = compared(suite, place)
                different += [fault] if fault else []
                for dtype, counts in (found or {}).items():
                    values[dtype] = values.get(dtype, 0) + counts
        for (path, special, expected), report in zip(cases, reports, strict=True):
            tensors += len(expected)
            fault = judged(special, expected, report)
            if fault:
                different.append(f"{path.name} of seed {seed}: {fault}")
            else:
                tally[special or "sound"] += 1
    return tally, tensors, different, values


def write_golden(folder, seed):
    """100 small sound files of each format."""
    folder, cases = pathlib.Path(folder), []
    folder.mkdir(exist_ok=True)
    for ending, make, most_bytes in (("gguf", make_gguf, 6_000), ("safetensors", make_safetensors, 3_000)):
        made, number = [], 0
        while len(made) < 100:
            path = folder / f"{len(made):02}.{ending}"
            special, expected = make(np.random.default_rng([seed, number]), path)
            number += 1
            if not special and expected and path.stat().st_size < most_bytes:
                made.append((path, special, expected))
            else:
                path.unlink()
        cases += made
    write_expected(folder, cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tabtune")
    parser.add_argument("--suite")
    parser.add_argument("--golden")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.golden:
        return write_golden(args.golden, args.seed)
    faults, values = [], {}
    print("| format | files | of | answer | reason |\n|---|---|---|---|---|")
    for ending, make in (("safetensors", make_safetensors), ("gguf", make_gguf)):
        tally, tensors, different, values[ending] = run(args.tabtune, args.suite, ending, make, args.files, args.seed)
        for kind, count in sorted(tally.items(), key=lambda item: -item[1]):
            answer, reason = REFUSED.get(kind, ("as written", f"{tensors} tensors"))
            print(f"| {ending} | {count} | {kind} | {answer} | {reason} |")
        print(f"| {ending} | {len(different)} | different | | |", flush=True)
        faults += different
    if args.suite:
        print("\n| format | dtype | tensors with equal bytes | decoded to equal bits | values |\n|---|---|---|---|---|")
        for ending, found in values.items():
            for dtype, (tensors, decoded, count) in sorted(found.items()):
                print(f"| {ending} | {dtype} | {tensors} | {decoded} | {count} |")
    print("\n".join(faults[:20]))
    return sys.exit(bool(faults))


if __name__ == "__main__":
    main()
