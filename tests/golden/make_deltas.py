#!/usr/bin/env python3
"""Models in every form, changed bytes of them, and the SHA-256 of the delta between both, in plain Python; writes deltas.json."""
import base64
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
STEP, FLIP = 97, 17
WIDTH = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2}
PLAIN = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}


def lp(x): return struct.pack("<Q", len(x)) + x
def compact(v): return json.dumps(v, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def leaf(name, dtype, shape, data):
    dims = b"".join(struct.pack("<Q", dim) for dim in shape)
    head = b"\0" + lp(b"tabtune/tensor/1") + lp(name.encode()) + lp(dtype.encode())
    return hashlib.sha256(head + struct.pack("<I", len(shape)) + dims + hashlib.sha256(data).digest()).digest()


def weights_digest(tensors):
    leaves = b"".join(leaf(name, *tensors[name]) for name in sorted(tensors))
    head = b"\1" + lp(b"tabtune/weights/1") + struct.pack("<Q", len(tensors))
    return hashlib.sha256(head + leaves).hexdigest()


def safetensors(data):
    """The spans of the tensors: name → (dtype, shape, begin, end)."""
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (one["dtype"], one["shape"], *(start + at for at in one["data_offsets"])) for name, one in header.items()}


def gguf(data):
    at = 4

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        length = take("Q")
        at += length
        return data[at - length:at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = take("I"), take("Q")
            return [value(inner) for _ in range(count)]
        return take("BbHhIif?__QqdX"[kind])

    take("I")
    count, keys = take("Q"), take("Q")
    alignment = 32
    for _ in range(keys):
        key, kind = text(), take("I")
        found = value(kind)
        alignment = found if key == "general.alignment" else alignment
    listed = []
    for _ in range(count):
        name, rank = text(), take("I")
        dims = [take("Q") for _ in range(rank)]
        listed.append((name, dims[::-1], take("I"), take("Q")))
    start = -(-at // alignment) * alignment
    spans = {}
    for name, shape, kind, offset in listed:
        dtype, width = PLAIN[kind]
        size = width
        for dim in shape:
            size *= dim
        spans[name] = (dtype, shape, start + offset, start + offset + size)
    return spans


def delta(base, target):
    """The file of the delta between two tables of tensors: name → (dtype, shape, bytes)."""
    header, payload, dtypes = {}, b"", {}
    for name in sorted(base):
        (dtype, shape, before), (_, _, after) = base[name], target[name]
        if before == after:
            continue
        width = WIDTH[dtype]
        words = b"".join(
            ((int.from_bytes(after[at:at + width], "little") - int.from_bytes(before[at:at + width], "little"))
             % (1 << 8 * width)).to_bytes(width, "little")
            for at in range(0, len(before), width))
        header[name] = {"dtype": f"U{8 * width}", "shape": shape, "data_offsets": [len(payload), len(payload) + len(words)]}
        payload, dtypes[name] = payload + words, dtype
    record = {"adapter_id": "delta", "base_weights_digest": weights_digest(base),
              "target_weights_digest": weights_digest(target), "tensors": dtypes, "version": 1}
    parts = ['"__metadata__":' + compact({"tabtune.delta": compact(record)})]
    # The fields of a tensor have their own order.
    parts += [f"{compact(name)}:{json.dumps(header[name], separators=(',', ':'))}" for name in sorted(header)]
    text = ("{" + ",".join(parts) + "}").encode()
    text += b" " * (-len(text) % 8)
    return hashlib.sha256(lp(text) + payload).hexdigest()


def of_files(paths, changed):
    base, target, spans = {}, {}, []
    for path in paths:
        if not path.endswith((".safetensors", ".gguf")) or path.endswith("optimizer.safetensors"):
            continue
        data = (HERE / path).read_bytes()
        found = (gguf if path.endswith(".gguf") else safetensors)(data)
        after = bytearray(data)
        if path == changed:
            # The first tensor by name, and the largest.
            names = [min(found), max(found, key=lambda name: found[name][3] - found[name][2])]
            spans = sorted(list(found[name][2:]) for name in dict.fromkeys(names))
            for begin, end in spans:
                for at in range(begin, end, STEP):
                    after[at] ^= FLIP
        for name, (dtype, shape, begin, end) in found.items():
            base[name] = (dtype, shape, data[begin:end])
            target[name] = (dtype, shape, bytes(after[begin:end]))
    return {"files": paths, "changed": changed, "spans": spans, "delta": delta(base, target)}


def document(tensors):
    """A JSON state dict as tabtune writes it."""
    dict_of = ",".join(
        f'{compact(name)}:{{"dtype":"{dtype}","shape":{compact(shape)},"data":"{base64.b64encode(data).decode()}"}}'
        for name, (dtype, shape, data) in sorted(tensors.items()))
    return ('{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"base64",'
            f'"digests":{{"weights":"{weights_digest(tensors)}"}},"state_dict":{{{dict_of}}}}}\n')


def of_json():
    nan = struct.pack("<f", float("nan"))
    base = {"a": ("F32", [3], struct.pack("<3f", 1.0, -2.5, 0.0)), "b": ("BF16", [2, 2], bytes(range(8)))}
    target = {"a": ("F32", [3], struct.pack("<2f", 1.0, -2.25) + nan), "b": ("BF16", [2, 2], bytes(range(8)))}
    return {"base": document(base), "target": document(target), "delta": delta(base, target)}


def main():
    golden = lambda name: f"models/{name}"
    folder = [golden("llama3/config.json"), golden("llama3/model.safetensors")]
    parts = [golden(f"qwen3-0000{part}-of-00003.gguf") for part in (1, 2, 3)]
    saved = [f"checkpoints/v1/{name}" for name in ("checkpoint.json", "config.json", "model.safetensors", "optimizer.safetensors")]
    forms = {
        "safetensors": of_files(folder[1:], folder[1]),
        "folder": of_files(folder, folder[1]),
        "gguf": of_files([golden("llama3.gguf")], golden("llama3.gguf")),
        "parts": of_files(parts, parts[1]),
        "checkpoint": of_files(saved, saved[2]),
    }
    found = {"step": STEP, "flip": FLIP, "forms": forms, "json": of_json()}
    (HERE / "deltas.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
