"""LoRA adapters as PEFT writes them, for models of models/, with the logits of the adapted model before any merge.

usage: make_adapters.py   (peft 0.17.1, transformers 4.44.2, torch 1.13 on the CPU; writes adapters/<name>/ and adapters/logits.json)
The matrices are uniform in ±0.3 from torch's generator; PEFT's own start, B = 0, would change nothing. The forward pass is float64 but
for what transformers itself does in float32: rotary angles, softmax and norms.
"""
import json
import pathlib
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    "qwen2-patterns": dict(r=4, lora_alpha=8, use_rslora=True, target_modules=PROJECTIONS + ["embed_tokens", "lm_head"],
                           rank_pattern={"layers.0.self_attn.q_proj": 2, r"model\.layers\.\d\.mlp\.up_proj": 3},
                           alpha_pattern={"down_proj": 5, "layers.1.self_attn.k_proj": 16}),
    "qwen2-tied-embedding": dict(r=2, lora_alpha=4, target_modules=["embed_tokens", "q_proj"]),
    "qwen2-saved": dict(r=2, lora_alpha=4, target_modules="all-linear", modules_to_save=["lm_head", "norm"]),
    "gpt2": dict(r=3, lora_alpha=6, target_modules=["c_attn", "c_proj", "c_fc", "wte"], fan_in_fan_out=True),
}

logits = {}
for name, options in ADAPTERS.items():
    out = HERE / "adapters" / name
    shutil.rmtree(out, ignore_errors=True)
    model = AutoModelForCausalLM.from_pretrained(HERE / "models" / name.split("-")[0], torch_dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
    torch.manual_seed(0)
    with torch.no_grad():
        for key, parameter in sorted(model.named_parameters()):
            if parameter.requires_grad:
                parameter.copy_(torch.rand(parameter.shape) * 0.6 - 0.3)
    model.create_or_update_model_card = lambda folder: None  # no README.md
    model.save_pretrained(out, save_embedding_layers="auto")
    # Keys in order and no path of this machine, so that the files are the same everywhere.
    config = json.loads((out / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = name.split("-")[0]
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()
    (out / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(dict(sorted(load_file(out / "adapter_model.safetensors").items())), out / "adapter_model.safetensors", {"format": "pt"})
    with torch.no_grad():
        logits[name] = model.double()(input_ids=torch.tensor([IDS])).logits[0].tolist()
    print(name, sorted(load_file(out / "adapter_model.safetensors"))[:4], file=sys.stderr)
(HERE / "adapters" / "logits.json").write_text(json.dumps({"ids": IDS, "logits": logits}) + "\n")
