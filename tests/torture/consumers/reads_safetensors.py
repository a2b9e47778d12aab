"""Whether Python's safetensors reads what a safetensors folder of tabtune was made from: names, words of the dtypes, shapes and bytes.

usage: reads_safetensors.py JOBS.json RESULTS.json      jobs: [{"folder", "source", "dtype"}], dtype F32, F16 or BF16; source: a folder of F32
"""
import json
import pathlib
import sys

import numpy as np
import safetensors
from model_files import raw_tensors, widened


def rounded(values, dtype):
    """Bytes of float32 values in another dtype, to nearest, ties to even."""
    if dtype == "BF16":
        bits = values.view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
    return values.astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def answer(folder, source, dtype):
    found, wrong = raw_tensors(folder), []
    expected = {name: (shape, rounded(np.ascontiguousarray(widened(word, shape, data)), dtype)) for name, (word, shape, data) in raw_tensors(source).items()}
    wrong += [f"tensor {name} is {'missing' if name in expected else 'unexpected'}" for name in sorted(set(found) ^ set(expected))]
    for name in sorted(set(found) & set(expected)):
        word, shape, data = found[name]
        if (word, shape) != (dtype, expected[name][0]):
            wrong.append(f"{name}: {word} {shape}")
        elif data != expected[name][1]:
            wrong.append(f"{name}: other bytes")
    files = sorted(pathlib.Path(folder).glob("model*.safetensors"))
    for path in files:
        with safetensors.safe_open(path, framework="numpy") as opened:
            for name in opened.keys():
                part = opened.get_slice(name)
                if (part.get_dtype(), part.get_shape()) != tuple(found[name][:2]):
                    wrong.append(f"{path.name}: {name} is {part.get_dtype()} {part.get_shape()} to safe_open")
    index = pathlib.Path(folder) / "model.safetensors.index.json"
    if index.exists():
        said = json.loads(index.read_text())
        total = sum(len(data) for _, _, data in found.values())
        if sorted(said["weight_map"]) != sorted(found) or said["metadata"]["total_size"] != total:
            wrong.append("index: other names, or another total_size")
    return {"wrong": wrong, "files": len(files), "tensors": len(found)}


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    with open(sys.argv[2], "w") as out:
        json.dump([answer(**job) for job in jobs], out)


main()
