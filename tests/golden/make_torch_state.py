"""Trains the golden model llama3 with torch.optim.AdamW over three groups for five steps, saves its weights and the optimizer's state with its
names, and continues for ten steps on the same data from their beginning, whose losses go into torch/losses.json.

    pip install torch==2.15.0 transformers==4.57.6 safetensors==0.8.0
    python make_torch_state.py
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
OUT = HERE / "torch"
BATCH, LENGTH, BEFORE, AFTER = 2, 16, 5, 10
IDS = [(i * i // 3 + i) % 12 for i in range(1000)]

torch.manual_seed(0)
model = AutoModelForCausalLM.from_pretrained(HERE / "models/llama3", dtype=torch.float32, attn_implementation="eager")
model.train()


def group_of(name):
    return 0 if "norm" in name else 1 if "mlp" in name else 2


groups = [
    {"lr": 1e-3, "weight_decay": 0.0, "params": []},
    {"lr": 2e-3, "weight_decay": 0.1, "params": []},
    {"lr": 5e-4, "weight_decay": 0.01, "params": []},
]
for name, parameter in model.named_parameters():
    groups[group_of(name)]["params"].append((name, parameter))
optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8)


def step(index):
    """One step on the sequences of its number, in the order of the data."""
    starts = [(index * BATCH + row) * LENGTH for row in range(BATCH)]
    ids = torch.tensor([IDS[start : start + LENGTH] for start in starts])
    targets = torch.tensor([IDS[start + 1 : start + LENGTH + 1] for start in starts])
    logits = model(ids).logits.double()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for index in range(BEFORE):
    step(index)
OUT.mkdir(exist_ok=True)
save_file(dict(model.named_parameters()), OUT / "model.safetensors")
# These lines are those of crate/FORMATS.md.
state = optimizer.state_dict()
names = [name for group in state["param_groups"] for name in group["param_names"]]
entries = [(names[i], entry) for i, entry in state["state"].items()]
tensors = {f"state.{name}.{key}": value for name, entry in entries for key, value in entry.items()}
save_file(tensors, OUT / "optimizer.safetensors", {"param_groups": json.dumps(state["param_groups"])})
losses = [step(index) for index in range(AFTER)]
(OUT / "losses.json").write_text(json.dumps(losses) + "\n")
print(losses)
