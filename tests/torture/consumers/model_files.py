"""Weights and shape of a model, read by gguf-py and by Python's safetensors, under GGUF's names.

Written from the formats alone: llama.cpp's names and row orders, Hugging Face's names and configurations. No code of tabtune is behind it.
"""
import dataclasses
import json
import pathlib

import numpy as np

OUTER = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
}
INNER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}
OLMO2 = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}
CONV1D = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")


@dataclasses.dataclass
class Model:
    """`tensors`: GGUF name -> float32 values, matrices [out, in]. `pairs`: q and k rotate neighbouring rows, not the halves of a head."""

    arch: str
    layers: int
    heads: int
    kv: int
    head_dim: int
    eps: float
    theta: float
    divisors: np.ndarray
    pairs: bool
    tensors: dict


def gguf_name(name, arch):
    """llama.cpp's name of a Hugging Face tensor."""
    stem, end = name.rsplit(".", 1)
    if stem in OUTER:
        return f"{OUTER[stem]}.{end}"
    for blocks in ("model.layers.", "transformer.h."):
        if stem.startswith(blocks):
            number, inner = stem.removeprefix(blocks).split(".", 1)
            named = OLMO2.get(inner) if arch == "olmo2" else None
            return f"blk.{number}.{named or INNER[inner]}.{end}"
    raise KeyError(name)


def raw_tensors(folder):
    """Name -> (safetensors' word, shape, bytes) of every tensor of a folder, in one file or in shards."""
    import safetensors

    out = {}
    for path in sorted(pathlib.Path(folder).glob("model*.safetensors")):
        for name, tensor in safetensors.deserialize(path.read_bytes()):
            assert name not in out, f"{name} stands in two files"
            out[name] = (tensor["dtype"], list(tensor["shape"]), bytes(tensor["data"]))
    return out


def widened(dtype, shape, data):
    """Stored values as float32 (float64 stays)."""
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    array = np.frombuffer(data, {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]).reshape(shape)
    return array if dtype == "F64" else array.astype(np.float32)


def llama3_divisors(scaling, theta, head_dim):
    """What Llama 3.1's rule divides each rotary frequency by."""
    wavelength = 2 * np.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    low, high, old = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["original_max_position_embeddings"]
    smooth = np.clip((old / wavelength - low) / (high - low), 0.0, 1.0)
    return 1.0 / ((1.0 - smooth) / scaling["factor"] + smooth)


def read_folder(folder):
    """A Hugging Face folder."""
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    arch = config["model_type"]
    tensors = {gguf_name(name, arch): widened(*stored) for name, stored in raw_tensors(folder).items()}
    if arch == "gpt2":
        for name in tensors:
            if name.endswith(".weight") and name.split(".")[-2] in CONV1D:
                tensors[name] = tensors[name].T
        heads = config["n_head"]
        head_dim = config["n_embd"] // heads
        return Model(arch, config["n_layer"], heads, heads, head_dim, config["layer_norm_epsilon"], 1e4, np.ones(head_dim // 2), False, tensors)
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    scaling = config.get("rope_scaling")
    theta = config["rope_theta"]
    divisors = llama3_divisors(scaling, theta, head_dim) if scaling else np.ones(head_dim // 2)
    return Model(arch, config["num_hidden_layers"], heads, config["num_key_value_heads"], head_dim, config["rms_norm_eps"], theta, divisors, False, tensors)


def metadata(reader):
    """Key -> value of a file that gguf-py has open."""
    return {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}


def read_gguf(path):
    """A GGUF file, its blocks decoded by gguf-py."""
    from gguf import GGUFReader, quants

    reader = GGUFReader(path)
    said = metadata(reader)
    arch = said["general.architecture"]
    get = lambda key, default=None: said.get(f"{arch}.{key}", default)  # noqa: E731
    shaped = lambda t: quants.dequantize(t.data, t.tensor_type).reshape([int(n) for n in t.shape[::-1]])  # noqa: E731
    tensors = {t.name: np.array(shaped(t), np.float32) for t in reader.tensors}
    heads = get("attention.head_count")
    head_dim = get("attention.key_length", get("embedding_length") // heads)
    eps = get("attention.layer_norm_rms_epsilon", get("attention.layer_norm_epsilon"))
    divisors = tensors.pop("rope_freqs.weight", np.ones(head_dim // 2))
    theta = get("rope.freq_base", 1e4)
    return Model(arch, get("block_count"), heads, get("attention.head_count_kv", heads), head_dim, eps, theta, divisors, arch in ("llama", "smollm3"), tensors)


def read_model(path):
    return read_gguf(path) if str(path).endswith(".gguf") else read_folder(path)
