"""Training steps of a model in PyTorch, eager, on the batches that `tabtune bench gpu` trained on.

stdin: {"model", "settings": {learning_rate, beta1, beta2, eps, weight_decay, max_grad_norm}, "warm_ups",
"runs": [{precision, batch_size, seq_len, batches: [[inputs, targets], ...]}, ...]}; stdout: a line of JSON with the
versions, or {"missing": reason}, then a line for each run.
"""
import json
import sys
import time


def say(line):
    print(json.dumps(line), flush=True)


def main():
    ask = json.load(sys.stdin)
    try:
        import torch
        import transformers
    except ImportError as error:
        return say({"missing": str(error)})
    # f32 is f32: no TF32 in products.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else device
    say({"torch": torch.__version__, "transformers": transformers.__version__, "device": name})

    def settle():
        if device != "cpu":
            getattr(torch, device).synchronize()

    settings = ask["settings"]
    for run in ask["runs"]:
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[run["precision"]]
        model = transformers.AutoModelForCausalLM.from_pretrained(ask["model"], torch_dtype=dtype).to(device).train()
        parameters = list(model.parameters())
        betas = (settings["beta1"], settings["beta2"])
        optimizer = torch.optim.AdamW(
            parameters, lr=settings["learning_rate"], betas=betas, eps=settings["eps"], weight_decay=settings["weight_decay"]
        )
        shape = (run["batch_size"], run["seq_len"])
        batches = [[torch.tensor(ids, device=device).view(shape) for ids in batch] for batch in run["batches"]]
        millis, losses = [], []
        for inputs, targets in batches:
            settle()
            began = time.perf_counter()
            optimizer.zero_grad()
            logits = model(input_ids=inputs, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, settings["max_grad_norm"])
            optimizer.step()
            losses.append(loss.item())
            settle()
            millis.append(1e3 * (time.perf_counter() - began))
        attention = getattr(model.config, "_attn_implementation", None)
        say({"precision": run["precision"], "batch_size": run["batch_size"], "ms": millis, "losses": losses, "attention": attention})
        del model, parameters, optimizer, batches, logits, loss
        if device == "cuda":
            torch.cuda.empty_cache()


main()
