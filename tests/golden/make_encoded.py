#!/usr/bin/env python3
"""encoded.safetensors: rows of 256 values, and their bytes in each type that GGUF files are written in.

usage: make_encoded.py, with Python 3.11 to 3.13, numpy 2.4.6, gguf 0.19.0 and libgguf 0.2.2.
f16 is numpy's rounding; bf16, q8_0, q4_0, q4_1, q5_0 and q5_1 are gguf-py's; q4_k and q6_k are libgguf's, without an importance matrix.

`rows` is F32 [n, 256], a type `<t>` U8 [n, bytes of a row], `<t>.lost` U8 [n]: 1 where a row of finite values comes back infinite, NaN,
or (q6_k of huge values) as something else entirely, so that its bytes are not to be reproduced but refused. The metadata name the rows.
"""
import json
import pathlib
import struct
import warnings

import gguf
import libgguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

WIDTH = 256
TYPES = {"f16": Kind.F16, "bf16": Kind.BF16, "q8_0": Kind.Q8_0, "q4_0": Kind.Q4_0, "q4_1": Kind.Q4_1, "q5_0": Kind.Q5_0,
         "q5_1": Kind.Q5_1, "q4_k": Kind.Q4_K, "q6_k": Kind.Q6_K}


def make_rows():
    """(name, 256 values) for every kind of row that a weight may have, and some that none should."""
    random = np.random.default_rng(20260923)
    normal = lambda: random.standard_normal(WIDTH)
    for scale in (1, 0.02, 3e-4, 7):
        for _ in range(3):
            yield f"normal {scale}", normal() * scale
    for low, high in ((-1, 1), (0, 1), (-3, -1), (2, 3), (-0.01, 0.05)):
        yield f"uniform {low} to {high}", random.uniform(low, high, WIDTH)
    # Weights of trained models have heavier tails than a normal distribution, and columns of larger weights.
    columns = np.exp(random.standard_normal(WIDTH) / 2)
    for freedom in (3, 4, 6, 10):
        yield f"heavy tails {freedom}", random.standard_t(freedom, WIDTH) * 0.02
        yield f"heavy tails {freedom}, columns", random.standard_t(freedom, WIDTH) * 0.02 * columns
    # Here the first or the last step of a search for scales decides.
    for seed in (3, 4, 5, 53, 76):
        yield f"exponential {seed}", np.random.default_rng(seed).exponential(1, WIDTH)
    yield "stored as bf16", (np.float32(normal() * 0.05).view(np.uint32) & 0xFFFF0000).view(np.float32)
    yield "stored as f16", np.float16(normal() * 0.05)
    for value in (1, -1, 0.1, -0.1, 3e-5, -65504, 1e-20):
        yield f"constant {value}", np.full(WIDTH, value)
    yield "zero", np.zeros(WIDTH)
    yield "minus zero", np.full(WIDTH, -0.0)
    zeros = np.where(random.random(WIDTH) < 0.5, 0.0, -0.0)
    yield "zeros of both signs", zeros
    yield "zeros of both signs and values", zeros + np.where(random.random(WIDTH) < 0.3, normal(), -0.0)
    yield "mostly zero", np.where(random.random(WIDTH) < 0.05, normal(), 0)
    yield "one value", np.eye(1, WIDTH, 77)[0] * 0.5
    yield "runs of zeros", normal() * np.repeat(random.integers(0, 2, WIDTH // 16), 16)
    for exponent in (-6, -8, -12, -15, -20, -30, -38, -40, -44):
        yield f"tiny 1e{exponent}", normal() * 10.0**exponent
    yield "smallest", random.integers(-2, 3, WIDTH) * 1.401298464324817e-45
    for position in (0, 31, 130, 255):
        outlier = normal() * 0.02
        outlier[position] = (-1) ** position * 9.5
        yield f"outlier at {position}", outlier
    yield "negative", -np.abs(normal()) * 0.1
    yield "positive", np.abs(normal()) * 0.1
    yield "far from zero", normal() * 1e-3 - 5
    yield "alternating", np.where(np.arange(WIDTH) % 2, 0.3, -0.3)
    yield "alternating by run", np.where(np.arange(WIDTH) // 32 % 2, 2, -0.002) * normal()
    yield "ramp", np.arange(WIDTH) - 128.0
    yield "ramp of integers with ties", np.clip(np.arange(WIDTH) - 127.5, -127, 127)
    halves = random.integers(-15, 16, WIDTH) / 2
    halves[::32] = -8
    yield "ties around -8", halves
    yield "ties around 8", -halves
    halves = random.integers(0, 31, WIDTH) / 2
    halves[::32], halves[1::32] = 0, 15
    yield "ties above 0", halves
    yield "ties of 127", np.where(np.arange(WIDTH) % 32, random.integers(-253, 254, WIDTH) / 2, 127)
    # Halfway between two neighbours in f16 and in bf16.
    yield "ties of f16", (1 + (2 * random.integers(0, 1024, WIDTH) + 1) / 2048) * 2.0 ** random.integers(-14, 15, WIDTH)
    yield "ties of bf16", (1 + (2 * random.integers(0, 128, WIDTH) + 1) / 256) * 2.0 ** random.integers(-60, 15, WIDTH)
    yield "ties of small f16", (2 * random.integers(-500, 500, WIDTH) + 1) * 2.0**-25
    runs = np.repeat(10.0 ** np.linspace(-8, 4, 8), 32)
    yield "runs of 1e-8 to 1e4", normal() * runs
    yield "runs of 1e-8 to 1e4 below zero", normal() * runs - runs[::-1]
    yield "runs of small range far below zero", np.repeat([0, 1e4], 128) * np.where(np.arange(WIDTH) % 32, -1, -0.9) + normal() * 1e-6
    for value in (65519, 65520, 1e6, 4e6, 9e6, 1e12, 1e25, 3e38):
        yield f"huge {value}", np.clip(normal(), -1, 1) * value
    yield "one huge run", np.where(np.arange(WIDTH) // 32 == 3, 1e30, 1) * np.clip(normal(), -1, 1)
    yield "largest and smallest", np.where(np.arange(WIDTH) % 2, 1, -1) * np.float64(np.finfo(np.float32).max)


def encode(rows, kind):
    if kind in (Kind.Q4_K, Kind.Q6_K):
        stored = libgguf.quantize_rows(rows, kind)
    else:
        stored = gguf.quants.quantize(rows, kind)
    stored = np.ascontiguousarray(stored).view(np.uint8).reshape(len(rows), -1)
    values = gguf.quants.dequantize(stored, kind).astype(np.float32)
    off = np.abs(values.astype(np.float64) - rows).max(axis=1)
    largest = np.abs(rows).max(axis=1)
    lost = ~np.isfinite(values).all(axis=1) | (off > largest / 4) & (largest > 1)
    return stored, lost.astype(np.uint8)


def main():
    warnings.simplefilter("ignore")
    names, rows = zip(*make_rows())
    rows = np.stack([np.asarray(row).astype(np.float32) for row in rows])
    assert np.isfinite(rows).all()
    tensors = {"rows": ("F32", rows)}
    for word, kind in TYPES.items():
        stored, lost = encode(rows, kind)
        tensors |= {word: ("U8", stored), f"{word}.lost": ("U8", lost)}
        print(f"{word}: {stored.shape[1]} bytes a row, lost: {', '.join(name for name, one in zip(names, lost) if one) or 'none'}")
    header, data = {"__metadata__": {"names": "\n".join(names)}}, b""
    for word, (dtype, array) in tensors.items():
        begin, data = len(data), data + array.tobytes()
        header[word] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path = pathlib.Path(__file__).with_name("encoded.safetensors")
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{len(names)} rows, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
