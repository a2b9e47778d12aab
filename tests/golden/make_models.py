"""Tiny models of every family with the logits of a plain forward pass in float64, and the gradients of its loss by JAX.

usage: make_models.py   (numpy 2.4, jax 0.10, safetensors 0.8; writes models/<name>/ and models/logits.json)
Formulas: RMSNorm arXiv:1910.07467, RoPE arXiv:2104.09864 (half-split), llama3 scaling as in Llama 3.1's reference code,
GPT-2's block as in its paper and released weights (Conv1D: weight [in, out]), OLMo 2's norms arXiv:2501.00656, SmolLM3's layers
without rotary positions as transformers' list of them says: 1 is a layer with them.
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).parent / "models"
IDS = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2]]
LLAMA = {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 500.0, "vocab_size": 12, "hidden_act": "silu"}
MODELS = {
    "llama3": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **LLAMA, "head_dim": 6, "tie_word_embeddings": False,
               "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 16}},
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **LLAMA, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **LLAMA, "head_dim": 8, "tie_word_embeddings": True},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32,
             "n_inner": 24, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "vocab_size": 12},
    "olmo2": {"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], **LLAMA, "tie_word_embeddings": False},
    "mistral": {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **LLAMA, "sliding_window": None, "tie_word_embeddings": False},
    "smollm3": {"model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], **LLAMA, "num_hidden_layers": 5, "tie_word_embeddings": True,
                "no_rope_layers": [1, 1, 1, 0, 1]},
}


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v):
    """q [T, heads, H], k and v [T, kv_heads, H] -> [T, heads * H]"""
    t, heads, h = q.shape
    group = heads // k.shape[1]
    future = jnp.triu(jnp.ones((t, t), bool), 1)
    out = []
    for head in range(heads):
        scores = q[:, head] @ k[:, head // group].T / jnp.sqrt(h)
        out.append(softmax(jnp.where(future, -jnp.inf, scores)) @ v[:, head // group])
    return jnp.stack(out, 1).reshape(t, heads * h)


def rms(x, w, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    c = x - x.mean(-1, keepdims=True)
    return c / jnp.sqrt((c * c).mean(-1, keepdims=True) + eps) * w + b


def frequencies(config, h):
    f = config["rope_theta"] ** (-jnp.arange(0, h, 2) / h)
    s = config.get("rope_scaling")
    if s is None:
        return f
    wavelength = 2 * jnp.pi / f
    old = s["original_max_position_embeddings"]
    low, high = old / s["low_freq_factor"], old / s["high_freq_factor"]
    smooth = (old / wavelength - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
    middle = (1 - smooth) * f / s["factor"] + smooth * f
    return jnp.where(wavelength > low, f / s["factor"], jnp.where(wavelength < high, f, middle))


def rotate(x, f):
    angle = jnp.arange(x.shape[0])[:, None] * f[None]
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(config, p, ids):
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    h = config.get("head_dim", config["hidden_size"] // heads)
    eps, f = config["rms_norm_eps"], frequencies(config, h)
    x = p["model.embed_tokens.weight"][jnp.asarray(ids)]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."

        def linear(name, y):
            return y @ p[at + name + ".weight"].T + p.get(at + name + ".bias", 0.0)

        def normed(name, y):
            return rms(y, p[at + name + ".weight"], eps) if at + name + ".weight" in p else y

        olmo2 = config["model_type"] == "olmo2"
        before, after = ("none", "post_attention_layernorm") if olmo2 else ("input_layernorm", "none")
        y = normed(before, x)
        q, k, v = (linear("self_attn." + n, y) for n in ("q_proj", "k_proj", "v_proj"))
        if olmo2:
            q, k = normed("self_attn.q_norm", q), normed("self_attn.k_norm", k)
        q, k, v = (part.reshape(len(ids), -1, h) for part in (q, k, v))
        if not olmo2:
            q, k = normed("self_attn.q_norm", q), normed("self_attn.k_norm", k)
        if config.get("no_rope_layers", [1] * (i + 1))[i]:
            q, k = rotate(q, f), rotate(k, f)
        x = x + normed(after, linear("self_attn.o_proj", attend(q, k, v)))
        before, after = ("none", "post_feedforward_layernorm") if olmo2 else ("post_attention_layernorm", "none")
        y = normed(before, x)
        g = linear("mlp.gate_proj", y)
        x = x + normed(after, linear("mlp.down_proj", g / (1 + jnp.exp(-g)) * linear("mlp.up_proj", y)))
    head = p.get("lm_head.weight", p["model.embed_tokens.weight"])
    return rms(x, p["model.norm.weight"], eps) @ head.T


def gpt2(config, p, ids):
    heads, eps = config["n_head"], config["layer_norm_epsilon"]
    h = config["n_embd"] // heads
    x = p["transformer.wte.weight"][jnp.asarray(ids)] + p["transformer.wpe.weight"][: len(ids)]
    for i in range(config["n_layer"]):
        at = f"transformer.h.{i}."

        def conv(name, y):
            return y @ p[at + name + ".weight"] + p[at + name + ".bias"]

        y = layer_norm(x, p[at + "ln_1.weight"], p[at + "ln_1.bias"], eps)
        q, k, v = (part.reshape(len(ids), heads, h) for part in jnp.split(conv("attn.c_attn", y), 3, -1))
        x = x + conv("attn.c_proj", attend(q, k, v))
        y = conv("mlp.c_fc", layer_norm(x, p[at + "ln_2.weight"], p[at + "ln_2.bias"], eps))
        x = x + conv("mlp.c_proj", 0.5 * y * (1 + jnp.tanh(jnp.sqrt(2 / jnp.pi) * (y + 0.044715 * y**3))))
    return layer_norm(x, p["transformer.ln_f.weight"], p["transformer.ln_f.bias"], eps) @ p["transformer.wte.weight"].T


def loss(forward, config, p):
    """Sum over all sequences of the cross-entropy of each token after the first, in nats."""
    total = 0.0
    for ids in IDS:
        logits = forward(config, p, ids[:-1])
        total += (jax.scipy.special.logsumexp(logits, -1) - logits[jnp.arange(len(ids) - 1), jnp.asarray(ids[1:])]).sum()
    return total


def shapes(config):
    if config["model_type"] == "gpt2":
        c, f = config["n_embd"], config["n_inner"]
        yield "transformer.wte.weight", (config["vocab_size"], c)
        yield "transformer.wpe.weight", (config["n_positions"], c)
        for i in range(config["n_layer"]):
            at = f"transformer.h.{i}."
            for name, (a, b) in {"attn.c_attn": (c, 3 * c), "attn.c_proj": (c, c), "mlp.c_fc": (c, f), "mlp.c_proj": (f, c)}.items():
                yield at + name + ".weight", (a, b)
                yield at + name + ".bias", (b,)
            for name in ("ln_1", "ln_2"):
                yield at + name + ".weight", (c,)
                yield at + name + ".bias", (c,)
        yield "transformer.ln_f.weight", (c,)
        yield "transformer.ln_f.bias", (c,)
        return
    c, f, heads, kv = (config[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    h = config.get("head_dim", c // heads)
    yield "model.embed_tokens.weight", (config["vocab_size"], c)
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name, (out, inp) in {"self_attn.q_proj": (heads * h, c), "self_attn.k_proj": (kv * h, c), "self_attn.v_proj": (kv * h, c),
                                 "self_attn.o_proj": (c, heads * h), "mlp.gate_proj": (f, c), "mlp.up_proj": (f, c),
                                 "mlp.down_proj": (c, f)}.items():
            yield at + name + ".weight", (out, inp)
            if config["model_type"] == "qwen2" and name[-6:] in ("q_proj", "k_proj", "v_proj"):
                yield at + name + ".bias", (out,)
        olmo2 = config["model_type"] == "olmo2"
        for name in ("post_attention_layernorm", "post_feedforward_layernorm") if olmo2 else ("input_layernorm", "post_attention_layernorm"):
            yield at + name + ".weight", (c,)
        if olmo2:
            yield at + "self_attn.q_norm.weight", (heads * h,)
            yield at + "self_attn.k_norm.weight", (kv * h,)
        if config["model_type"] == "qwen3":
            yield at + "self_attn.q_norm.weight", (h,)
            yield at + "self_attn.k_norm.weight", (h,)
    yield "model.norm.weight", (c,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], c)


def main():
    out = {"ids": IDS, "models": {}}
    for number, (name, config) in enumerate(MODELS.items()):
        rng = np.random.default_rng(number)
        p = {}
        for key, shape in shapes(config):
            one = len(shape) == 1 and key.endswith("weight")
            p[key] = ((1.0 if one else 0.0) + 0.4 * rng.standard_normal(shape)).astype(np.float32)
        folder = HERE / name
        folder.mkdir(parents=True, exist_ok=True)
        save_file(p, str(folder / "model.safetensors"), {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        wide = {key: jnp.asarray(value, jnp.float64) for key, value in p.items()}
        forward = gpt2 if config["model_type"] == "gpt2" else llama
        out["models"][name] = [np.asarray(forward(config, wide, ids)).ravel().tolist() for ids in IDS]
        gradients = jax.grad(lambda p: loss(forward, config, p))(wide)
        save_file({key: np.asarray(value, np.float32) for key, value in gradients.items()}, str(folder / "gradients.safetensors"))
    (HERE / "logits.json").write_text(json.dumps(out) + "\n")


main()
