"""What Python PEFT makes of adapter folders, and folders that it saves itself. In float64, on one thread.

usage: peft_reads.py SITE JOBS.json RESULTS.json      SITE: where PEFT lies; jobs, with results in the same order:
  {"base", "adapter", "ids"}                  {"loss", "unused", "missing", "other"}: the mean cross-entropy in nats of every id but the first; tensors of the
                                              file that PEFT did not take, those of its model that the file lacks, those with other values
  {"base", "save", "ids", "config", "seed"}   saves a folder with these settings and random factors, and gives its loss
"""
import json
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402
import transformers  # noqa: E402
from peft import LoraConfig, PeftModel, get_peft_model  # noqa: E402
from peft.utils import get_peft_model_state_dict  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

transformers.logging.set_verbosity_error()
# The card beside the files needs a module that nothing else here does.
PeftModel.create_or_update_model_card = lambda self, folder: None


def base_of(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager")


def loss_of(model, ids):
    model = model.double().eval()
    ids = torch.tensor([ids])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0]
        return float(torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]))


def read(base, adapter, ids):
    model = PeftModel.from_pretrained(base_of(base), adapter)
    stored = load_file(str(pathlib.Path(adapter) / "adapter_model.safetensors"))
    taken = get_peft_model_state_dict(model)
    other = [name for name in stored.keys() & taken.keys() if not torch.equal(stored[name].float(), taken[name].float())]
    unused, missing = sorted(stored.keys() - taken.keys()), sorted(taken.keys() - stored.keys())
    return {"loss": loss_of(model, ids), "unused": unused, "missing": missing, "other": sorted(other)}


def save(base, save, ids, config, seed):
    torch.manual_seed(seed)
    model = get_peft_model(base_of(base), LoraConfig(task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_B" in name:
                value.normal_(0, 0.1)
            elif value.requires_grad and "lora_A" not in name:
                value.mul_(1.25)
    model.save_pretrained(save)
    return {"loss": loss_of(model, ids)}


jobs = json.loads(pathlib.Path(sys.argv[2]).read_text())
results = [save(**job) if "save" in job else read(**job) for job in jobs]
pathlib.Path(sys.argv[3]).write_text(json.dumps(results))
