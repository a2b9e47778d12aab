#!/usr/bin/env python3
"""quants.json: for each tensor of quants.gguf the SHA-256 of its f32 values (every NaN written as 0x7fc00000) and the first four values.

usage: quants.py quant-random.gguf quant-random.expected.safetensors. Both are made by quant_random.py of the shared assets; the values are
gguf-py 0.19.0's. quants.gguf is quant-random.gguf, unchanged.
"""
import hashlib
import json
import pathlib
import shutil
import struct
import sys

source, expected = map(pathlib.Path, sys.argv[1:])
here = pathlib.Path(__file__).parent
shutil.copyfile(source, here / "quants.gguf")
data = expected.read_bytes()
(length,) = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + length])
out = {}
for name, record in sorted(header.items()):
    if name == "__metadata__":
        continue
    assert record["dtype"] == "F32", name
    begin, end = (8 + length + at for at in record["data_offsets"])
    words = [0x7FC00000 if w & 0x7FFFFFFF > 0x7F800000 else w for w in struct.unpack(f"<{(end - begin) // 4}I", data[begin:end])]
    stored = struct.pack(f"<{len(words)}I", *words)
    out[name] = {"shape": record["shape"], "sha256": hashlib.sha256(stored).hexdigest(), "first_bits": words[:4]}
(here / "quants.json").write_text(json.dumps(out, indent=1) + "\n")
