"""Makes vectors/adamw_f32_first_step_expected.json: AdamW (arXiv:1711.05101) in float64 that begins with zero moments at step 1000. The
bias correction is in the rate (arXiv:1412.6980, end of section 2), so that eps is added to the square root of v itself.

    python3 make_first_step.py
"""
import json
from math import cos, sin, sqrt
from pathlib import Path
from struct import pack, unpack

FIRST, STEPS, SHAPES = 1000, 5, ([7], [5, 3])
LR, BETA1, BETA2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-6, 0.01


def f32(value):
    return unpack("f", pack("f", value))[0]


def tensor(shape, values):
    return {"dtype": "float32", "shape": shape, "data": [f32(value) for value in values]}


def gradient(element, t, parameter):
    return f32(0.1 * cos(1.3 * element + 0.9 * t + 0.2 * parameter) * (1 + 0.25 * ((element + t) % 5)))


params, steps = [], [{"t": t, "params": []} for t in range(1, STEPS + 1)]
for k, shape in enumerate(SHAPES):
    size = shape[0] * (shape[1] if len(shape) > 1 else 1)
    p = [f32(0.5 * sin(0.7 * i + 0.3 + k)) for i in range(size)]
    m, v = [0.0] * size, [0.0] * size
    params.append({"shape": shape, "init": tensor(shape, p)})
    for t in range(1, STEPS + 1):
        step, grad = FIRST + t - 1, [gradient(i, t, k) for i in range(size)]
        m = [BETA1 * a + (1 - BETA1) * g for a, g in zip(m, grad)]
        v = [BETA2 * a + (1 - BETA2) * g * g for a, g in zip(v, grad)]
        rate = LR * sqrt(1 - BETA2**step) / (1 - BETA1**step)
        p = [w * (1 - LR * DECAY) - rate * a / (sqrt(b) + EPS) for w, a, b in zip(p, m, v)]
        entry = {"grad": tensor(shape, grad), "step": step, "param": tensor(shape, p), "m": tensor(shape, m), "v": tensor(shape, v)}
        steps[t - 1]["params"].append(entry)

golden = {
    "optimizer": "AdamW",
    "dtype": "float32",
    "rule": "ours",
    "first_step": FIRST,
    "replay": {"class": "tolerance", "per_step": 6e-8, "displacement": 3e-5, "state": 1e-5},
    "hyper": {"lr": LR, "betas": [BETA1, BETA2], "eps": EPS, "weight_decay": DECAY, "bf16_stochastic_round": False},
    "params": params,
    "steps": steps,
}
path = Path(__file__).parent / "vectors" / "adamw_f32_first_step_expected.json"
path.write_text(json.dumps(golden) + "\n")
