#!/usr/bin/env python3
"""The digests of crate/FORMATS.md, "Digests", in plain Python; writes digests.json."""
import hashlib
import json
import math
import pathlib
import struct


def u32(v): return struct.pack("<I", v)
def u64(v): return struct.pack("<Q", v)
def lp(x): return u64(len(x)) + x
def t(s): return lp(s.encode())
def H(*parts): return hashlib.sha256(b"".join(parts)).digest()
def opt(x): return b"\0" if x is None else b"\1" + x


def number(v):
    """ECMAScript number text, as RFC 8785 wants it."""
    if isinstance(v, int):
        return str(v)
    if not math.isfinite(v):
        raise ValueError("not finite")
    if v == 0:
        return "0"
    sign = "-" if v < 0 else ""
    mantissa, _, exponent = f"{abs(v)!r}".partition("e")
    whole, _, frac = mantissa.partition(".")
    frac = "" if frac == "0" else frac
    digits = (whole + frac).lstrip("0")
    point = len(whole) - (len(whole + frac) - len((whole + frac).lstrip("0"))) + int(exponent or 0)
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= point <= 21:
        return sign + digits + "0" * (point - k)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    e = point - 1
    return sign + digits[0] + ("." + digits[1:] if k > 1 else "") + "e" + ("+" if e > 0 else "-") + str(abs(e))


def canonical(v):
    if v is None or isinstance(v, bool):
        return json.dumps(v)
    if isinstance(v, (int, float)):
        return number(v)
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    return "{" + ",".join(f"{canonical(k)}:{canonical(v[k])}" for k in sorted(v, key=lambda k: k.encode("utf-16-be"))) + "}"


def leaf(name, dtype, dims, payload):
    return H(b"\x00", t("tabtune/tensor/1"), t(name), t(dtype), u32(len(dims)), *map(u64, dims), hashlib.sha256(payload).digest())


def tensor_set(tag, label, tensors):
    rows = sorted(tensors, key=lambda x: x[0].encode())
    return H(tag, t(label), u64(len(rows)), *(leaf(*r) for r in rows))


def weights(tensors): return tensor_set(b"\x01", "tabtune/weights/1", tensors)
def optimizer(tensors): return tensor_set(b"\x02", "tabtune/optimizer/1", tensors)


def assignment(groups):
    kept = [{k: v for k, v in g.items() if k not in ("residency", "residency_policy")} for g in groups]
    return H(b"\x03", t("tabtune/assignment/1"), t(canonical(kept)))


def tokenizer(assets, record):
    rows = sorted(assets.items(), key=lambda x: x[0].encode())
    return H(b"\x04", t("tabtune/tokenizer/1"), u64(len(rows)), *(t(n) + hashlib.sha256(b).digest() for n, b in rows), t(canonical(record)))


def template(texts):
    rows = sorted(texts.items(), key=lambda x: x[0].encode())
    return H(b"\x05", t("tabtune/template/1"), u64(len(rows)), *(t(n) + lp(b) for n, b in rows))


def bundle(family, revision, checkpoint_family, checkpoint_ref, *five):
    return H(b"\x06", t("tabtune/bundle/1"), t(family), t(revision), t(checkpoint_family),
             opt(None if checkpoint_ref is None else t(checkpoint_ref)), *map(opt, five))


def state(w, o, a): return H(b"\x07", t("tabtune/state/1"), w, o, a)


def f32(*v): return struct.pack(f"<{len(v)}f", *v)


V1 = [("a", "F32", [2, 2], f32(1, -2, 0.5, -0.0)), ("b|c", "BF16", [3], struct.pack("<3H", 0x3F80, 0xC040, 0x7FC1))]
PARAMS = [("embed.weight", "F32", [2, 2], f32(1, 2, 3, 4)), ("head.weight", "F32", [2], f32(0.5, -0.5))]
STATE = [("embed.weight:momentum", "F32", [2, 2], f32(0.1, 0.2, 0.3, 0.4)), ("embed.weight:step", "U64", [], u64(3)),
         ("head.weight:m", "F32", [2], f32(0.01, -0.02)), ("head.weight:v", "F32", [2], f32(0.03, 0.04)), ("head.weight:step", "U64", [], u64(7))]
GROUPS = [
    {"group_id": "embedding", "class": "embedding", "model_tree_path": ["embedding"], "applied_steps": 3,
     "optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0},
     "parameter_semantics": {"learning_rate_scale": 1, "weight_decay_scale": 1},
     "members": [{"parameter": "embed.weight", "state": {"momentum": "embed.weight:momentum", "step": "embed.weight:step"}}],
     "residency_policy": {"step": "device", "idle": "host"}, "residency": "device"},
    {"group_id": "decoder.head", "class": "head", "model_tree_path": ["decoder", "head"], "applied_steps": 7,
     "optimizer": {"kind": "adamw", "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
     "parameter_semantics": {"learning_rate_scale": 1, "weight_decay_scale": 0.5},
     "scheduler": {"kind": "cosine", "config": {"learning_rate": 0.01, "min_learning_rate": 0, "total_steps": 100, "warmup_steps": 4}, "start": None},
     "members": [{"parameter": "head.weight", "state": {"m": "head.weight:m", "step": "head.weight:step", "v": "head.weight:v"}}],
     "residency_policy": {"step": "device", "idle": "offloaded"}, "residency": "offloaded"},
]
ASSETS = {"tokenizer.json": b'{"version":"1.0"}'}
RECORD = {"family": "byte_pair_encoding", "asset_format": "tokenizer_json", "asset_version": "1", "vocab_size": 32000, "add_bos": True,
          "add_eos": None, "bos": 1, "eos": [2], "pad": 0, "unk": 3}
TEXTS = {"default": b"{{ messages }}", "tool_use": b"{{ tools }}\n"}


def main():
    show = lambda rows: [{"name": n, "dtype": d, "shape": s, "bytes_hex": b.hex(), "leaf": leaf(n, d, s, b).hex()} for n, d, s, b in rows]
    w, o, a = weights(PARAMS), optimizer(STATE), assignment(GROUPS)
    k, m = tokenizer(ASSETS, RECORD), template(TEXTS)
    kept = [{x: y for x, y in g.items() if x not in ("residency", "residency_policy")} for g in GROUPS]
    doc = {
        "vector1": {"tensors": show(V1), "weights_digest": weights(V1).hex()},
        "vector2": {"parameters": show(PARAMS), "state": show(STATE), "groups": GROUPS, "assignment_text": canonical(kept),
                    "weights_digest": w.hex(), "optimizer_digest": o.hex(), "assignment_digest": a.hex(), "state_digest": state(w, o, a).hex(),
                    "empty": {"weights_digest": weights([]).hex(), "optimizer_digest": optimizer([]).hex(), "assignment_digest": assignment([]).hex()}},
        "vector3": {"assets_hex": {n: b.hex() for n, b in ASSETS.items()}, "record_text": canonical(RECORD), "templates_hex": {n: b.hex() for n, b in TEXTS.items()},
                    "tokenizer_digest": k.hex(), "template_digest": m.hex(),
                    "identity": {"model_family": "llama", "revision": "r1", "checkpoint_family": "train", "checkpoint_ref": None},
                    "bundle_digest": bundle("llama", "r1", "train", None, w, o, a, k, m).hex(),
                    "bundle_digest_with_ref": bundle("llama", "r1", "train", "opfs:run/7", w, o, a, k, m).hex(),
                    "bundle_digest_weights_only": bundle("llama", "r1", "train", None, w, None, None, k, None).hex()},
    }
    out = pathlib.Path(__file__).with_name("vectors") / "model_io.json"
    out.write_text(json.dumps(doc, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
