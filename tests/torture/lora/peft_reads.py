"""What Python PEFT makes of adapter folders, and folders that it saves itself. In float64, on one thread.

usage: peft_reads.py SITE JOBS.json RESULTS.json      SITE: where PEFT lies; jobs, with results in the same order:
  {"base", "adapter", "ids"}                  {"loss", "unused", "missing", "other"}: the mean cross-entropy in nats of every id but the first; tensors of the
                                              file that PEFT did not take, those of its model that the file lacks, those with other values
  {"base", "save", "ids", "config", "seed", "grow"?}   saves a folder with these settings and random factors, and gives its loss; with `grow` of a model
                                              whose vocabulary has so many tokens more
  {"base", "adapter", "ids", "merged", "grow"?}  {"off", "largest"}: how far the logits of a merged folder are off those of base and adapter, and the largest of them
  {"auto"}                                    {"base"} or {"refused"}: the base that PEFT loads by itself beside this adapter, or why it loads none
"""
import json
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402
import transformers  # noqa: E402
from peft import AutoPeftModelForCausalLM, LoraConfig, PeftModel, get_peft_model  # noqa: E402
from peft.utils import get_peft_model_state_dict  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

transformers.logging.set_verbosity_error()
# The card beside the files needs a module that nothing else here does.
PeftModel.create_or_update_model_card = lambda self, folder: None


def base_of(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager")


def grown(folder, tokens):
    model = base_of(folder)
    if tokens:
        model.resize_token_embeddings(model.config.vocab_size + tokens)
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model.double().eval()(input_ids=torch.tensor([ids])).logits[0]


def loss_of(model, ids):
    return float(torch.nn.functional.cross_entropy(logits_of(model, ids)[:-1], torch.tensor(ids[1:])))


def read(base, adapter, ids):
    model = PeftModel.from_pretrained(base_of(base), adapter)
    stored = load_file(str(pathlib.Path(adapter) / "adapter_model.safetensors"))
    taken = get_peft_model_state_dict(model)
    other = [name for name in stored.keys() & taken.keys() if not torch.equal(stored[name].float(), taken[name].float())]
    unused, missing = sorted(stored.keys() - taken.keys()), sorted(taken.keys() - stored.keys())
    return {"loss": loss_of(model, ids), "unused": unused, "missing": missing, "other": sorted(other)}


def merged(base, adapter, ids, merged, grow=0):
    exact, found = logits_of(PeftModel.from_pretrained(grown(base, grow), adapter), ids), logits_of(base_of(merged), ids)
    return {"off": float((exact - found).abs().max()), "largest": float(exact.abs().max())}


def auto(auto):
    try:
        return {"base": AutoPeftModelForCausalLM.from_pretrained(auto).get_base_model().config._name_or_path}
    except Exception as error:
        return {"refused": str(error)}


def save(base, save, ids, config, seed, grow=0):
    torch.manual_seed(seed)
    model = get_peft_model(grown(base, grow), LoraConfig(task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_B" in name or "lora_embedding_A" in name:
                value.normal_(0, 0.1)
            elif value.requires_grad and "lora_" not in name:
                value.mul_(1.25)
    model.save_pretrained(save)
    return {"loss": loss_of(model, ids)}


jobs = json.loads(pathlib.Path(sys.argv[2]).read_text())
KINDS = {"save": save, "merged": merged, "auto": auto}
results = [next((KINDS[kind] for kind in KINDS if kind in job), read)(**job) for job in jobs]
pathlib.Path(sys.argv[3]).write_text(json.dumps(results))
