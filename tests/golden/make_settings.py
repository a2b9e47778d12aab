"""Which modules PEFT adapts, with rank and scale, for many settings of LoRA and a tiny model of every family.

usage: make_settings.py   (peft 0.17.1, transformers 4.44.2, torch 1.13 on the CPU; writes adapters/settings.json)
`models` lists the modules that have weights, as the torch models have them. A case has settings under tabtune's names, which begin
PEFT's LoraConfig; `peft` is what get_peft_model made of them: `targets` {module: [r, scale]} and `saved`, or `error`. `refused` is written
by hand: the words with which tabtune refuses the settings, in the order of its answer. They are refused where PEFT fails, and where tabtune
is stricter: names and patterns without effect, factors outside of the blocks, tied matrices, whole modules. `configs` are the files that PEFT wrote for some cases.

Qwen3 is not in these transformers: it is built from Qwen2 by leaving out biases and adding q_norm and k_norm. Rotary tables of a block are
left out of all models, as later transformers have one for the whole model.
"""
import json
import pathlib
import tempfile
import warnings

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from peft.utils.other import ModulesToSaveWrapper
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM
from transformers.pytorch_utils import Conv1D

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).parent
SHAPE = dict(hidden_size=16, intermediate_size=24, num_attention_heads=4, num_key_value_heads=2, vocab_size=32)


def model(name):
    if name == "gpt2":
        made = GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=3, n_head=4, vocab_size=32, n_positions=16))
    elif name == "llama":
        made = LlamaForCausalLM(LlamaConfig(**SHAPE, num_hidden_layers=3, tie_word_embeddings=False))
    else:
        made = Qwen2ForCausalLM(Qwen2Config(**SHAPE, num_hidden_layers=2, tie_word_embeddings=name == "qwen2"))
    if name != "gpt2":
        if not hasattr(made.model, "rotary_emb"):
            made.model.rotary_emb = torch.nn.Identity()
        for layer in made.model.layers:
            del layer.self_attn.rotary_emb
            if name == "qwen3":
                for end in "qkv":
                    getattr(layer.self_attn, end + "_proj").bias = None
                for end in "qk":
                    setattr(layer.self_attn, end + "_norm", type(made.model.norm)(4))
    if name == "qwen3":
        made.config.model_type = "qwen3"
    return made


def modules(made):
    """The modules that have weights: name, kind, shape [out, in], whether the matrix is both embedding and head."""
    tied = made.get_input_embeddings().weight is made.get_output_embeddings().weight
    found = []
    for name, module in made.named_modules(remove_duplicate=False):
        if getattr(module, "weight", None) is None:
            continue
        shape = list(module.weight.shape) + [1] * (2 - module.weight.dim())
        kind = "norm" if module.weight.dim() == 1 else "matrix"
        if module is made.get_output_embeddings():
            kind = "head"
        elif isinstance(module, torch.nn.Embedding):
            kind = "embedding"
        both = tied and module.weight is made.get_input_embeddings().weight
        turned = isinstance(module, Conv1D)
        found.append([name, kind, shape[::-1] if turned else shape, both, turned])
    return found


WORDS = {"alpha": "lora_alpha", "dropout": "lora_dropout", "rslora": "use_rslora", "init": "init_lora_weights"}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
WHOLE = [f"model.layers.{n}.self_attn.{end}_proj" for n in range(3) for end in "qk"]
UNMATCHED, UNSUPPORTED, TIED = "adapter.target.unknown", "adapter.target.unsupported", "adapter.target.tied"
INVALID = "config.invalid"
CASES = [  # model, settings, words of tabtune's refusal
    ("llama", {}, []),
    ("qwen2", {}, []),
    ("qwen3", {}, []),
    ("gpt2", {}, []),
    ("llama", {"r": 4, "alpha": 32}, []),
    ("llama", {"r": 4, "alpha": 32, "rslora": True}, []),
    ("llama", {"r": 3, "alpha": 2.5, "dropout": 0.1, "init": "gaussian"}, []),
    # Lists: whole names and ends after a dot.
    ("llama", {"target_modules": ALL}, []),
    ("qwen3", {"target_modules": ["self_attn.q_proj", "layers.1.mlp.up_proj"]}, []),
    ("llama", {"target_modules": ["model.layers.1.self_attn.o_proj", "1.self_attn.q_proj"]}, []),
    ("llama", {"target_modules": ["proj"]}, [UNMATCHED]),
    ("llama", {"target_modules": ["q_proj", "query", "w1"]}, [UNMATCHED] * 2),
    ("llama", {"target_modules": ["q_proj", ".*k_proj"]}, [UNMATCHED]),
    ("gpt2", {"target_modules": ["c_proj"]}, []),
    ("gpt2", {"target_modules": ["attn.c_proj", "c_fc"]}, []),
    ("llama", {"target_modules": ["q_proj", "mlp"]}, [UNSUPPORTED]),
    ("llama", {"target_modules": ["q_proj", "input_layernorm"]}, [UNSUPPORTED]),
    ("llama", {"target_modules": ["q_proj", "embed_tokens"]}, [UNSUPPORTED]),
    ("llama", {"target_modules": ["lm_head"]}, [UNSUPPORTED]),
    ("gpt2", {"target_modules": ["c_fc", "wte", "wpe"]}, [UNSUPPORTED] * 2),
    # Texts: all-linear in any letters, else an expression of the whole name.
    ("llama", {"target_modules": "all-linear"}, []),
    ("qwen2", {"target_modules": "ALL-linear"}, []),
    ("qwen3", {"target_modules": "all-linear", "exclude_modules": ["o_proj"]}, []),
    ("gpt2", {"target_modules": "all-linear"}, []),
    ("llama", {"target_modules": r".*\.[qv]_proj"}, []),
    ("llama", {"target_modules": r"model\.layers\.(0|2)\..*_proj"}, []),
    ("qwen3", {"target_modules": r".*self_attn\.[a-z]_proj"}, []),
    ("gpt2", {"target_modules": r".*\.\d+\.(attn|mlp)\.c_.*"}, []),
    ("llama", {"target_modules": "q_proj"}, [UNMATCHED]),
    ("llama", {"target_modules": r"q_proj|.*\.k_proj"}, []),
    ("llama", {"target_modules": r".*\.q_"}, [UNMATCHED]),
    ("llama", {"target_modules": r".*mlp.*"}, [UNSUPPORTED] * 2),
    ("llama", {"target_modules": r".*mlp\..*"}, [UNSUPPORTED]),
    ("gpt2", {"target_modules": r".*attn\..*"}, [UNSUPPORTED] * 2),
    ("llama", {"target_modules": r".*(q_proj|norm)"}, [UNSUPPORTED] * 3),
    ("llama", {"target_modules": r"(?=.*q_proj).*"}, [INVALID]),
    ("llama", {"target_modules": "a)|(b"}, [INVALID]),
    # Exclusion wins.
    ("llama", {"target_modules": ["q_proj", "v_proj"], "exclude_modules": ["layers.1.self_attn.q_proj", "model.layers.0.self_attn.v_proj"]}, []),
    ("llama", {"target_modules": ["q_proj", "v_proj"], "exclude_modules": r".*\.[02]\..*"}, []),
    ("llama", {"target_modules": ["q_proj"], "exclude_modules": "q_proj"}, [UNMATCHED]),
    ("llama", {"target_modules": ["q_proj"], "exclude_modules": ["q_proj"]}, [UNMATCHED]),
    ("llama", {"target_modules": ["q_proj", "lm_head"], "exclude_modules": ["lm_head"]}, []),
    ("llama", {"target_modules": r".*(q_proj|embed_tokens)", "exclude_modules": ["embed_tokens"]}, []),
    # Blocks.
    ("llama", {"layers_to_transform": 1}, []),
    ("llama", {"layers_to_transform": [0, 2], "target_modules": ["q_proj", "down_proj"]}, []),
    ("llama", {"layers_to_transform": []}, []),
    ("gpt2", {"layers_to_transform": [2], "layers_pattern": "h"}, []),
    ("llama", {"layers_to_transform": [1], "layers_pattern": ["h", "layers"]}, [UNMATCHED]),
    ("llama", {"layers_to_transform": [1], "layers_pattern": "lay.*"}, []),
    ("llama", {"layers_to_transform": [1], "layers_pattern": "layer"}, [UNMATCHED]),
    ("llama", {"layers_to_transform": [1], "layers_pattern": "(layers)"}, [INVALID]),
    ("llama", {"layers_to_transform": [0], "target_modules": ["model.layers.2.self_attn.q_proj", "v_proj"]}, []),
    ("llama", {"layers_to_transform": [1, 7]}, [UNMATCHED]),
    ("llama", {"layers_to_transform": [7]}, [UNMATCHED]),
    ("llama", {"layers_to_transform": [1], "target_modules": "all-linear"}, [INVALID]),
    ("llama", {"layers_pattern": "layers", "target_modules": r".*q_proj"}, [INVALID]),
    ("llama", {"layers_pattern": "layers"}, [INVALID]),
    # Ranks and alphas: the first key that matches, each table by itself.
    ("llama", {"r": 8, "rank_pattern": {"q_proj": 4}, "alpha_pattern": {"v_proj": 16}}, []),
    ("llama", {"target_modules": ALL, "rank_pattern": {"proj": 2, "q_proj": 4, "model.layers.0.self_attn.q_proj": 6, ".*_proj": 3}}, [UNMATCHED]),
    ("llama", {"target_modules": ALL, "rank_pattern": {"q_proj": 4, "model.layers.0.self_attn.q_proj": 6, ".*_proj": 3}}, []),
    ("llama", {"target_modules": ALL, "rank_pattern": {"model.layers.0.self_attn.q_proj": 6, "q_proj": 4}, "alpha_pattern": {"q_proj": 2, "model.layers.0.self_attn.q_proj": 24}}, []),
    ("qwen3", {"r": 4, "alpha": 8, "rslora": True, "target_modules": "all-linear", "rank_pattern": {r"layers\.\d\.mlp\.(up|down)_proj": 2}, "alpha_pattern": {"[^.]*_proj": 5, "down_proj": 1}}, []),
    ("llama", {"rank_pattern": {"_proj": 2}}, [UNMATCHED]),
    ("llama", {"rank_pattern": {"k_proj": 2}, "alpha_pattern": {"^q_proj": 3}}, [UNMATCHED]),
    ("llama", {"rank_pattern": {"k_proj": 2, "b|a": 7}}, [UNMATCHED]),
    ("gpt2", {"target_modules": ["c_attn", "c_proj"], "rank_pattern": {"attn.c_proj": 2, "c_proj": 5}, "alpha_pattern": {"h.1.mlp.c_proj": 3}}, []),
    # Modules in full, by the end of their names, at a dot or not.
    ("llama", {"modules_to_save": ["norm"]}, []),
    ("qwen3", {"modules_to_save": ["q_norm", "lm_head"]}, []),
    ("llama", {"modules_to_save": ["embed_tokens", "1.input_layernorm"]}, []),
    ("gpt2", {"modules_to_save": ["ln_f", "wpe"]}, []),
    ("llama", {"target_modules": ["q_proj", "lm_head"], "modules_to_save": ["lm_head"]}, []),
    ("llama", {"target_modules": r".*\.(q_proj|norm)", "modules_to_save": ["model.norm"]}, []),
    ("qwen2", {"modules_to_save": ["lm_head"]}, [TIED]),
    ("qwen2", {"modules_to_save": ["embed_tokens", "norm"]}, [TIED]),
    ("gpt2", {"modules_to_save": ["wte"]}, [TIED]),
    ("llama", {"modules_to_save": ["norms"]}, [UNMATCHED]),
    ("llama", {"modules_to_save": ["k_proj"]}, [UNSUPPORTED]),
    ("llama", {"modules_to_save": ["mlp"]}, [UNSUPPORTED]),
    ("llama", {"target_modules": ["embed_tokens", "w1"], "modules_to_save": ["mlp", "w2"]}, [UNSUPPORTED] * 2 + [UNMATCHED] * 2),
    ("llama", {"r": 0}, [INVALID]),
    ("qwen2", {"r": 17}, []),
]
CONFIGS = [  # model, settings
    ("llama", {"r": 4, "alpha": 8, "target_modules": "all-linear", "dropout": 0.05}),
    ("gpt2", {"rslora": True, "target_modules": ["c_attn", "c_proj"], "layers_to_transform": [0, 2], "layers_pattern": "h", "modules_to_save": ["ln_f"]}),
    ("qwen2", {"init": "gaussian", "target_modules": r".*\.(q|v)_proj", "exclude_modules": ["1.self_attn.v_proj"], "alpha": 2.5}),
    ("qwen3", {"target_modules": "all-linear", "rank_pattern": {"mlp.up_proj": 4}, "alpha_pattern": {"q_proj": 16, "[a-z]*_proj": 2}}),
]


def peft(name, settings):
    config = LoraConfig(task_type="CAUSAL_LM", **{WORDS.get(key, key): value for key, value in settings.items()})
    return get_peft_model(model(name), config)


def result(name, settings):
    try:
        made = peft(name, settings)
    except Exception as error:  # whatever PEFT, re or torch raise
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
    targets, saved, start = {}, [], "base_model.model."
    for key, module in made.named_modules(remove_duplicate=False):
        if isinstance(module, LoraLayer):
            targets[key.removeprefix(start)] = [module.r["default"], module.scaling["default"]]
        elif isinstance(module, ModulesToSaveWrapper):
            saved.append(key.removeprefix(start))
    return {"targets": targets, "saved": saved}


def written(name, settings):
    made = peft(name, settings)
    made.create_or_update_model_card = lambda folder: None  # no README.md
    with tempfile.TemporaryDirectory() as folder:
        made.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
    for key in ["target_modules", "exclude_modules"]:  # sets, in no order
        if isinstance(config[key], list):
            config[key].sort()
    return config


cases = [dict(model=name, settings=settings, refused=refused, peft=result(name, settings)) for name, settings, refused in CASES]
configs = [dict(model=name, settings=settings, file=written(name, settings)) for name, settings in CONFIGS]
lines = ",\n".join(json.dumps(case) for case in cases)
models = ",\n".join(f"{json.dumps(name)}: {json.dumps(modules(model(name)))}" for name in ["llama", "qwen2", "qwen3", "gpt2"])
files = ",\n".join(json.dumps(config) for config in configs)
(HERE / "adapters" / "settings.json").write_text(f'{{"models": {{\n{models}\n}}, "cases": [\n{lines}\n], "configs": [\n{files}\n]}}\n')
for case in cases:
    made = case["peft"].get("error") or f'{len(case["peft"]["targets"])} targets, {len(case["peft"]["saved"])} saved'
    print(case["model"], json.dumps(case["settings"]), case["refused"], "·", made)
    assert "error" not in case["peft"] or case["refused"], "PEFT fails and the case says nothing"
