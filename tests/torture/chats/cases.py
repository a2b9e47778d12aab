"""Conversations in the chat templates of trl's wheel, as transformers renders and masks them: what a training on each may count.

usage: cases.py FOLDER [--date YYYY-MM-DD]
Writes FOLDER/models/<template>, a tiny Llama whose ids are the 256 bytes and then the special tokens, and FOLDER/cases.json. A case has the row
of a JSONL file, as text, and `rules`: the digests of examples (length, ids, counted marks), each with the rule that makes them; or the peer's `error`.
With a date that is what strftime_now writes; without one a template that asks for it is told that there is none.
"""
import argparse
import datetime
import hashlib
import importlib.util
import json
import logging
import pathlib
import random
import re
import struct

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

EQUAL = "equal"
TO_THE_END = "equal to the end token: the line end after it is not learned"
AFTER_THE_PROMPT = "equal after the generation prompt: the header before the answer is not learned"
BETWEEN = "equal from the generation prompt to the end token"
SHORTER = "equal from where an answer's own text begins: what the template writes before it is not learned"
PROMPTED = "each answer from the generation prompt to the end of its turn: the template has no marks"
ALONE = "one example for each answer: the template rewrites earlier turns"
TURN = "equal to the template for training, which writes the token that ends the last turn"
WIDER = "each answer from the generation prompt to its end token: the marks leave out what the prompt lacks, or the token that waits for a tool's result"
JOINED = "contents of parts as one text: the template reads texts"

# The special tokens of a family, as its published tokenizer_config.json has them: first the beginning, or none, then the ends of which the first is eos.
SPECIALS = {
    "cohere": [["<BOS_TOKEN>"], ["<|END_OF_TURN_TOKEN|>"]],
    "deepseek": [["<｜begin▁of▁sentence｜>"], ["<｜end▁of▁sentence｜>"]],
    "gemma4": [["<bos>"], ["<eos>", "<turn|>", "<|tool_response>"]],
    "diffusion": [["<bos>"], ["<eos>", "<turn|>", "<|tool_response>"]],
    "gemma": [["<bos>"], ["<eos>", "<end_of_turn>"]],
    "glm4": [[], ["<|endoftext|>", "<|user|>", "<|observation|>"]],
    "gptoss": [["<|startoftext|>"], ["<|return|>", "<|endoftext|>", "<|call|>"]],
    "idefics": [["<|begin_of_text|>"], ["<end_of_utterance>"]],
    "lfm2": [["<|startoftext|>"], ["<|im_end|>"]],
    "llama3": [["<|begin_of_text|>"], ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"]],
    "llava": [["<s>"], ["</s>"]],
    "muse": [["<|begin_of_text|>"], ["<|eot|>", "<|eom|>"]],
    "nemotron": [["<s>"], ["<|im_end|>"]],
    "phi3": [["<s>"], ["<|endoftext|>", "<|end|>", "<|assistant|>"]],
    "qwen": [[], ["<|im_end|>", "<|endoftext|>"]],
    "smolvlm": [["<|im_start|>"], ["<end_of_utterance>"]],
}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def conversations(end):
    """Rows by name."""
    ask, reply = said("user", "How many legs has a spider?"), said("assistant", "Eight.")
    again, last = said("user", "And an ant?"), said("assistant", "Six, of course.")
    system = said("system", "Answer shortly.")
    count = {"type": "function", "function": {"name": "count_legs", "description": "Counts the legs of an animal.", "parameters": {
        "type": "object", "properties": {"animal": {"type": "string", "description": "its name"}, "grown": {"type": "boolean"}}, "required": ["animal"]}}}
    find = {"type": "function", "function": {"name": "find", "description": "Finds \"animals\" <here> & there: été.", "parameters": {
        "type": "object", "properties": {"kinds": {"type": "array", "items": {"type": "string"}}, "size": {"type": "number", "default": 0.5},
                                         "where": {"type": "string", "enum": ["forêt", "sea"]}}, "required": ["kinds"]}}}

    def call(arguments, name="count_legs", number=1):
        return {"id": f"call{number:05}", "type": "function", "function": {"name": name, "arguments": arguments}}

    def result(text, name="count_legs", number=1):
        return said("tool", text, tool_call_id=f"call{number:05}", name=name)

    given = {"animal": "spider", "grown": True}
    wild = {"kinds": ["crab", "\u05d0"], "size": 2.0, "where": None, "note": "<été> & \"it's\"", "more": {"z": [1, -2.5e20], "a": False}}
    called = [ask, said("assistant", "", tool_calls=[call(given)]), result("8"), said("assistant", "It has eight.")]
    thought = "<think>\nAn arachnid.\n</think>\n\nEight."
    rows = {
        "one answer": [ask, reply], "two answers": [ask, reply, again, last], "system": [system, ask, reply],
        "system, three answers": [system, ask, reply, again, last, said("user", "Thanks."), said("assistant", "Gladly.")],
        "spaces": [said("system", " Answer shortly.\n"), said("user", "\n How many? \n"), said("assistant", " \n Eight,\tI say. \n\n"), said("user", " Sure? "), said("assistant", "Yes. ")],
        "an empty answer": [said("user", "Be silent."), said("assistant", "")],
        "reasoning": [ask, said("assistant", "Eight.", reasoning_content="An arachnid.")],
        "reasoning twice": [ask, said("assistant", "Eight.", reasoning_content="An arachnid."), again, said("assistant", "Six.", reasoning_content="An insect.")],
        "written thoughts": [ask, said("assistant", thought)], "written thoughts, then not": [ask, said("assistant", thought), again, last],
        "a call": called, "a call, arguments a text": [ask, said("assistant", "", tool_calls=[call(json.dumps(given))]), *called[2:]],
        "null content": [ask, said("assistant", None, tool_calls=[call(given)]), *called[2:]],
        "two calls": [system, ask, said("assistant", "A moment.", tool_calls=[call(wild, "find"), call(given, number=2)]), result("[]", "find"), result("8", number=2),
                      said("assistant", "Eight."), again, last],
        "nulls": [dict(message, tool_calls=None, reasoning_content=None, name=None) for message in (ask, reply, again, last)],
        "parts": [dict(message, content=[{"type": "text", "text": message["content"]}]) for message in (ask, reply)],
        "other scripts": [said("user", "\u05e9\u05dc\u05d5\u05dd \U0001f577\ufe0f e\u0301?"), said("assistant", "\u00a0\u516b\u672c\u3002\u2028\U0001f600\u3000")],
        "special words": [said("user", f"Is {end} an end, <|im_start|>user\n a beginning?"), said("assistant", "So it is.")],
        "no answer at the end": [ask, reply, again], "the answer first": [said("assistant", "Hello, ask me."), ask, reply],
    }
    tools = {"a call": [count], "null content": [count], "two calls": [find, count]}
    return {name: {"messages": messages, **({"tools": tools[name]} if name in tools else {})} for name, messages in rows.items()}


class Family:
    """A template with its tokenizer."""

    def __init__(self, template, specials, clock):
        bos, ends = specials
        self.template, self.clock, self.ends, self.added = template, clock, ends, [*ends, *bos]
        bytes_of = pre_tokenizers.ByteLevel.alphabet()
        printable = [byte for byte in range(256) if 33 <= byte < 127 or 161 <= byte < 173 or byte >= 174]
        others = [byte for byte in range(256) if byte not in printable]
        vocabulary = {chr(256 + others.index(byte) if byte in others else byte): byte for byte in range(256)}
        assert set(vocabulary) == set(bytes_of)
        self.tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self.tokenizer.decoder = decoders.ByteLevel()
        self.tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in self.added])
        self.names = {"eos_token": ends[0], **({"bos_token": bos[0]} if bos else {})}
        self.peer = PreTrainedTokenizerFast(tokenizer_object=self.tokenizer, **self.names)

    def rendered(self, row, messages=None, opened=False, template=None):
        """The text with its mask over characters, or the error."""
        template = template or self.template
        if not self.clock and "strftime_now is defined" in template:
            template = "{%- set strftime_now = there_is_no_clock -%}" + template
        try:
            given = dict(tools=row.get("tools"), chat_template=template, add_generation_prompt=opened)
            messages = row["messages"] if messages is None else messages
            text = self.peer.apply_chat_template(messages, tokenize=False, **given)
            out = self.peer.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, **given)
            ids, starts = self.encoded(text)
            assert ids == out["input_ids"], "two encodings of one text"
        except AssertionError:
            raise
        except Exception as error:  # whatever a template does
            return None, f"{type(error).__name__}: {error}"
        counted = [False] * len(text)
        for first, past, on in zip(starts, [*starts[1:], len(text)], out["assistant_masks"]):
            counted[first:past] = [bool(on)] * (past - first)
        return text, counted

    def encoded(self, text):
        """Ids and where each begins; a character of several bytes begins all its tokens."""
        encoding = self.tokenizer.encode(text)
        return encoding.ids, [first for first, _ in encoding.offsets]

    def example(self, text, spans):
        ids, starts = self.encoded(text)
        return ids, bytes(any(first <= start < past for first, past in spans) for start in starts)

    def cut(self, text, spans, prompt, at_prompt, at_end):
        """Spans without the header up to the end of the generation prompt, and without what follows their last end token."""
        cut = []
        ends = "|".join(map(re.escape, self.ends))
        for first, past in spans:
            if at_prompt:
                # The end of the prompt, with two characters before it, stands around the beginning of the span.
                headers = (n for n in range(1, len(prompt) + 1) if text.startswith(prompt[-n:], first) and text.endswith(prompt[-n - 2:], 0, first + n))
                first += max(headers, default=0)
            found = [match.end() for match in re.finditer(ends, text[first:past])]
            cut.append((first, first + found[-1] if at_end and found else past))
        return cut


def spans_of(counted):
    """Runs of true."""
    text = "".join("x" if on else " " for on in counted)
    return [match.span() for match in re.finditer("x+", text)]


def carried(text, other, counted):
    """Spans in `text` whose surroundings are those of the spans in `other`; none where that is not one thing alone."""
    edges = [0, *[edge for span in spans_of(counted) for edge in span], len(other)]
    around = [other[first:past] for first, past in zip(edges[::2], edges[1::2])]
    if not text.startswith(around[0]) or not text.endswith(around[-1]):
        return None
    spans, at = [], len(around[0])
    for index, gap in enumerate(around[1:], 1):
        last = index == len(around) - 1
        found = len(text) - len(gap) if last else text.find(gap, at)
        if found < at or not last and not gap:
            return None
        spans.append((at, found))
        at = found + len(gap)
    return spans


def common(a, b):
    """Characters of the beginning that two texts have in common."""
    return next((n for n, (c, d) in enumerate(zip(a, b)) if c != d), min(len(a), len(b)))


def closing(family, row, at, text):
    """The special token with which the turn after the answer `at` begins, where `text`, which ends with the answer, has none that ends it."""
    message = row["messages"][at]
    call = (message.get("tool_calls") or [{}])[0]
    after = row["messages"][at + 1] if at + 1 < len(row["messages"]) else \
        said("tool", "result", tool_call_id=call["id"], name=call["function"]["name"]) if call else said("user", "question")
    if after["role"] == "assistant":
        return ""
    # Another turn may change an answer: then that of a short conversation tells.
    short = [said("user", "question"), said("assistant", "answer", **({"tool_calls": [call]} if call else {}))]
    for messages, text in ((row["messages"][:at + 1], text), (short, family.rendered(row, short)[0])):
        longer = text and family.rendered(row, [*messages, after])[0]
        if longer and longer.startswith(text):
            found = re.match(r"\s*(?:" + "|".join(map(re.escape, family.added)) + ")", longer[len(text):])
            if found:
                return found.group()
    return ""


def after_previous(family, row, at, text, opened, start):
    """Where the answer begins if `start` is within the message before it: where the text after that message ends like the prompt."""
    def changed(place):
        message = row["messages"][place]
        content = message.get("content")
        if not isinstance(content, str):
            return None
        other = dict(message, content="y" if content.lstrip().startswith("x") else "x")
        return family.rendered(row, [*row["messages"][:place], other, *row["messages"][place + 1:at + 1]])[0]
    before = changed(at - 1) if at else None
    previous = len(text) - common(text[::-1], before[::-1]) if before not in (None, text) else 0
    if start >= previous or opened is None:
        return start
    mine = changed(at)
    content = len(text) if mine is None else common(text, mine)
    return max(range(previous, content + 1), key=lambda end: common(text[:end][::-1], opened[::-1]))


def by_prompts(family, row):
    """Each answer's text, with all before it, and its span: from the end of the generation prompt to the end of its turn; none where that cannot be told."""
    found = []
    for at, message in enumerate(row["messages"]):
        if message["role"] != "assistant":
            continue
        text, _ = family.rendered(row, row["messages"][:at + 1])
        opened, _ = family.rendered(row, row["messages"][:at], True)
        before, _ = family.rendered(row, row["messages"][:at])
        content = message["content"]
        other = dict(message, content="y" if isinstance(content, str) and content.lstrip().startswith("x") else "x")
        if text is None:
            # The template wants a message of the user, which comes later: the answer is where another one would differ, up to an end token.
            (whole, _), (changed, _) = family.rendered(row), family.rendered(row, [*row["messages"][:at], other, *row["messages"][at + 1:]])
            if changed is None:
                return None
            start, after = common(whole, changed), len(whole) - common(whole[::-1], changed[::-1])
            end = re.compile("|".join(map(re.escape, family.ends))).search(whole, after)
            if end is None:
                return None
            found.append((whole[:end.end()], (start, end.end())))
            continue
        if opened is not None and text.startswith(opened):
            start = len(opened)
        elif opened is not None and before is not None and at > 0:
            # A prompt that the answer does not begin with, as an opened block of thoughts: both have a line's end or a special token before that.
            same = common(text, opened)
            specials = [match.end() for match in re.finditer("|".join(map(re.escape, family.added)), text[:same])]
            start = min(max([text.rfind("\n", 0, same) + 1, common(text, before), *specials]), same)
        else:
            # An answer that the template takes nothing before: it begins where another one would differ.
            changed, _ = family.rendered(row, [*row["messages"][:at], other])
            if changed is None:
                return None
            start = common(text, changed)
        start = after_previous(family, row, at, text, opened, start)
        if not re.search("|".join(map(re.escape, family.ends)), text[start:]):
            text += closing(family, row, at, text)
        found.append((text, (start, len(text))))
    return found


def in_whole(family, text, answers):
    """The answers' spans in the text of the whole; none where it has one of them in another form."""
    spans = []
    for part, (start, past) in answers:
        same = common(text, part)
        ends = [match.end() for match in re.finditer("|".join(map(re.escape, family.ends)), text[:same]) if match.start() >= start]
        ends = ends or [match.end() for match in re.finditer("|".join(map(re.escape, family.added)), text[:same]) if match.start() >= start]
        if same < start or not ends and same < past:
            return None
        spans.append((start, ends[-1] if ends else past))
    return spans


def within(family, text, whole, spans):
    """Whether each answer lies in its marks, with their last end token."""
    def has_all(answer, marks):
        ends = [match.end() for match in re.finditer("|".join(map(re.escape, family.ends)), text[:marks[1]]) if match.start() >= marks[0]]
        return marks[0] <= answer[0] and answer[1] <= marks[1] and (not ends or ends[-1] == answer[1])
    return len(whole) == len(spans) and all(map(has_all, whole, spans))


def beyond(family, text, whole, marks):
    """Whether each answer has its marks, and after them an end token at most."""
    return len(whole) == len(marks) and all(
        answer[0] <= marked[0] and text[marked[1]:answer[1]] in ["", *family.ends] and marked[1] <= answer[1] for answer, marked in zip(whole, marks))


def digest(examples):
    hashed = hashlib.sha256()
    for ids, mask in examples:
        hashed.update(struct.pack(f"<Q{len(ids)}I", len(ids), *ids) + mask)
    return hashed.hexdigest()


def expected_of(family, row, variant):
    """Digests by rule, and the longest example."""
    text, counted = family.rendered(row)
    if text is None:
        return None, counted
    spans, base = None, text
    if re.search(r"\{%-?\s*generation", family.template):
        spans = spans_of(counted)
    elif variant:
        other, marks = family.rendered(row, template=variant)
        if other and other.startswith(text) and other[len(text):] in family.added:
            spans, base = spans_of(marks), other
        else:
            spans = carried(text, other, marks) if other else None
    prompt = family.rendered(row, [said("user", "x")], True)[0] or ""
    answers = by_prompts(family, row)
    rules = {}

    def rule(name, *examples):
        # A rule's name is that of the first that makes the same examples.
        rules.setdefault(digest([family.example(text, spans) for text, spans in examples]), name)

    if spans is not None:
        for name, at_prompt, at_end in ((EQUAL, False, False), (TO_THE_END, False, True), (AFTER_THE_PROMPT, True, False), (BETWEEN, True, True)):
            rule(name if base is text else TURN, (base, family.cut(base, spans, prompt, at_prompt, at_end)))
    # An answer at the end may have the token that begins the next turn.
    closed = answers[-1][0] if answers and answers[-1][0].startswith(text) else text
    whole = in_whole(family, closed, answers) if answers else None
    if whole and spans is not None and within(family, closed, whole, spans):
        rule(SHORTER, (closed, whole))
    elif whole and spans is not None and beyond(family, closed, whole, family.cut(text, spans, prompt, False, True)):
        rule(WIDER, (closed, whole))
    elif whole and spans is None:
        rule(PROMPTED, (closed, whole))
    if answers and not whole:
        rule(ALONE, *((part, in_whole(family, part, [(part, span)])) for part, span in answers))
    return rules, text


def put_model(folder, family):
    folder.mkdir(parents=True)
    vocabulary, hidden, inner, rng = 256 + len(family.added), 16, 24, random.Random(5)
    shapes = {"model.embed_tokens.weight": [vocabulary, hidden], "model.norm.weight": [hidden]}
    layer = {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden],
             "mlp.down_proj": [hidden, inner], **{f"self_attn.{name}_proj": [hidden, hidden] for name in "qkvo"}}
    shapes.update({f"model.layers.0.{name}.weight": shape for name, shape in layer.items()})
    header, data = {}, b""
    for name, shape in shapes.items():
        values = [1.0] * shape[0] if len(shape) == 1 else [rng.gauss(0, 0.1) for _ in range(shape[0] * shape[1])]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    front = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(front)) + front + data)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": inner, "head_dim": 8,
              "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "vocab_size": vocabulary, "tie_word_embeddings": True, "torch_dtype": "float32"}
    ends = {"eos_token_id": [256 + index for index in range(len(family.ends))]}
    for name, value in (("config", config), ("generation_config", ends), ("tokenizer_config", family.names)):
        (folder / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer.json").write_text(family.tokenizer.to_str(), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(family.template, encoding="utf-8", newline="")


def joined(row):
    text = lambda content: "".join(part["text"] for part in content) if isinstance(content, list) else content
    return {**row, "messages": [dict(message, content=text(message["content"])) for message in row["messages"]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--date")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    day = datetime.datetime.fromisoformat(args.date or "2024-07-26")
    chat_template_utils.datetime = type("Day", (), {"now": staticmethod(lambda: day)})
    places = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
    templates = {path.stem: path.read_text(encoding="utf-8") for path in sorted(places.glob("*.jinja"))}
    cases = []
    for name, template in templates.items():
        family = Family(template, next(found for prefix, found in SPECIALS.items() if name.startswith(prefix)), args.date is not None)
        put_model(args.folder / "models" / name, family)
        for row_name, row in conversations(family.ends[-1] if name.startswith("gemma") else family.ends[0]).items():
            rules, said_by_peer = expected_of(family, row, templates.get(f"{name}_training"))
            in_parts = any(isinstance(message["content"], list) for message in row["messages"])
            if in_parts and (rules is None or "{'type'" in said_by_peer or '{"type"' in said_by_peer or row["messages"][0]["content"][0]["text"] not in said_by_peer):
                rules, text = expected_of(family, joined(row), templates.get(f"{name}_training"))
                rules, said_by_peer = {key: JOINED for key in rules or {}}, text
            cases.append({"template": name, "row": json.dumps(row), "name": row_name, "rules": rules, "length": len(said_by_peer.encode()) + 64,
                          "error": said_by_peer if rules is None else None, "clock": "strftime_now" in template})
    (args.folder / "cases.json").write_text(json.dumps(cases, ensure_ascii=False), encoding="utf-8")
    print(f"{len(templates)} templates, {len(cases)} cases")


main()
