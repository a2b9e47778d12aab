"""Makes data-words.json: for each word of the account of data, a file that raises it, with the model that reads it.

A case: `code`; `model`, a folder of inputs/, with `files` in place of its own; the file by `name` and `text` or `base64`; `options` of a run; and what
it gives: `refused`, or a warning; `lines`, the rows that are named. It also makes the folder inputs/boundary: the bytes with one merge, "bc".
"""

import base64
import gzip
import json
import pathlib
import shutil

here = pathlib.Path(__file__).parent


def rows(*each):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in each)


def chat(*said):
    roles = ["user", "assistant"]
    return {"messages": [{"role": roles[at % 2], "content": text} if isinstance(text, (str, list)) else text for at, text in enumerate(said)]}


PAIR = {"prompt": "2+2?", "completion": "4"}
PLAIN, TURN, BEGUN = "forms/model", "turn-end/model", "written-end/model"
RAISING = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}{{ m.content }}<|im_end|>{% endfor %}"
part = [{"type": "image_url", "image_url": {"url": "a.png"}}]


def case(code, name, data, model=PLAIN, refused=False, lines=(), options=None, files=None):
    content = {"text": data} if isinstance(data, str) else {"base64": base64.b64encode(data).decode()}
    return {"code": code, "model": model, "files": files or {}, "name": name, **content, "options": options or {}, "refused": refused, "lines": list(lines)}


cases = [
    case("data.form", "rows.txt", rows(PAIR)),
    case("data.form.contradicts", "rows.json", "a,b\nc,d\n", refused=True, options={"form": "json"}),
    case("data.encoding", "a.txt", "café au lait".encode("latin-1"), refused=True),
    case("data.row", "rows.jsonl", rows(PAIR) + '{"prompt": \n' + rows(PAIR), refused=True, lines=[2]),
    case("data.row.skipped", "rows.jsonl", rows(PAIR) + '{"prompt": \n' + rows(PAIR), lines=[2], options={"on_bad_row": "skip"}),
    case("data.shape", "rows.jsonl", rows(PAIR, {"question": "2+2?", "answer": "4"}), refused=True, lines=[2]),
    case("data.columns", "rows.jsonl", rows({"question": "2+2?", "answer": "4"}, {"question": "3+3?"}), refused=True, lines=[2], options={"columns": {"prompt": "question", "completion": "answer"}}),
    case("data.columns.unused", "rows.jsonl", rows(PAIR, {**PAIR, "source": "a book"}), lines=[2]),
    case("data.message.part", "rows.jsonl", rows(chat("2+2?", "4"), chat(part, "4")), refused=True, lines=[2]),
    case("data.message.weight", "rows.jsonl", rows(chat("2+2?", "4"), chat("2+2?", {"role": "assistant", "content": "4", "weight": 0.5})), refused=True, lines=[2]),
    case("data.template", "rows.jsonl", rows(chat("2+2?", "4"), chat({"role": "system", "content": "Be brief."}, "4")), refused=True, lines=[2], files={"chat_template.jinja": RAISING}),
    case("data.end.unknown", "rows.jsonl", rows(PAIR), files={"tokenizer_config.json": "{}"}),
    case("data.end.turn", "rows.jsonl", rows(chat("2+2?", "4")), model=TURN),
    case("data.end.written", "rows.jsonl", rows(PAIR, {"prompt": "hi", "completion": "yo</s>"}), model=BEGUN, lines=[2]),
    case("data.begin.written", "rows.jsonl", rows(PAIR, {"prompt": "<s>hi", "completion": "yo"}), model=BEGUN, lines=[2]),
    case("data.layout", "rows.jsonl", rows(PAIR, {"instruction": "Add.", "input": "2 and 2", "output": "4"}), model=BEGUN, lines=[2]),
    case("data.long", "rows.jsonl", rows(PAIR, *[{"prompt": "2+2?", "completion": "4 " * 50}] * 3), lines=[2, 3, 4], options={"seq_len": 64}),
    case("data.untaught", "rows.jsonl", rows(PAIR, *[{"prompt": "2 + " * 40, "completion": "4"}] * 3), lines=[2, 3, 4], options={"seq_len": 64}),
    case("data.answer.empty", "rows.jsonl", rows(PAIR, {"prompt": "2+2?", "completion": ""}), model=BEGUN, lines=[2]),
    case("data.settings.unused", "a.txt", "What is 2+2? 4. " * 20, options={"loss_on": "last"}),
    case("data.empty", "a.txt", "", refused=True),
    case("data.too-short", "a.txt", "a", refused=True, options={"validation_fraction": 0}),
    case("data.parquet", "a.parquet", b"PAR1 and no more", refused=True),
    case("data.gzip", "a.txt.gz", gzip.compress(b"What is 2+2? 4. " * 40, mtime=0)[:-20], refused=True),
    case("data.gzip.trailing", "rows.jsonl.gz", gzip.compress(rows(PAIR).encode(), mtime=0) + b"more"),
    case("data.kind", "rows.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n", refused=True),
    case("data.boundary", "rows.jsonl", rows(PAIR, {"prompt": "ab", "completion": "cd"}), model="boundary", lines=[2]),
]
(here / "data-words.json").write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")

to = here / "inputs" / "boundary"
shutil.rmtree(to, ignore_errors=True)
shutil.copytree(here / "inputs" / PLAIN, to)
tokenizer = json.loads((to / "tokenizer.json").read_text())
vocab = tokenizer["model"]["vocab"]
# The byte that no text has gives its row to the merge.
nul = next(token for token, id in vocab.items() if id == 0)
tokenizer["model"]["vocab"] = {"bc" if token == nul else token: id for token, id in vocab.items()}
tokenizer["model"]["merges"] = ["b c"]
(to / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False, indent=1))
