"""The logits of mlx-lm for folders.

usage: mlx_reads.py JOBS.json RESULTS.json      jobs: [{"folder", "ids"}], `ids` rows of equal length; results: {"logits"} or {"refused"}
"""
import json
import sys
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model

mx.set_default_device(mx.cpu)


def answer(folder, ids):
    try:
        model, _ = load_model(Path(folder), lazy=False, strict=True)
    except Exception as error:  # a folder that it cannot read is any Exception
        return {"refused": f"{type(error).__name__}: {error}".splitlines()[0]}
    model.set_dtype(mx.float32)
    return {"logits": model(mx.array(ids)).astype(mx.float32).tolist()}


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    with open(sys.argv[2], "w") as out:
        json.dump([answer(**job) for job in jobs], out)


main()
