"""Whether transformers makes of a folder what it should: logits beside a plain forward pass in float64, and a text that ends at every end id.

usage: transformers_reads.py JOBS.json RESULTS.json      jobs: [{"folder", "ids", "logits", "ends"?}]; "logits": a .npy file; "ends": the ids at
which `generate` has to stop
"""
import json
import sys

import numpy as np
import torch
import transformers

LONGEST = 24
transformers.logging.set_verbosity_error()


def continued(model, prompt, **options):
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), do_sample=False, max_new_tokens=LONGEST, **options)
    return out[0, len(prompt) :].tolist()


def stops(model, end):
    """How a text ends that would go on past `end`: a prompt is sought whose best continuation begins with it."""
    vocabulary = model.config.vocab_size
    with torch.no_grad():
        for first in range(vocabulary):
            prompts = torch.tensor([[first, second] for second in range(vocabulary)])
            best = model(prompts).logits[:, -1].argmax(-1)
            for prompt in prompts[best == end].tolist():
                free = continued(model, prompt, eos_token_id=-1)
                if len(free) == LONGEST and free[0] == end:
                    return {"end": end, "prompt": prompt, "said": continued(model, prompt), "without_ends": len(free)}
    return {"end": end, "prompt": None}


def spoken(folder, ids):
    """The text of the ids, and its ids again."""
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # a file that tokenizers cannot read is any Exception
        return {"tokenizer": str(error)}
    text = tokenizer.decode(ids)
    return {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False)}


def answer(folder, ids, logits, ends=()):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32).eval()
    with torch.no_grad():
        found = model(torch.tensor([ids])).logits[0].double().numpy()
    expected = np.load(logits)
    return spoken(folder, ids) | {
        "architecture": type(model).__name__,
        "worst": float(np.abs(found - expected).max()),
        "largest": float(np.abs(expected).max()),
        "ends": model.generation_config.eos_token_id,
        "stops": [stops(model, end) for end in ends],
    }


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    with open(sys.argv[2], "w") as out:
        json.dump([answer(**job) for job in jobs], out)


main()
