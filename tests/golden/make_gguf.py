"""The models of make_models.py as GGUF files, as llama.cpp's converter lays them out: names, row order of llama's q and k, transposed GPT-2 matrices.

usage: make_gguf.py   (no packages; writes models/<name>.gguf, and qwen3 in three parts)
The vocabulary of twelve tokens spells "user" and "assistant". qwen2 has a chat template and two end ids: eos ends a turn, eot a text.
llama3 goes without rope scaling: GGUF states it as divisors, of which only the published originals can be told.
"""
import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "models"
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "Ċ", "u", "s", "e", "r", "a", "i", "t", "n"]
CHAT = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
U16, U32, I32, F32, BOOL, TEXT, ARRAY = 2, 4, 5, 6, 7, 8, 9
FAMILY = {"llama3": ("llama", "llama-bpe"), "mistral": ("llama", "llama-bpe"), "qwen2": ("qwen2", "qwen2"), "qwen3": ("qwen3", "qwen2"),
          "gpt2": ("gpt2", "gpt-2"), "olmo2": ("olmo2", "dbrx"),
          "smollm3": ("smollm3", "smaug-bpe"), "gemma2": ("gemma2", "llama-bpe"), "gemma3": ("gemma3", "llama-bpe"),
          "granite": ("granite", "refact"), "ministral3": ("mistral3", "tekken"), "olmo3": ("olmo2", "dbrx"), "phi3": ("phi3", "gpt-4o"),
          "exaone4": ("exaone4", "exaone4"), "hunyuan": ("hunyuan-dense", "hunyuan-dense"), "ernie4_5": ("ernie4_5", "llama-bpe"),
          "lfm2": ("lfm2", "lfm2"), "minicpm": ("minicpm", "llama-bpe"), "glm": ("chatglm", "llama-bpe"), "glm4": ("glm4", "llama-bpe"),
          "qwen3_5": ("qwen35", "qwen2")}


def tensors_of(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    for name, record in header.items():
        if name != "__metadata__":
            begin, end = record["data_offsets"]
            yield name, record["shape"], list(struct.iter_unpack("<f", data[begin:end]))


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def value(kind, content):
    if kind == ARRAY:
        item, items = content
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, one) for one in items)
    return text(content) if kind == TEXT else struct.pack({U16: "<H", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B"}[kind], content)


LLAMA = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
LLAMA |= {"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv",
          "mlp.gate_up_proj": "ffn_up"}
GEMMA = LLAMA | {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}
GLM4 = LLAMA | {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
OLMO2 = LLAMA | {"post_attention_layernorm": "post_attention_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}
GPT2 = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down"}
NAMES = {"gpt2": GPT2, "olmo2": OLMO2, "olmo3": OLMO2, "exaone4": OLMO2, "gemma2": GEMMA, "gemma3_text": GEMMA, "glm4": GLM4}
# Models whose rows of queries and keys alternate between the halves of a head.
PAIRED = ("llama", "mistral", "smollm3", "granite", "ministral3", "minicpm")
LLAMA |= {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "conv.in_proj": "shortconv.in_proj", "conv.conv": "shortconv.conv",
          "conv.out_proj": "shortconv.out_proj", "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm",
          "self_attn.k_layernorm": "attn_k_norm", "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up"}
DELTA = LLAMA | {"post_attention_layernorm": "post_attention_norm", "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
                 "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.conv1d": "ssm_conv1d",
                 "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out"}
NAMES["qwen3_5_text"] = DELTA
WHOLE = {"A_log": "ssm_a", "dt_bias": "ssm_dt.bias"}
OUTER = {"model.embedding_norm": "token_embd_norm", "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "transformer.wte": "token_embd",
         "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm"}


def gguf_name(name, model_type):
    stem, end = name.rsplit(".", 1)
    if stem in OUTER:
        return f"{OUTER[stem]}.{end}"
    _, _, number, inner = stem.split(".", 3)
    if end in WHOLE:
        return f"blk.{number}.{WHOLE[end]}"
    return f"blk.{number}.{(NAMES.get(model_type, LLAMA))[inner]}.{end}"


def tiled(rows, config, width):
    """The heads of values, `width` rows each: first the first one of each key head, then the second of each."""
    groups, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    order = [group * (heads // groups) + j for j in range(heads // groups) for group in range(groups)]
    return [rows[head * width + row] for head in order for row in range(width)]


def delta_laid_out(name, shape, values, config):
    width = 1 if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias")) else config["linear_value_head_dim"]
    if name.endswith(".norm.weight"):
        return shape, values
    if name.endswith("A_log"):
        values = [(-math.exp(one),) for (one,) in values]
    columns = math.prod(shape[1:])
    rows = [values[r * columns : (r + 1) * columns] for r in range(shape[0])]
    if name.endswith("out_proj.weight"):
        rows = [tiled(row, config, width) for row in rows]
    else:
        keys = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"] if "qkv" in name or "conv1d" in name else 0
        rows = rows[:keys] + tiled(rows[keys:], config, width)
    return [one for one in shape if one > 1], [one for row in rows for one in row]


def laid_out(name, shape, values, config):
    """Rows as the converter writes them."""
    if "linear_attn." in name:
        return delta_laid_out(name, shape, values, config)
    if (config["model_type"].startswith("gemma") or "linear_num_key_heads" in config) and name.endswith("norm.weight"):
        return shape, [struct.unpack("<f", struct.pack("<f", one + 1.0)) for (one,) in values]
    if "conv.conv" in name:
        return [shape[0], shape[2]], values
    if config["model_type"] in PAIRED and ("q_proj" in name or "k_proj" in name):
        heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
        width, half = shape[1], shape[0] // heads // 2
        rows = [values[r * width : (r + 1) * width] for r in range(shape[0])]
        order = [head * 2 * half + part * half + j for head in range(heads) for j in range(half) for part in range(2)]
        return shape, [one for r in order for one in rows[r]]
    if config["model_type"] == "gpt2" and len(shape) == 2 and ".h." in name:
        return [shape[1], shape[0]], [values[r * shape[1] + c] for c in range(shape[1]) for r in range(shape[0])]
    return shape, values


def rope_of(config):
    return config.get("rope_scaling") or config.get("rope_parameters") or {}


def base_of(config):
    rope, h = rope_of(config), config.get("head_dim", 4)
    base = rope.get("rope_theta") or config["rope_theta"]
    return base * rope["alpha"] ** (h / (h - 2)) if "alpha" in rope else base


def more(config):
    """The keys below the architecture that some families have."""
    model, rope = config["model_type"], rope_of(config)
    kind = rope.get("rope_type") or rope.get("type")
    if kind in ("linear", "yarn"):
        yield "rope.scaling.type", TEXT, kind
        yield "rope.scaling.factor", F32, rope["factor"]
    if kind == "yarn":
        yield "rope.scaling.original_context_length", U32, rope["original_max_position_embeddings"]
        yield "rope.scaling.yarn_beta_fast", F32, rope.get("beta_fast", 32.0)
        yield "rope.scaling.yarn_beta_slow", F32, rope.get("beta_slow", 1.0)
    if kind == "longrope":
        old = config["original_max_position_embeddings"]
        yield "rope.scaling.original_context_length", U32, old
        yield "rope.scaling.attn_factor", F32, (1 + math.log(config["max_position_embeddings"] / old) / math.log(old)) ** 0.5
    if model == "ministral3":
        yield "rope.scaling.yarn_log_multiplier", F32, rope["mscale_all_dim"]
        yield "attention.temperature_scale", F32, rope["llama_4_scaling_beta"]
    if model == "olmo3":
        yield "attention.sliding_window_pattern", ARRAY, (BOOL, [one == "sliding_attention" for one in config["layer_types"]])
    if model == "gemma2":
        yield "attn_logit_softcapping", F32, config["attn_logit_softcapping"]
        yield "final_logit_softcapping", F32, config["final_logit_softcapping"]
    if model == "granite":
        for key, name in {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
                          "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"}.items():
            yield key, F32, config[name]
    if model == "lfm2":
        heads = [0 if kind == "conv" else config["num_key_value_heads"] for kind in config["layer_types"]]
        yield "attention.head_count_kv", ARRAY, (I32, heads)
        yield "shortconv.l_cache", U32, config["conv_L_cache"]
    if model == "qwen3_5_text":
        for key, name in {"conv_kernel": "conv_kernel_dim", "state_size": "key_head_dim", "group_count": "num_key_heads",
                          "time_step_rank": "num_value_heads"}.items():
            yield f"ssm.{key}", U32, config["linear_" + name]
        yield "ssm.inner_size", U32, config["linear_num_value_heads"] * config["linear_value_head_dim"]
        yield "full_attention_interval", U32, config["layer_types"].index("full_attention") + 1
        yield "rope.dimension_sections", ARRAY, (I32, [*rope["mrope_section"], 0])
    if model == "minicpm":
        yield "embedding_scale", F32, config["scale_emb"]
        yield "residual_scale", F32, config["scale_depth"] / config["num_hidden_layers"] ** 0.5
        yield "logit_scale", F32, config["hidden_size"] / config["dim_model_base"]


def factors(config):
    """The divisors of LongRoPE."""
    rope = rope_of(config)
    for name in ("long", "short"):
        if f"{name}_factor" in rope:
            values = rope[f"{name}_factor"]
            yield f"rope_factors_{name}.weight", [len(values)], [(one,) for one in values]


def metadata(config, family, pre, chat):
    gpt2 = family == "gpt2"
    heads = config["n_head" if gpt2 else "num_attention_heads"]
    keys = [("general.architecture", TEXT, family), ("general.name", TEXT, f"tiny {family}")]
    counts = {"context_length": config["n_positions" if gpt2 else "max_position_embeddings"],
              "embedding_length": config["n_embd" if gpt2 else "hidden_size"],
              "block_count": config["n_layer" if gpt2 else "num_hidden_layers"],
              "feed_forward_length": config["n_inner"] if gpt2 else config.get("intermediate_size", 20), "attention.head_count": heads,
              "attention.head_count_kv": heads if gpt2 else config["num_key_value_heads"]}
    if "head_dim" in config:
        rotated = int(config["head_dim"] * rope_of(config).get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)))
        counts |= {f"attention.{part}_length": config["head_dim"] for part in ("key", "value")} | {"rope.dimension_count": rotated}
    if config.get("sliding_window"):
        counts["attention.sliding_window"] = config["sliding_window"]
    if family == "lfm2":
        del counts["attention.head_count_kv"]
    keys += [(f"{family}.{key}", U32, count) for key, count in counts.items()]
    if gpt2:
        keys.append(("gpt2.attention.layer_norm_epsilon", F32, config["layer_norm_epsilon"]))
    else:
        keys += [(f"{family}.attention.layer_norm_rms_epsilon", F32, config.get("rms_norm_eps") or config["norm_eps"]),
                 (f"{family}.rope.freq_base", F32, base_of(config))]
        keys += [(f"{family}.{key}", kind, content) for key, kind, content in more(config)]
    keys += [("tokenizer.ggml.model", TEXT, "gpt2"), ("tokenizer.ggml.pre", TEXT, pre), ("tokenizer.ggml.tokens", ARRAY, (TEXT, TOKENS)),
             ("tokenizer.ggml.token_type", ARRAY, (I32, [3, 3, 3] + [1] * 9)), ("tokenizer.ggml.merges", ARRAY, (TEXT, [])),
             ("tokenizer.ggml.eos_token_id", U32, 2 if chat else 0), ("tokenizer.ggml.add_bos_token", BOOL, 0)]
    if chat:
        keys += [("tokenizer.ggml.eot_token_id", U32, 0), ("tokenizer.chat_template", TEXT, CHAT)]
    return keys


def write(path, keys, tensors):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    out += b"".join(text(key) + struct.pack("<I", kind) + value(kind, content) for key, kind, content in keys)
    offset, data = 0, b""
    for name, shape, values in tensors:
        out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, offset)
        piece = b"".join(struct.pack("<f", *one) for one in values)
        piece += bytes(-len(piece) % 32)
        data, offset = data + piece, offset + len(piece)
    path.write_bytes(out + bytes(-len(out) % 32) + data)


for model, (family, pre) in FAMILY.items():
    config = json.loads((HERE / model / "config.json").read_text())
    tensors = [(gguf_name(name, config["model_type"]), *laid_out(name, shape, values, config)) for name, shape, values in
               sorted(tensors_of(HERE / model / "model.safetensors"))] + list(factors(config))
    keys = metadata(config, family, pre, model == "qwen2")
    if model != "qwen3":
        write(HERE / f"{model}.gguf", keys, tensors)
        continue
    # As gguf-split does it: the metadata stand in the first part.
    cuts = [0, 9, 18, len(tensors)]
    for number in range(3):
        split = [("split.no", U16, number), ("split.count", U16, 3), ("split.tensors.count", I32, len(tensors))]
        part = tensors[cuts[number] : cuts[number + 1]]
        write(HERE / f"qwen3-{number + 1:05}-of-00003.gguf", (keys if number == 0 else []) + split, part)
