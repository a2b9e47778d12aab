"""A plain forward pass in float64: what a model file says of the tokens of a text, and of the best continuation.

usage: forward.py JOBS.json RESULTS.json      jobs: [{"path", "ids", "count", "logits"?}], results in the same order
`logits` names a .npy file for the logits of `ids`.
Formulas: RMSNorm arXiv:1910.07467, RoPE arXiv:2104.09864, SwiGLU arXiv:2002.05202, GPT-2's block as in its released weights, OLMo 2's
norms arXiv:2501.00656, SmolLM3's layers as transformers builds them.
"""
import json
import sys

import numpy as np
from model_files import read_model

TOP = 5


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Forward:
    """A model and the keys and values of the tokens that it has seen."""

    def __init__(self, model):
        self.m = model
        self.w = {name: values.astype(np.float64) for name, values in model.tensors.items()}
        self.keys, self.values = ([None] * model.layers for _ in range(2))
        self.seen = 0

    def norm(self, x, name):
        w = self.w
        if self.m.arch == "gpt2":
            x = x - x.mean(-1, keepdims=True)
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.m.eps) * w[name + ".weight"] + w[name + ".bias"]
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.m.eps) * w[name + ".weight"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0.0)

    def rotate(self, x):
        """x [T, heads, H]"""
        h = self.m.head_dim
        angle = np.outer(self.seen + np.arange(len(x)), self.m.theta ** (-np.arange(0, h, 2) / h) / self.m.divisors)[:, None]
        cos, sin = np.cos(angle), np.sin(angle)
        a, b = (x[..., 0::2], x[..., 1::2]) if self.m.pairs else (x[..., : h // 2], x[..., h // 2 :])
        turned = a * cos - b * sin, b * cos + a * sin
        return np.stack(turned, -1).reshape(x.shape) if self.m.pairs else np.concatenate(turned, -1)

    def attend(self, layer, y):
        m, at = self.m, f"blk.{layer}."
        if m.arch == "gpt2":
            q, k, v = (part.reshape(len(y), m.heads, m.head_dim) for part in np.split(self.linear(y, at + "attn_qkv"), 3, -1))
        else:
            q, k, v = (self.linear(y, at + name) for name in ("attn_q", "attn_k", "attn_v"))
            if m.arch == "olmo2":
                q, k = self.norm(q, at + "attn_q_norm"), self.norm(k, at + "attn_k_norm")
            q, k, v = (part.reshape(len(y), -1, m.head_dim) for part in (q, k, v))
            if m.arch == "qwen3":
                q, k = self.norm(q, at + "attn_q_norm"), self.norm(k, at + "attn_k_norm")
            # Every fourth layer of SmolLM3 has no rotary positions.
            if m.arch != "smollm3" or (layer + 1) % 4:
                q, k = self.rotate(q), self.rotate(k)
        if self.seen:
            k, v = np.concatenate([self.keys[layer], k]), np.concatenate([self.values[layer], v])
        self.keys[layer], self.values[layer] = k, v
        k, v = (np.repeat(part, m.heads // m.kv, 1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(m.head_dim)
        future = np.arange(len(k))[None] > (self.seen + np.arange(len(y)))[:, None]
        out = np.einsum("hqk,khd->qhd", softmax(np.where(future, -np.inf, scores)), v)
        return self.linear(out.reshape(len(y), -1), at + "attn_output")

    def mlp(self, y, at):
        if self.m.arch == "gpt2":
            up = self.linear(y, at + "ffn_up")
            hidden = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        else:
            gate = self.linear(y, at + "ffn_gate")
            hidden = gate / (1 + np.exp(-gate)) * self.linear(y, at + "ffn_up")
        return self.linear(hidden, at + "ffn_down")

    def logits(self, ids):
        """The logits after each of the next tokens. [T, V]"""
        m, w = self.m, self.w
        x = w["token_embd.weight"][np.asarray(ids)]
        if m.arch == "gpt2":
            x = x + w["position_embd.weight"][self.seen : self.seen + len(ids)]
        for layer in range(m.layers):
            at = f"blk.{layer}."
            if m.arch == "olmo2":
                x = x + self.norm(self.attend(layer, x), at + "post_attention_norm")
                x = x + self.norm(self.mlp(x, at), at + "post_ffw_norm")
            else:
                x = x + self.attend(layer, self.norm(x, at + "attn_norm"))
                x = x + self.mlp(self.norm(x, at + "ffn_norm"), at)
        self.seen += len(ids)
        return self.norm(x, "output_norm") @ w.get("output.weight", w["token_embd.weight"]).T


def position(row):
    """The best tokens and their log-probabilities, how far the two best logits are apart, and the largest absolute logit."""
    best = np.argsort(-row, kind="stable")[:TOP]
    log = row - row.max() - np.log(np.exp(row - row.max()).sum())
    return {
        "top": [[int(i), float(log[i])] for i in best],
        "gap": float(row[best[0]] - row[best[1]]),
        "largest": float(np.abs(row).max()),
    }


def answer(path, ids, count, logits=None):
    """Positions after each of `ids`, then after each of `count` tokens more, which are the best ones."""
    model = Forward(read_model(path))
    ids, rows = list(ids), list(model.logits(ids))
    if logits:
        np.save(logits, np.array(rows))
    for _ in range(count):
        ids.append(int(np.argmax(rows[-1])))
        rows.extend(model.logits(ids[-1:]))
    return {"ids": ids, "positions": [position(row) for row in rows]}


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    results = [answer(**job) for job in jobs]
    with open(sys.argv[2], "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
