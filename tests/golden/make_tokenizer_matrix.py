"""Makes tokenizer-matrix.json: small folders of tokenizers, and what AutoTokenizer of two versions of transformers makes of each.

    pip install transformers==5.24.0 jinja2==3.1.6       # in one environment, and in another one
    pip install transformers==4.57.6 jinja2==3.1.6
    python make_tokenizer_matrix.py record five.json     # in each of them
    python make_tokenizer_matrix.py merge five.json four.json > tokenizer-matrix.json

A folder is a document of `bases` with changes, and the files beside it. Its answers are the tokens before and after a text, the ids of
`texts`, and a rendered chat. Where the versions differ, `five` and `four` have both; a version that refuses a folder answers null.
"""
import itertools
import json
import os
import sys
import tempfile

NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
TEXTS = ["<s>hi <x> there</s>", "a<mask>b <sep>c", "<|im_start|>u\nhi<|im_end|>\n", " two  12<|endoftext|> ", "<cls>x<pad><unk> y<tool>z", "hi ABé 中t b\n\nhi"]
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}]
ALL_NAMES = "".join("{{ %s }}|" % name for name in NAMES + ["image_token", "tool_token"]) + "{% for m in messages %}{{ m.content }};{% endfor %}"
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def alphabet():
    """The characters of GPT-2's table in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def added(token, id, **flags):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}
    return {"id": id, "content": token, **flags}


def byte_level(space=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": regex}


def bpe(vocab, merges, **more):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges, **more}


def document(model, pre=None, normalizer=None, decoder=None, tokens=()):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens), "normalizer": normalizer,
            "pre_tokenizer": pre, "post_processor": None, "decoder": decoder, "model": model}


def bases():
    table = alphabet()
    space = table[32]
    words = [*table, "hi", space + "t", "<s>", "</s>", "<|im_start|>"]
    by_bytes = document(bpe({token: id for id, token in enumerate(words)}, [["h", "i"], [space, "t"]]), byte_level(), None, byte_level(True),
                        [added("<s>", 258), added("</s>", 259)])
    qwen = json.loads(json.dumps(by_bytes))
    regex = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    qwen.update(normalizer={"type": "NFC"}, pre_tokenizer={"type": "Sequence", "pretokenizers": [split, byte_level(False, False)]})
    pieces = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)], "▁", "▁t", "hi", *"abcdefghijklmnopqrstuvwxyz12<>|/_", "<|im_start|>"]
    model = bpe({token: id for id, token in enumerate(pieces)}, [["▁", "t"], ["h", "i"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokens = [added("<unk>", 0), added("<s>", 1), added("</s>", 2)]
    blank = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, blank]}
    llama = document(model, None, prepend, {"type": "Sequence", "decoders": [*back, strip]}, tokens)
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    meta = document(model, metaspace, None, {"type": "Sequence", "decoders": [*back, strip]}, tokens)
    gemma = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *pieces[3:]]
    model = bpe({token: id for id, token in enumerate(gemma)}, [["▁", "t"], ["h", "i"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    pre = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    by_gemma = document(model, pre, blank, {"type": "Sequence", "decoders": back}, [added(token, id) for id, token in enumerate(gemma[:5])])
    unigram = [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], ["▁", -3.0], *[[c, -5.0] for c in "abcdefghijklmnopqrstuvwxyz12<>|/_"], ["▁hi", -4.0]]
    by_unigram = document({"type": "Unigram", "unk_id": 0, "vocab": unigram, "byte_fallback": False},
                          {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}, None,
                          {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}, tokens)
    words = ["[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz12<>|/_", *["##" + c for c in "abcdefghijklmnopqrstuvwxyz12<>|/_"], "hi"]
    word_piece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {token: id for id, token in enumerate(words)}}
    by_words = document(word_piece, {"type": "BertPreTokenizer"}, {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                        "strip_accents": None, "lowercase": True}, {"type": "WordPiece", "prefix": "##", "cleanup": True},
                        [added(token, id) for id, token in enumerate(words[:3])])
    return {"bytes": by_bytes, "qwen": qwen, "llama": llama, "meta": meta, "gemma": by_gemma, "unigram": by_unigram, "words": by_words}


BASES = bases()


def id_in(base, token):
    vocab = BASES[base]["model"]["vocab"]
    return vocab[token] if isinstance(vocab, dict) else [piece for piece, _ in vocab].index(token)


def template(base, before=(), after=()):
    special = {token: {"id": token, "ids": [id_in(base, token)], "tokens": [token]} for token in {*before, *after}}
    piece = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    single = [*map(piece, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(piece, after)]
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special}


def processors(base):
    both = template(base, ["<s>"], ["</s>"])
    pieces = [id_in(base, "<s>"), id_in(base, "</s>")]
    return {"none": None, "begin": template(base, ["<s>"]), "both": both, "other": template(base, ["<|im_start|>"]),
            "bytes": byte_level(), "chain": {"type": "Sequence", "processors": [byte_level(), template(base, ["<s>"])]},
            "roberta": {"type": "RobertaProcessing", "sep": ["</s>", pieces[1]], "cls": ["<s>", pieces[0]], "trim_offsets": True,
                        "add_prefix_space": False}}


def cases():
    """Names and folders: base, changes of the document, files beside it, and model_type."""
    ends = {"bos_token": "<s>", "eos_token": "</s>"}

    def case(name, base, config=None, change=None, model_type="", **files):
        return name, {"base": base, "change": change or {}, "model_type": model_type or None, "config": config, **files}

    # Class × flags × post-processor.
    for name, base, kinds in [("PreTrainedTokenizerFast", "bytes", ["none", "begin", "both", "other", "bytes", "chain", "roberta"]),
                              ("LlamaTokenizer", "bytes", ["none", "begin", "both", "other"]),
                              ("LlamaTokenizerFast", "llama", ["none", "begin", "both"]), ("GPT2Tokenizer", "bytes", ["none", "begin", "both"]),
                              ("Qwen2Tokenizer", "qwen", ["none", "begin", "both"]), ("CohereTokenizerFast", "bytes", ["none", "begin"]),
                              ("GPTNeoXTokenizerFast", "bytes", ["none", "begin", "both"])]:
        for kind, begin, end in itertools.product(kinds, [None, True, False], [None, True]):
            flags = {key: value for key, value in [("add_bos_token", begin), ("add_eos_token", end)] if value is not None}
            yield case(f"{name} {base} {kind} {begin} {end}", base, {"tokenizer_class": name, **ends, **flags}, {"post_processor": processors(base)[kind]})
    for begin, end in itertools.product([None, True, False], [None, True]):
        flags = {key: value for key, value in [("add_bos_token", begin), ("add_eos_token", end)] if value is not None}
        for kind, processor in [("none", None), ("begin", template("gemma", ["<bos>"]))]:
            config = {"tokenizer_class": "GemmaTokenizer", "bos_token": "<bos>", "eos_token": "<eos>", **flags}
            yield case(f"Gemma {kind} {begin} {end}", "gemma", config, {"post_processor": processor})
    for base in ["unigram", "words"]:
        first = "<s>" if base == "unigram" else "[CLS]"
        for kind in ["PreTrainedTokenizerFast", None]:
            config = {"tokenizer_class": kind, "bos_token": first} if kind else {"bos_token": first}
            yield case(f"{base} {kind}", base, config, {"post_processor": template(base, [first])})
    # Class of the configuration alone.
    for model_type in ["llama", "gpt2", "qwen2", "qwen3", "mistral", "olmo2"]:
        base = {"qwen2": "qwen", "qwen3": "qwen", "mistral": "llama"}.get(model_type, "bytes")
        for kind in ["none", "begin"]:
            for label, config in [("absent", None), ("empty", {"model_max_length": 64}), ("named", ends), ("said", {**ends, "add_bos_token": True})]:
                yield case(f"by {model_type} {kind} {label}", base, config, {"post_processor": processors(base)[kind]}, model_type)
    # Which file names a token, and where it is.
    for kind, base in [("PreTrainedTokenizerFast", "bytes"), ("LlamaTokenizer", "meta"), ("Qwen2Tokenizer", "qwen"), ("GPT2Tokenizer", "bytes")]:
        for token, key in [("<|im_start|>", "cls_token"), ("<x>", "sep_token"), ("</s>", "mask_token")]:
            plain = {"tokenizer_class": kind, "chat_template": ALL_NAMES}
            where = f"{kind} {token}"
            id = {"<|im_start|>": id_in(base, "<|im_start|>"), "</s>": id_in(base, "</s>")}.get(token, len(BASES[base]["model"]["vocab"]))
            entry = {name: value for name, value in added(token, id).items() if name != "id"}
            loose = {**entry, "lstrip": True, "special": False}
            yield case(f"{where} text", base, {**plain, key: token})
            yield case(f"{where} object", base, {**plain, key: {"__type": "AddedToken", **entry, "rstrip": True}})
            yield case(f"{where} map", base, plain, map={key: token})
            yield case(f"{where} map object", base, plain, map={key: {key_: value for key_, value in entry.items() if key_ != "special"} | {"lstrip": True}})
            yield case(f"{where} map and decoder", base, {**plain, "added_tokens_decoder": {}}, map={key: token})
            yield case(f"{where} map against config", base, {**plain, key: "<mask>"}, map={key: token})
            yield case(f"{where} decoder", base, {**plain, "added_tokens_decoder": {str(id): entry}})
            yield case(f"{where} decoder loose", base, {**plain, key: token, "added_tokens_decoder": {str(id): loose}})
            yield case(f"{where} added", base, plain, added={token: id})
            yield case(f"{where} added and named", base, {**plain, key: token}, added={token: id})
            yield case(f"{where} additional", base, {**plain, "additional_special_tokens": [token]})
            yield case(f"{where} additional in map", base, plain, map={"additional_special_tokens": [token, "<tool>"]})
            yield case(f"{where} extra", base, {**plain, "extra_special_tokens": {"tool_token": token}})
            yield case(f"{where} own name", base, {**plain, "image_token": token})
    # Flags of tokens, ids that are not the next, and files that contradict.
    plain = {"tokenizer_class": "PreTrainedTokenizerFast", **ends}
    for flag in ["single_word", "lstrip", "rstrip", "normalized"]:
        entry = {name: value for name, value in added("<x>", 0, **{flag: True}).items() if name != "id"}
        yield case(f"decoder {flag}", "bytes", {**plain, "added_tokens_decoder": {"261": entry}})
        yield case(f"document {flag}", "bytes", plain, {"added_tokens": [added("<s>", 258, **{flag: True}), added("</s>", 259)]})
        yield case(f"both {flag}", "bytes", {**plain, "added_tokens_decoder": {"258": {**entry, "content": "<s>"}}})
        yield case(f"decoder gemma {flag}", "gemma", {"tokenizer_class": "GemmaTokenizer", "added_tokens_decoder": {"300": entry}})
    entry = {name: value for name, value in added("<x>", 0).items() if name != "id"}
    yield case("decoder beyond", "bytes", {**plain, "added_tokens_decoder": {"280": entry, "270": {**entry, "content": "<tool>"}}})
    yield case("decoder in two orders", "bytes", {**plain, "added_tokens_decoder": {"262": {**entry, "content": "<mask>"}, "261": entry}})
    yield case("decoder against the vocabulary", "bytes", {**plain, "added_tokens_decoder": {"256": {**entry, "content": "<|im_start|>"}}})
    yield case("added beyond", "bytes", plain, added={"<tool>": 290, "<x>": 270})
    yield case("document beyond", "bytes", plain, {"added_tokens": [added("<s>", 258), added("</s>", 259), added("<x>", 300)]})
    yield case("document and more", "bytes", {**plain, "sep_token": "<sep>"}, {"added_tokens": [added("<s>", 258), added("</s>", 259), added("<x>", 261)]})
    yield case("ordinary in the document", "bytes", {**plain, "sep_token": "<x>"}, {"added_tokens": [added("<x>", 261, special=False)]})
    yield case("ordinary again", "bytes", {**plain, "added_tokens_decoder": {"259": {**entry, "content": "</s>", "special": False}}})
    yield case("split", "bytes", {**plain, "split_special_tokens": True})
    yield case("split ordinary", "bytes", {**plain, "split_special_tokens": True}, {"added_tokens": [added("<x>", 261, special=False), added("<s>", 258)]})
    yield case("split llama", "llama", {"tokenizer_class": "LlamaTokenizer", "split_special_tokens": True})
    # The first space.
    for kind, base in [("PreTrainedTokenizerFast", "bytes"), ("GPT2Tokenizer", "bytes"), ("Qwen2Tokenizer", "qwen"), ("PreTrainedTokenizerFast", "qwen"),
                       ("CohereTokenizer", "bytes"), ("GPTNeoXTokenizer", "bytes"), (None, "bytes")]:
        for stated, written in itertools.product([None, True, False], [False, True]):
            pre = byte_level(written) if base == "bytes" else json.loads(json.dumps(BASES["qwen"]["pre_tokenizer"]))
            if base == "qwen":
                pre["pretokenizers"][1]["add_prefix_space"] = written
            config = {key: value for key, value in [("tokenizer_class", kind), ("add_prefix_space", stated)] if value is not None}
            yield case(f"space {kind} {base} {stated} {written}", base, config, {"pre_tokenizer": pre}, "gpt2" if kind is None else "")
    for kind, base, stated in itertools.product(["PreTrainedTokenizerFast", "LlamaTokenizer"], ["meta", "llama"], [None, True, False]):
        if (kind, base, stated) == ("LlamaTokenizer", "llama", True):
            continue  # Version 4 refuses it, and version 5 takes another rule than the document's.
        flag = {} if stated is None else {"add_prefix_space": stated}
        for legacy in [None, False]:
            more = {} if legacy is None else {"legacy": legacy}
            yield case(f"space {kind} {base} {stated} {legacy}", base, {"tokenizer_class": kind, **flag, **more}, {"post_processor": template(base, ["<s>"])})
    for kind in ["none", "begin", "both", "other", "chain"]:
        yield case(f"named by the map {kind}", "bytes", {"model_max_length": 512, "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": ALL_NAMES},
                   {"post_processor": processors("bytes")[kind]}, map=ends)
        yield case(f"named by nobody {kind}", "bytes", {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": ALL_NAMES}, {"post_processor": processors("bytes")[kind]})
        yield case(f"without settings {kind}", "bytes", None, {"post_processor": processors("bytes")[kind]}, "llama", map=ends)
    # Padding and truncation of the last training.
    pad = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 258, "pad_type_id": 0, "pad_token": "<s>"}
    yield case("padded", "bytes", {**plain, "chat_template": ALL_NAMES}, {"padding": pad})
    yield case("padded by a stranger", "bytes", {**plain, "chat_template": ALL_NAMES}, {"padding": {**pad, "pad_token": "<x>", "pad_id": 3}})
    yield case("truncated", "bytes", plain, {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}})
    # Templates.
    two = [{"name": "default", "template": "D" + TURNS}, {"name": "tool_use", "template": "T{{ tools | length }}" + TURNS}]
    for name, in_config, file, more in [
        ("none", None, None, {}), ("text", "C" + TURNS, None, {}), ("list", two, None, {}), ("list of one", two[1:], None, {}), ("file", None, "F" + TURNS, {}),
        ("file over text", "C" + TURNS, "F" + TURNS, {}), ("file over list", two, "F" + TURNS, {}), ("more", None, "F" + TURNS, {"tool_use": "M" + TURNS}),
        ("more over list", two, None, {"tool_use": "M" + TURNS}), ("more and text", "C" + TURNS, None, {"rag": "M" + TURNS}), ("empty text", "", None, {}),
        ("empty file", "C" + TURNS, "", {}), ("names", ALL_NAMES, None, {}), ("other name", None, "F" + TURNS, {"rag": "M" + TURNS}),
    ]:
        config = {**plain, "cls_token": "<cls>", "sep_token": {"__type": "AddedToken", "content": "<sep>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False}}
        if in_config is not None:
            config["chat_template"] = in_config
        yield case(f"template {name}", "bytes", config, template=file, more=more)
    # What a class decides about the text before it is split.
    for kind, (base, parts) in itertools.product(["PreTrainedTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizerFast"],
                                                 [("bytes", lambda space: byte_level(space)), ("qwen", with_split)]):
        for model_type, of_file, said in itertools.product(["llama", "qwen2", "mistral", "gpt2"], [True, False], [None, True, False]):
            config = {"tokenizer_class": kind, **({} if said is None else {"add_prefix_space": said})}
            yield case(f"space {kind} {base} {model_type} {of_file} {said}", base, config, {"pre_tokenizer": parts(of_file)}, model_type)
    normalizer = BASES["words"]["normalizer"]
    for key, value in [("none", None), ("do_lower_case", False), ("do_lower_case", True), ("strip_accents", False), ("strip_accents", True),
                       ("tokenize_chinese_chars", False)]:
        for lowercase, kind in itertools.product([True, False], ["BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast"]):
            config = {"tokenizer_class": kind, **({} if value is None else {key: value})}
            yield case(f"{kind} {lowercase} {key} {value}", "words", config, {"normalizer": {**normalizer, "lowercase": lowercase}})
    # Flags of tokens that another file names as special.
    for kind, split in itertools.product(["PreTrainedTokenizerFast", "Qwen2Tokenizer", "GPT2Tokenizer", "LlamaTokenizer"], [True, False]):
        config, tokens = {"tokenizer_class": kind, "split_special_tokens": split}, {"added_tokens": [added("<x>", 261, special=False, rstrip=True)]}
        loose = {"__type": "AddedToken", **{name: value for name, value in added("<x>", 0, lstrip=True).items() if name != "id"}}
        for key, value in [("eos_token", "<x>"), ("eos_token", loose), ("additional_special_tokens", ["<x>"]), ("additional_special_tokens", [loose])]:
            label = "object" if "__type" in json.dumps(value) else "text"
            yield case(f"ordinary but named {kind} {split} {key} {label}", "bytes", {**config, key: value}, tokens)
    yield case("code of its own", "bytes", {**plain, "tokenizer_class": "PreTrainedTokenizerFast", "auto_map": {"AutoTokenizer": ["own.Own", None]}})
    yield from published(case)


def with_split(space):
    split, _ = BASES["qwen"]["pre_tokenizer"]["pretokenizers"]
    return {"type": "Sequence", "pretokenizers": [split, byte_level(space, False)]}


def published(case):
    """Shapes of the tokenizer_config.json of widely used models, as their publishers have them, with cut lists and vocabularies."""
    def entry(token, **flags):
        return {name: value for name, value in added(token, 0, **flags).items() if name != "id"}

    def shape(name, base, model_type, config, tokens=(), processor=None, **files):
        first = len(BASES[base]["model"]["vocab"])
        listed = [added(token, first + at, **flags) for at, (token, flags) in enumerate(tokens)]
        own = [token for token in BASES[base]["added_tokens"] if base in ("llama", "gemma", "meta")]
        processor = processor({token["content"]: token["id"] for token in own + listed}) if processor else None
        decoder = {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in own + listed}
        if config is not None and config.pop("decoder", True):
            config = {"added_tokens_decoder": decoder, **config}
        return case(f"published {name}", base, config, {"added_tokens": own + listed, "post_processor": processor}, model_type, **files)

    def begins(token, chained=False):
        def made(ids):
            single = [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
            pair = [*single, {"SpecialToken": {"id": token, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}]
            made = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]}}}
            return {"type": "Sequence", "processors": [byte_level(), made]} if chained else made
        return made

    fast = {"clean_up_tokenization_spaces": True, "model_max_length": 131072, "tokenizer_class": "PreTrainedTokenizerFast"}
    special = lambda *tokens: [(token, {}) for token in tokens]
    chatml = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    yield shape("Llama-3.2", "qwen", "llama", {**fast, "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "model_input_names": ["input_ids", "attention_mask"],
                "chat_template": "{{ bos_token }}" + chatml}, special("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"), begins("<|begin_of_text|>", True),
                map={"bos_token": entry("<|begin_of_text|>"), "eos_token": entry("<|eot_id|>")})
    qwen = {"add_bos_token": False, "add_prefix_space": False, "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": None, "chat_template": chatml,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 32768, "pad_token": "<|endoftext|>",
            "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
    of_qwen = [*special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), ("<tool>", {"special": False})]
    yield shape("Qwen2.5", "qwen", "qwen2", dict(qwen), of_qwen)
    yield shape("Qwen3", "qwen", "qwen3", dict(qwen), of_qwen)
    gemma = {"add_bos_token": True, "add_eos_token": False, "bos_token": "<bos>", "clean_up_tokenization_spaces": False, "eos_token": "<eos>", "model_max_length": 1e30,
             "pad_token": "<pad>", "sp_model_kwargs": {}, "spaces_between_special_tokens": False, "tokenizer_class": "GemmaTokenizer", "unk_token": "<unk>",
             "use_default_system_prompt": False, "chat_template": "{{ bos_token }}" + chatml}
    turns = special("<start_of_turn>", "<end_of_turn>")
    yield shape("Gemma 2", "gemma", "", {**gemma, "additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"]}, turns, begins("<bos>"))
    yield shape("Gemma 3", "gemma", "", {**gemma, "boi_token": "<start_of_turn>", "extra_special_tokens": {"boi_token": "<start_of_turn>"}, "image_token": "<end_of_turn>",
                "processor_class": "Gemma3Processor", "sp_model_kwargs": None}, turns, begins("<bos>"))
    smol = {"add_prefix_space": False, "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": "<|im_start|>", "chat_template": chatml,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "model_max_length": 8192, "pad_token": "<|im_end|>", "tokenizer_class": "GPT2Tokenizer",
            "unk_token": "<|endoftext|>", "vocab_size": 49152}
    yield shape("SmolLM2", "bytes", "llama", smol, special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    yield shape("SmolLM3", "qwen", "llama", {**fast, "bos_token": None, "eos_token": "<|im_end|>", "fast": False, "pad_token": "<|im_end|>"},
                [*special("<|begin_of_text|>", "<|im_start|>", "<|im_end|>"), ("<tool>", {"special": False})], begins("<|begin_of_text|>", True), template=chatml)
    llama = {"add_bos_token": False, "add_eos_token": False, "bos_token": "<s>", "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>", "legacy": False,
             "model_max_length": 4096, "pad_token": "<|endoftext|>", "padding_side": "left", "sp_model_kwargs": {}, "tokenizer_class": "LlamaTokenizer",
             "unk_token": "<unk>", "use_default_system_prompt": False}
    ended = [("<|endoftext|>", {}), ("<|user|>", {"rstrip": True}), ("<|end|>", {"rstrip": True})]
    yield shape("Phi-3", "llama", "llama", dict(llama), ended)
    yield shape("Phi-4-mini", "qwen", "llama", {"add_bos_token": False, "add_eos_token": False, "add_prefix_space": False, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": False, "tokenizer_class": "GPT2TokenizerFast"}, ended)
    both = {**llama, "add_bos_token": True, "eos_token": "</s>", "pad_token": "</s>", "legacy": True}
    yield shape("Mistral 0.1", "llama", "mistral", {**both, "additional_special_tokens": [], "pad_token": None, "spaces_between_special_tokens": False}, (), begins("<s>"))
    yield shape("Mistral 0.3", "meta", "mistral", {**both, "add_prefix_space": None, "pad_token": None, "legacy": False}, special("[INST]", "[/INST]"), begins("<s>"))
    of_llama = {"added_tokens": [added(token, id, normalized=True) for id, token in enumerate(["<unk>", "<s>", "</s>"])]}
    yield case("published Llama-2 with its own tokens", "llama", {**both, "pad_token": None}, {**of_llama, "post_processor": template("llama", ["<s>"])}, "llama")
    digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level()]}
    yield case("published SmolLM2 with its digits", "bytes", dict(smol), {"pre_tokenizer": digits}, "llama")
    falcon = [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(), {"type": "Digits", "individual_digits": False},
              {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False}]
    yield case("published Falcon", "bytes", {"add_prefix_space": False, "eos_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"},
               {"pre_tokenizer": {"type": "Sequence", "pretokenizers": falcon}}, "llama")
    yield case("published Yi", "llama", {**llama, "bos_token": "<|startoftext|>"}, {"normalizer": BASES["llama"]["normalizer"]["normalizers"][1]}, "llama")
    yield case("published Gemma 1", "gemma", dict(gemma), {"pre_tokenizer": None, "post_processor": template("gemma", ["<bos>"])})
    yield shape("TinyLlama", "llama", "llama", {**both, "legacy": False, "chat_template": chatml}, (), begins("<s>"),
                map={"bos_token": entry("<s>"), "eos_token": entry("</s>"), "pad_token": "</s>", "unk_token": entry("<unk>")})
    yield shape("Llama-2", "llama", "llama", {"decoder": False, **both, "bos_token": {"__type": "AddedToken", **entry("<s>", normalized=True)}, "pad_token": None}, (), begins("<s>"),
                map={"bos_token": {k: v for k, v in entry("<s>", normalized=True).items() if k != "special"}, "eos_token": "</s>"})
    yield shape("GPT-2", "bytes", "gpt2", {"decoder": False, "model_max_length": 1024}, special("<|endoftext|>"))
    yield shape("Granite", "bytes", "llama", {"add_bos_token": False, "add_prefix_space": False, "additional_special_tokens": ["<|start_of_role|>"], "bos_token": "<|endoftext|>",
                "eos_token": "<|endoftext|>", "errors": "replace", "pad_token": "<|endoftext|>", "padding_side": "left", "tokenizer_class": "GPT2Tokenizer",
                "unk_token": "<|endoftext|>", "vocab_size": 49152}, special("<|endoftext|>", "<|start_of_role|>"))
    yield shape("OLMo 2", "qwen", "olmo2", {"add_prefix_space": False, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<pad>", "tokenizer_class": "GPT2Tokenizer",
                "unk_token": "<|endoftext|>", "chat_template": "{{ bos_token }}" + chatml}, [*special("<|endoftext|>", "<pad>"), ("<x>", {"special": False})])
    deep = {"add_bos_token": True, "add_eos_token": False, "bos_token": {"__type": "AddedToken", **entry("<｜begin▁of▁sentence｜>", normalized=True)}, "clean_up_tokenization_spaces": False,
            "eos_token": {"__type": "AddedToken", **entry("<｜end▁of▁sentence｜>", normalized=True)}, "legacy": True, "model_max_length": 16384, "pad_token": {"__type": "AddedToken",
            **entry("<｜end▁of▁sentence｜>", normalized=True)}, "sp_model_kwargs": {}, "tokenizer_class": "LlamaTokenizerFast", "unk_token": None, "decoder": False}
    sentence = [*special("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"), ("<think>", {"special": False})]
    for name, model_type in [("DeepSeek-R1-Distill-Qwen", "qwen2"), ("DeepSeek-R1-Distill-Llama", "llama")]:
        yield shape(name, "qwen", model_type, dict(deep), sentence, begins("<｜begin▁of▁sentence｜>", True))
    yield shape("Falcon3", "qwen", "llama", {**fast, "eos_token": "<|endoftext|>", "pad_token": "<pad>", "return_token_type_ids": False, "extra_special_tokens": {}},
                special("<|endoftext|>", "<pad>"))
    yield shape("StableLM 2", "qwen", "llama", {"add_prefix_space": False, "additional_special_tokens": ["<|reg_extra|>"], "bos_token": "<|endoftext|>", "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>", "tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>"}, special("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|reg_extra|>"))
    yield shape("Pythia", "bytes", "", {"decoder": False, "unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "add_prefix_space": False,
                "name_or_path": "EleutherAI/gpt-neox-20b", "special_tokens_map_file": "/admin/special_tokens_map.json", "tokenizer_class": "GPTNeoXTokenizer"},
                [("<|endoftext|>", {}), ("  ", {"special": False, "normalized": True})], map={"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"})
    yield shape("OPT", "bytes", "", {"decoder": False, "errors": "replace", "unk_token": {"__type": "AddedToken", **entry("</s>", normalized=True)}, "bos_token": {"__type": "AddedToken",
                **entry("</s>", normalized=True)}, "eos_token": {"__type": "AddedToken", **entry("</s>", normalized=True)}, "pad_token": {"__type": "AddedToken",
                **entry("<pad>", normalized=True)}, "add_prefix_space": False, "add_bos_token": True, "tokenizer_class": "GPT2Tokenizer"}, special("<pad>"))
    command = {"add_bos_token": True, "add_eos_token": False, "add_prefix_space": False, "bos_token": "<BOS_TOKEN>", "eos_token": "<|END_OF_TURN_TOKEN|>", "legacy": True,
               "merges_file": None, "model_max_length": 1e30, "pad_token": "<PAD>", "sp_model_kwargs": {}, "tokenizer_class": "CohereTokenizer", "unk_token": None,
               "use_default_system_prompt": False, "chat_template": [{"name": "default", "template": "{{ bos_token }}" + chatml}, {"name": "rag", "template": "R"}]}
    yield shape("Command R", "bytes", "", command, special("<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<PAD>"), begins("<BOS_TOKEN>"))


def written(case, folder):
    base = json.loads(json.dumps(BASES[case["base"]]))
    base.update(case["change"])
    files = {"tokenizer.json": base, "tokenizer_config.json": case["config"], "special_tokens_map.json": case.get("map"),
             "added_tokens.json": case.get("added"), "config.json": {"model_type": case["model_type"]} if case["model_type"] else {}}
    for name, value in files.items():
        if value is not None:
            json.dump(value, open(os.path.join(folder, name), "w"), ensure_ascii=False)
    if case.get("template") is not None:
        open(os.path.join(folder, "chat_template.jinja"), "w").write(case["template"])
    for name, text in (case.get("more") or {}).items():
        os.makedirs(os.path.join(folder, "additional_chat_templates"), exist_ok=True)
        open(os.path.join(folder, "additional_chat_templates", f"{name}.jinja"), "w").write(text)


def answer(case):
    from transformers import AutoTokenizer
    with tempfile.TemporaryDirectory(prefix="matrix") as folder:
        written(case, folder)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder)
            plain = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
            whole = [tokenizer(text)["input_ids"] for text in TEXTS]
        except Exception as error:
            print(f"refused: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            return None
    at = [next(at for at in range(len(all)) if all[at:at + len(ids)] == ids) if ids else None for ids, all in zip(plain, whole)]
    frames = {(tuple(all[:at]), tuple(all[at + len(ids):])) for at, ids, all in zip(at, plain, whole) if ids}
    assert len(frames) == 1, (frames, case)
    chats = []
    for tools in [None, TOOLS]:
        try:
            chats.append(tokenizer.apply_chat_template(CHAT, tools=tools, tokenize=False))
        except ValueError:
            chats.append(None)
    return {"frame": [list(part) for part in frames.pop()], "ids": plain, "chats": chats}


def record(path):
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    answers = {}
    for name, case in cases():
        assert name not in answers, name
        print(name, file=sys.stderr)
        answers[name] = answer(case)
    json.dump(answers, open(path, "w"))


def merge(five, four):
    five, four = (json.load(open(path)) for path in (five, four))
    table, rows = {}, []

    def place(value):
        return table.setdefault(json.dumps(value, ensure_ascii=False, separators=(",", ":")), len(table))

    for name, case in cases():
        if five[name] is None and four[name] is None:
            print(f"left out, both refuse: {name}", file=sys.stderr)
            continue
        row = {"name": name, **{key: value for key, value in case.items() if value or value == ""}}
        one = lambda answer: answer and [place(answer["frame"]), *map(place, answer["ids"]), *map(place, answer["chats"])]
        pair = one(five[name]), one(four[name])
        row.update({"both": pair[0]} if pair[0] == pair[1] else {"five": pair[0], "four": pair[1]})
        rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    print('{"versions":["5.24.0","4.57.6"],"texts":%s,"chat":%s,"tools":%s,' % (dump(TEXTS), dump(CHAT), dump(TOOLS)))
    print('"bases":%s,' % dump(BASES))
    print('"answers":[\n%s\n],' % ",\n".join(table))
    print('"cases":[\n%s\n]}' % ",\n".join(rows))


if __name__ == "__main__":
    record(sys.argv[2]) if sys.argv[1] == "record" else merge(*sys.argv[2:])
