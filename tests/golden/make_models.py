"""Tiny models of every family with the logits of a plain forward pass in float64, and the gradients of its loss by JAX.

usage: make_models.py   (numpy 2.4, jax 0.10, safetensors 0.8; writes models/<name>/ and models/logits.json)
Formulas: RMSNorm arXiv:1910.07467, RoPE arXiv:2104.09864 (half-split), llama3 scaling as in Llama 3.1's reference code,
GPT-2's block as in its paper and released weights (Conv1D: weight [in, out]), OLMo 2's norms arXiv:2501.00656, SmolLM3's layers
without rotary positions as transformers' list of them says: 1 is a layer with them; of the others as transformers computes them.
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
GEMMA = {**{k: v for k, v in LLAMA.items() if k not in ("hidden_act", "rope_theta")}, "head_dim": 6, "tie_word_embeddings": True,
         "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 6, "sliding_window": 3}
GRANITE = {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.5, "logits_scaling": 2.0}
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
    "gemma2": {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], **GEMMA, "rope_theta": 500.0, "attn_logit_softcapping": 2.0,
               "final_logit_softcapping": 5.0},
    "gemma3": {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], **GEMMA, "num_hidden_layers": 7, "rope_theta": 5000.0,
               "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
               "layer_types": ["sliding_attention"] * 5 + ["full_attention", "sliding_attention"]},
    "granite": {"model_type": "granite", "architectures": ["GraniteForCausalLM"], **LLAMA, "tie_word_embeddings": True, **GRANITE},
    "granitemoehybrid": {"model_type": "granitemoehybrid", "architectures": ["GraniteMoeHybridForCausalLM"], **LLAMA,
                         "tie_word_embeddings": True, **GRANITE, "shared_intermediate_size": 20, "num_local_experts": 0, "attention_bias": False,
                         "layer_types": ["attention"] * 2, "position_embedding_type": "nope"},
    "ministral3": {"model_type": "ministral3", "architectures": ["Ministral3ForCausalLM"], **{k: v for k, v in LLAMA.items() if k != "rope_theta"},
                   "head_dim": 6, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 6,
                                       "beta_fast": 1.2, "beta_slow": 0.25, "mscale": 1.0, "mscale_all_dim": 1.0,
                                       "llama_4_scaling_beta": 0.1}},
    "olmo3": {"model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], **LLAMA, "tie_word_embeddings": False, "sliding_window": 3,
              "layer_types": ["sliding_attention", "full_attention"],
              "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}},
    "phi3": {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], **LLAMA, "head_dim": 8, "tie_word_embeddings": False,
             "partial_rotary_factor": 0.75, "sliding_window": 5, "original_max_position_embeddings": 16,
             "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.125, 1.5], "long_factor": [1.0, 2.0, 4.0]}},
    "exaone4": {"model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], **LLAMA, "tie_word_embeddings": True, "sliding_window": None},
    "hunyuan": {"model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], **LLAMA, "head_dim": 6,
                "tie_word_embeddings": True, "rope_scaling": {"type": "dynamic", "alpha": 10.0, "factor": 1.0}},
    "ernie4_5": {"model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], **LLAMA, "head_dim": 6, "tie_word_embeddings": True},
    "minicpm": {"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], **LLAMA, "tie_word_embeddings": True, "scale_emb": 3,
                "scale_depth": 1.4, "dim_model_base": 8},
    "glm": {"model_type": "glm", "architectures": ["GlmForCausalLM"], **LLAMA, "head_dim": 4, "tie_word_embeddings": False,
            "partial_rotary_factor": 0.5, "attention_bias": True},
    "glm4": {"model_type": "glm4", "architectures": ["Glm4ForCausalLM"], **LLAMA, "head_dim": 8, "tie_word_embeddings": False,
             "partial_rotary_factor": 1.0, "attention_bias": False},
    "lfm2": {"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], **{k: v for k, v in LLAMA.items() if k[:5] not in ("rms_n", "inter")},
             "norm_eps": 1e-5, "num_hidden_layers": 3, "block_ff_dim": 30, "block_multiple_of": 4, "conv_L_cache": 3,
             "layer_types": ["conv", "full_attention", "conv"], "tie_word_embeddings": True},
    "qwen3_5": {"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], **{k: v for k, v in LLAMA.items() if k != "rope_theta"},
                "rms_norm_eps": 1e-6, "num_hidden_layers": 3, "head_dim": 8, "tie_word_embeddings": True, "attn_output_gate": True,
                "full_attention_interval": 2, "layer_types": ["linear_attention", "full_attention", "linear_attention"], "linear_conv_kernel_dim": 4,
                "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
                "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5,
                                    "mrope_section": [1, 1, 0], "mrope_interleaved": True}},
}


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, window=None, scale=None, cap=None):
    """q [T, heads, H], k and v [T, kv_heads, H] -> [T, heads * H]; a query sees `window` keys, the last of which is its own."""
    t, heads, h = q.shape
    group = heads // k.shape[1]
    ahead = jnp.arange(t)[None] - jnp.arange(t)[:, None]
    hidden = (ahead > 0) | (ahead <= -(window or t))
    out = []
    for head in range(heads):
        scores = q[:, head] @ k[:, head // group].T * (h**-0.5 if scale is None else scale)
        scores = scores if cap is None else cap * jnp.tanh(scores / cap)
        out.append(softmax(jnp.where(hidden, -jnp.inf, scores)) @ v[:, head // group])
    return jnp.stack(out, 1).reshape(t, heads * h)


def silu(x):
    return x / (1 + jnp.exp(-x))


def delta_net(config, p, at, y):
    """Gated DeltaNet (arXiv:2412.06464), a step for each row of y."""
    groups, heads, dk, dv = (config["linear_" + k] for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    t = len(y)

    def linear(name):
        return y @ p[at + name + ".weight"].T

    def unit(x):
        x = x.reshape(t, groups, dk)
        return jnp.repeat(x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1e-6), heads // groups, 1)

    taps = p[at + "conv1d.weight"][:, 0]
    past = jnp.pad(linear("in_proj_qkv"), ((taps.shape[1] - 1, 0), (0, 0)))
    rows = silu(sum(taps[:, k] * past[k : k + t] for k in range(taps.shape[1])))
    q, k, v = jnp.split(rows, [groups * dk, 2 * groups * dk], -1)
    q, k, v = unit(q) * dk**-0.5, unit(k), v.reshape(t, heads, dv)
    share = 1 / (1 + jnp.exp(-linear("in_proj_b")))
    decay = jnp.exp(-jnp.exp(p[at + "A_log"]) * jnp.log1p(jnp.exp(linear("in_proj_a") + p[at + "dt_bias"])))
    state, out = jnp.zeros((heads, dv, dk)), []
    for i in range(t):
        state = state * decay[i][:, None, None]
        change = share[i][:, None] * (v[i] - jnp.einsum("hvk,hk->hv", state, k[i]))
        state = state + change[:, :, None] * k[i][:, None]
        out.append(jnp.einsum("hvk,hk->hv", state, q[i]))
    normed = rms(jnp.stack(out), p[at + "norm.weight"], config["rms_norm_eps"])
    return normed.reshape(t, heads * dv) * silu(linear("in_proj_z")) @ p[at + "out_proj.weight"].T


def rms(x, w, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    c = x - x.mean(-1, keepdims=True)
    return c / jnp.sqrt((c * c).mean(-1, keepdims=True) + eps) * w + b


def frequencies(config, r, length):
    """Frequencies of r rotated dimensions, and the factor of these dimensions (spec of each rule: the paper in its name)."""
    s = config.get("rope_scaling") or config.get("rope_parameters") or {}
    theta = s.get("rope_theta") or config.get("rope_theta")
    kind = s.get("rope_type") or s.get("type") or "default"
    if kind == "dynamic":
        theta *= s["alpha"] ** (r / (r - 2))
    i = jnp.arange(r // 2)
    f = theta ** (-2 * i / r)
    if kind == "linear":
        return f / s["factor"], 1.0
    if kind == "llama3":
        wavelength = 2 * jnp.pi / f
        old = s["original_max_position_embeddings"]
        low, high = old / s["low_freq_factor"], old / s["high_freq_factor"]
        smooth = (old / wavelength - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
        middle = (1 - smooth) * f / s["factor"] + smooth * f
        return jnp.where(wavelength > low, f / s["factor"], jnp.where(wavelength < high, f, middle)), 1.0
    if kind == "yarn":
        def dimension(rotations):
            return r * np.log(s["original_max_position_embeddings"] / (2 * np.pi * rotations)) / (2 * np.log(theta))

        low = max(np.floor(dimension(s.get("beta_fast", 32))), 0)
        high = min(np.ceil(dimension(s.get("beta_slow", 1))), r - 1)
        ramp = jnp.clip((i - low) / (high + 0.001 * (low == high) - low), 0, 1)
        growth = 0.1 * np.log(s["factor"]) + 1
        return f * (1 - ramp) + f / s["factor"] * ramp, 1.0 if "mscale" in s else growth
    if kind == "longrope":
        old = config["original_max_position_embeddings"]
        factors = s["long_factor" if length > old else "short_factor"]
        return f / jnp.asarray(factors), np.sqrt(1 + np.log(config["max_position_embeddings"] / old) / np.log(old))
    return f, 1.0


def rotate(x, f, factor=1.0, adjacent=False):
    """Rotates the first dimensions of x [T, heads, H], two for each frequency."""
    angle = jnp.arange(x.shape[0])[:, None] * f[None]
    cos, sin = jnp.cos(angle)[:, None] * factor, jnp.sin(angle)[:, None] * factor
    r = 2 * len(f)
    x, rest = x[..., :r], x[..., r:]
    if adjacent:
        a, b = x[..., ::2], x[..., 1::2]
        turned = jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)
    else:
        a, b = x[..., : r // 2], x[..., r // 2 :]
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
    return jnp.concatenate([turned, rest], -1)


# Norms of the inputs and of the outputs of attention and MLP.
PLACES = {
    "before": (("input_layernorm", None), ("post_attention_layernorm", None)),
    "after": ((None, "post_attention_layernorm"), (None, "post_feedforward_layernorm")),
    "lfm2": (("operator_norm", None), ("ffn_norm", None)),
    "both": (("input_layernorm", "post_attention_layernorm"), ("pre_feedforward_layernorm", "post_feedforward_layernorm")),
    "glm4": (("input_layernorm", "post_self_attn_layernorm"), ("post_attention_layernorm", "post_mlp_layernorm")),
}


def kind(config):
    """What a family has beyond Llama."""
    model, c = config["model_type"], config["hidden_size"]
    gemma, qwen35 = model.startswith("gemma"), model == "qwen3_5_text"
    return {
        "places": PLACES["both" if gemma else "after" if model in ("olmo2", "olmo3", "exaone4") else model if model in ("glm4", "lfm2") else "before"],
        "offset": 1.0 if gemma or qwen35 else 0.0,
        "gelu": gemma,
        "gated": qwen35,
        "qk": "all" if model in ("olmo2", "olmo3") else "late" if model == "hunyuan_v1_dense"
              else "head" if model in ("qwen3", "gemma3_text", "exaone4", "lfm2", "qwen3_5_text") else None,
        "qk_names": {"hunyuan_v1_dense": ("query_layernorm", "key_layernorm"), "lfm2": ("q_layernorm", "k_layernorm")}.get(model, ("q_norm", "k_norm")),
        "out": "self_attn.out_proj" if model == "lfm2" else "self_attn.o_proj",
        "mlp": ("feed_forward.w1", "feed_forward.w3") if model == "lfm2" else ("mlp.gate_proj", "mlp.up_proj"),
        "biased": model == "qwen2" or model in ("glm", "glm4") and config["attention_bias"],
        "qkv": "self_attn.qkv_proj" if model == "phi3" else None,
        "gate_up": {"phi3": "mlp.gate_up_proj", "glm": "mlp.gate_up_proj", "glm4": "mlp.gate_up_proj",
                    "granitemoehybrid": "shared_mlp.input_linear"}.get(model),
        "conv": model == "lfm2",
        "down": "feed_forward.w2" if model == "lfm2" else "shared_mlp.output_linear" if model == "granitemoehybrid" else "mlp.down_proj",
        "adjacent": model in ("ernie4_5", "glm", "glm4"),
        "embedding": c**0.5 if gemma else config.get("embedding_multiplier", config.get("scale_emb", 1.0)),
        "scale": config["query_pre_attn_scalar"] ** -0.5 if gemma else config.get("attention_multiplier"),
        "residual": config["scale_depth"] / config["num_hidden_layers"] ** 0.5 if model == "minicpm" else config.get("residual_multiplier", 1.0),
        "divisor": c / config["dim_model_base"] if model == "minicpm" else config.get("logits_scaling", 1.0),
    }


def window_of(config, layer):
    w = config.get("sliding_window")
    if config["model_type"] == "gemma2":
        return w if layer % 2 == 0 else None
    types = config.get("layer_types")
    return w if types is None or types[layer] == "sliding_attention" else None


def is_rotated(config, layer):
    if config["model_type"] == "granitemoehybrid":
        return config["position_embedding_type"] == "rope"
    return config.get("no_rope_layers", [1] * (layer + 1))[layer]


def llama(config, p, ids):
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    h, of = config.get("head_dim", config["hidden_size"] // heads), kind(config)
    eps, share = config.get("rms_norm_eps") or config["norm_eps"], config.get("partial_rotary_factor", 1.0)
    share = (config.get("rope_parameters") or {}).get("partial_rotary_factor", share)
    f, factor = frequencies(config, int(h * share), len(ids))
    beta = (config.get("rope_parameters") or {}).get("llama_4_scaling_beta")
    x = p["model.embed_tokens.weight"][jnp.asarray(ids)] * of["embedding"]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."

        def linear(name, y):
            return y @ p[at + name + ".weight"].T + p.get(at + name + ".bias", 0.0)

        def normed(name, y):
            return y if name is None else rms(y, p[at + name + ".weight"] + of["offset"], eps)

        def heads_normed(q, k):
            return [normed("self_attn." + name, y) for name, y in zip(of["qk_names"], (q, k))]

        (before, after), mlp_places = of["places"]
        y, window = normed(before, x), window_of(config, i)
        if of["conv"] and config["layer_types"][i] == "conv":
            b, gate, u = jnp.split(linear("conv.in_proj", y), 3, -1)
            taps = p[at + "conv.conv.weight"][:, 0]
            past = jnp.pad(b * u, ((taps.shape[1] - 1, 0), (0, 0)))
            convolved = sum(taps[:, k] * past[k : k + len(ids)] for k in range(taps.shape[1]))
            x = x + linear("conv.out_proj", gate * convolved)
            x = x + mlp(linear, of, normed(mlp_places[0], x))
            continue
        if of["gated"] and config["layer_types"][i] == "linear_attention":
            x = x + delta_net(config, p, at + "linear_attn.", y)
            x = x + mlp(linear, of, normed(mlp_places[0], x))
            continue
        if of["qkv"]:
            q, k, v = jnp.split(linear(of["qkv"], y), [heads * h, (heads + kv) * h], -1)
        else:
            q, k, v = (linear("self_attn." + n, y) for n in ("q_proj", "k_proj", "v_proj"))
        if of["qk"] == "all":
            q, k = heads_normed(q, k)
        if of["gated"]:
            q, gate = jnp.split(q.reshape(len(ids), heads, 2 * h), 2, -1)
        q, k, v = (part.reshape(len(ids), -1, h) for part in (q, k, v))
        if of["qk"] == "head":
            q, k = heads_normed(q, k)
        if is_rotated(config, i):
            local = window is not None and config["model_type"] in ("gemma3_text", "olmo3")
            base = config.get("rope_local_base_freq", config.get("rope_theta"))
            own, m = (base ** (-2 * jnp.arange(len(f)) / (2 * len(f))), 1.0) if local else (f, factor)
            q, k = rotate(q, own, m, of["adjacent"]), rotate(k, own, m, of["adjacent"])
        if beta:
            old = config["rope_parameters"]["original_max_position_embeddings"]
            q = q * (1 + beta * jnp.log1p(jnp.arange(len(ids)) // old))[:, None, None]
        if of["qk"] == "late":
            q, k = heads_normed(q, k)
        attended = attend(q, k, v, window, of["scale"], config.get("attn_logit_softcapping"))
        if of["gated"]:
            attended = attended / (1 + jnp.exp(-gate.reshape(attended.shape)))
        x = x + of["residual"] * normed(after, linear(of["out"], attended))
        before, after = mlp_places
        y = normed(before, x)
        x = x + of["residual"] * normed(after, mlp(linear, of, y))
    head = p.get("lm_head.weight", p["model.embed_tokens.weight"])
    last = p["model.embedding_norm.weight" if of["conv"] else "model.norm.weight"]
    logits = rms(x, last + of["offset"], eps) @ head.T / of["divisor"]
    cap = config.get("final_logit_softcapping")
    return logits if cap is None else cap * jnp.tanh(logits / cap)


def mlp(linear, of, y):
    g, u = jnp.split(linear(of["gate_up"], y), 2, -1) if of["gate_up"] else (linear(name, y) for name in of["mlp"])
    return linear(of["down"], (gelu(g) if of["gelu"] else silu(g)) * u)


def gelu(y):
    return 0.5 * y * (1 + jnp.tanh(jnp.sqrt(2 / jnp.pi) * (y + 0.044715 * y**3)))


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
        x = x + conv("mlp.c_proj", gelu(y))
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
    c, heads, kv = (config[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
    # LFM2 states a width of which two thirds are used, rounded up.
    f = config.get("intermediate_size") or -(-(2 * config["block_ff_dim"] // 3) // config["block_multiple_of"]) * config["block_multiple_of"]
    h = config.get("head_dim", c // heads)
    yield "model.embed_tokens.weight", (config["vocab_size"], c)
    of = kind(config)
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        matrices = {"self_attn.q_proj": (heads * h, c), "self_attn.k_proj": (kv * h, c), "self_attn.v_proj": (kv * h, c)}
        if of["qkv"]:
            matrices = {of["qkv"]: ((heads + 2 * kv) * h, c)}
        matrices |= {of["out"]: (c, heads * h)}
        if of["gated"]:
            matrices["self_attn.q_proj"] = (2 * heads * h, c)
        delta = of["gated"] and config["layer_types"][i] == "linear_attention"
        if delta:
            groups, many, dk, dv = (config["linear_" + k] for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
            channels, at_delta = 2 * groups * dk + many * dv, at + "linear_attn."
            matrices = {"linear_attn." + k: v for k, v in {"in_proj_qkv": (channels, c), "in_proj_z": (many * dv, c), "in_proj_a": (many, c),
                                                           "in_proj_b": (many, c), "out_proj": (c, many * dv)}.items()}
            yield at_delta + "conv1d.weight", (channels, 1, config["linear_conv_kernel_dim"])
            yield at_delta + "A_log", (many,)
            yield at_delta + "dt_bias", (many,)
            yield at_delta + "norm.weight", (dv,)
        conv = delta or of["conv"] and config["layer_types"][i] == "conv"
        if conv and not delta:
            matrices = {"conv.in_proj": (3 * c, c), "conv.out_proj": (c, c)}
            yield at + "conv.conv.weight", (c, 1, config["conv_L_cache"])
        matrices |= {of["gate_up"]: (2 * f, c)} if of["gate_up"] else {name: (f, c) for name in of["mlp"]}
        for name, (out, inp) in (matrices | {of["down"]: (c, f)}).items():
            yield at + name + ".weight", (out, inp)
            if of["biased"] and name[-6:] in ("q_proj", "k_proj", "v_proj"):
                yield at + name + ".bias", (out,)
        for name in (name for pair in of["places"] for name in pair if name):
            yield at + name + ".weight", (c,)
        widths = {"all": (heads * h, kv * h), None: ()}.get(of["qk"], (h, h))
        for name, width in zip(of["qk_names"], () if conv else widths):
            yield at + "self_attn." + name + ".weight", (width,)
    yield "model.embedding_norm.weight" if of["conv"] else "model.norm.weight", (c,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], c)


def main():
    out = {"ids": IDS, "models": {}}
    for number, (name, config) in enumerate(MODELS.items()):
        rng = np.random.default_rng(number)
        # Larger weights of these would magnify the last bits by hundreds.
        size = 0.2 if name in ("glm", "qwen3_5") else 0.4
        p = {}
        for key, shape in shapes(config):
            one = len(shape) == 1 and key.endswith("weight")
            gemma = config["model_type"].startswith("gemma")
            from_one = (gemma or config["model_type"] == "qwen3_5_text") and "linear_attn" not in key
            p[key] = ((1.0 if one and not from_one else 0.0) + size * rng.standard_normal(shape)).astype(np.float32)
            if gemma and "embed" in key:
                # Multiplied by the root of the width, they would make scores that magnify the last bits.
                p[key] *= np.float32(0.25)
            if key.endswith("A_log"):
                # GGUF has their exponentials, of which these are powers of 2.
                p[key] = np.log(2.0 ** rng.integers(-2, 3, shape)).astype(np.float32)
            if one and from_one:
                # GGUF has these with 1 added, which changes no bit of them here.
                p[key] = np.round(p[key] * 65536) / 65536
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
