"""The best errors that factors of a rank can have: numpy's singular values of the difference of two models, tensor by tensor.

usage: svd.py JOBS RESULTS; JOBS is JSON: {"tuned": FILE, "base": FILE, "tensors": [NAME], "ranks": [R]}, both files safetensors.
RESULTS is JSON: {RANK: {NAME: error}}, in float64.
"""

import json
import sys

import numpy
from safetensors.numpy import load_file


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    tuned, base = load_file(job["tuned"]), load_file(job["base"])
    best = {rank: {} for rank in job["ranks"]}
    for name in job["tensors"]:
        difference = tuned[name].astype(numpy.float64) - base[name].astype(numpy.float64)
        squares = numpy.linalg.svd(difference, compute_uv=False) ** 2
        for rank in job["ranks"]:
            best[rank][name] = float(numpy.sqrt(squares[rank:].sum() / squares.sum()))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(best, file)


main()
