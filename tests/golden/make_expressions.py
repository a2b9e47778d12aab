"""expressions.json: what Jinja2 3.1.6 makes of some hundred pieces of chat templates, in the environment that Hugging Face's transformers
renders chat templates in: an ImmutableSandboxedEnvironment that trims blocks, with loop controls and generation blocks, json.dumps as the filter
`tojson`, `raise_exception`, `strftime_now` (of one day), and a `dict` and a `namespace` that reach nothing of Python.

A case is a list: the template and its output, or the template, null and the class of the error.

usage: pip install jinja2==3.1.6; python make_expressions.py expressions.txt > expressions.json
In expressions.txt a line of four dashes or a heading of four hashes stands before each template. `\\r` at the end of a line is a carriage return.
"""
import datetime
import json
import pathlib
import re
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils

DATE = "2024-07-26"
MESSAGES = [
    {"role": "system", "content": " Be brief.\n"},
    {"role": "user", "content": "What is caf\u00e9 <b> & 'tea'?"},
    {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "find", "arguments": {"kind": "caf\u00e9", "within": 1.0, "open": True}}}]},
    {"role": "tool", "content": "[]", "name": "find"},
    {"role": "assistant", "content": [{"type": "text", "text": "None."}, {"type": "text", "text": " Sorry!"}]},
]
NAMES = {
    "tools": [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {
        "tags": {"type": "array", "items": {"type": "string"}}, "kind": {"type": ["string", "null"], "enum": ["caf\u00e9", "it's"]}}, "required": ["kind"]}}}],
    "documents": None,
    "s": "Hello, World", "words": "one two  two three", "lines": "a\nb\r\nc\n\nd", "padded": "  x y\t\n", "quote": "it's \"so\" \\ \n", "empty": "", "uni": "\u00e9\u00df\u0130 \U0001f600 \u4f60\u597d\u3000",
    "numbers": [3, 1, 2], "floats": [0.1, 2.0, 1e16, 1.5e-07, 123456789.125, -0.0, 1e22], "big": 12345678901234567890, "n": 7, "neg": -7, "f": 2.5, "t": True, "no": False, "nil": None,
    "mixed": [1, "1", 1.0, None, True, [], {}], "nested": {"b": {"y": [1, 2, {"z": "q'"}]}, "a": None, "C": "c"}, "none": [],
    "people": [{"name": "Ann", "age": 30, "city": "Rome"}, {"name": "bob", "age": 25, "city": "Oslo"}, {"name": "Cid", "age": 30, "city": "Rome", "tag": "x"}],
    "keyed": {"items": 1, "keys": 2, "get": 3, "length": 4, "values": 5}, "void": {},
}


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("write"), [], [], body).set_lineno(line)

    def write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime.fromisoformat(DATE).strftime(format)


class Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        names = dict(*args[1:], **kwargs)
        for name in names:
            refuse_private(name)
        jinja2.utils.Namespace.__init__(args[0], names)

    def __setitem__(self, name, value):
        refuse_private(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def refuse_private(name):
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(name)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals.update(raise_exception=raise_exception, strftime_now=strftime_now, dict=Dict(), namespace=Namespace)

text = re.sub(r"^####.*\n", "----\n", "\n" + pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), flags=re.M)
cases = []
for source in text.split("\n----\n")[1:]:
    source = re.sub(r"\\r(?=\n|$)", "\r", source.removesuffix("\n"))
    words = {**NAMES, "messages": MESSAGES, "add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>"}
    try:
        output = env.from_string(source).render(json.loads(json.dumps(words)))
        # Where a value is in memory is nothing that a template means to write.
        assert not re.search(r" at 0x[0-9a-f]+>", output), source
        cases.append([source, output])
    except Exception as error:  # whatever a template does
        cases.append([source, None, type(error).__name__])
assert len({case[0] for case in cases}) == len(cases), sorted(case[0] for case in cases if [other[0] for other in cases].count(case[0]) > 1)
print(f"{len(cases)} templates", file=sys.stderr)
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
head = json.dumps({"made_with": {"jinja2": jinja2.__version__, "python": sys.version.split()[0]}, "date": DATE, "messages": MESSAGES, "names": NAMES}, ensure_ascii=False)
print(f'{head[:-1]}, "cases": [\n{lines}\n]}}')
