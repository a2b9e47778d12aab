//! Documents on which Hugging Face's library panics, and sound ones next to them.

use serde_json::{Value, json};
use tabtune::tokenizer::Tokenizer;

/// Makes a document of the tokens `a`, `b` and `ab` with these parts, as its writer would.
fn document(parts: &Value) -> Vec<u8> {
    let model = json!({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "▁": 3, "Ġ": 4}, "merges": ["a b"]});
    let mut document = json!({"version": "1.0", "model": model});
    document
        .as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    document.to_string().into_bytes()
}

fn bytes() -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})
}

/// Makes a document whose normalizer is followed by the byte level.
fn normalizer(step: &Value) -> Value {
    json!({"normalizer": step, "pre_tokenizer": bytes()})
}

fn template(single: &Value) -> Value {
    let special = json!({"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}});
    json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special})
}

fn text(id: &str) -> Value {
    json!({"Sequence": {"id": id, "type_id": 0}})
}

fn special(id: &str) -> Value {
    json!({"SpecialToken": {"id": id, "type_id": 0}})
}

fn replace(pattern: &Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

fn prefixed(vocab: &Value, merges: &Value) -> Value {
    json!({"model": {"type": "BPE", "continuing_subword_prefix": "##", "vocab": vocab, "merges": merges}})
}

fn strip(start: u32, stop: u32) -> Value {
    json!({"type": "Strip", "content": "a", "start": start, "stop": stop})
}

fn added(tokens: &[(&str, bool, bool)]) -> Value {
    let token = |(at, (content, lstrip, rstrip)): (usize, &(&str, bool, bool))| {
        let mut token = json!({"id": 5 + at, "content": content, "single_word": false, "normalized": false, "special": true});
        token["lstrip"] = json!(lstrip);
        token["rstrip"] = json!(rstrip);
        token
    };
    json!({"added_tokens": tokens.iter().enumerate().map(token).collect::<Vec<Value>>()})
}

/// Makes a table of replaced characters in base64: the length of its trie, the trie, and the texts.
fn charsmap(length: u32, trie: &[u32], texts: &[u8]) -> Value {
    let units = trie.iter().flat_map(|unit| unit.to_le_bytes());
    let all: Vec<u8> = length
        .to_le_bytes()
        .into_iter()
        .chain(units)
        .chain(texts.iter().copied())
        .collect();
    let digit = |at: u32| {
        char::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[at as usize & 63],
        )
    };
    let written = |part: &[u8]| {
        let bits = (0..3_usize).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(part.get(at).copied().unwrap_or(0))
        });
        let digits: String = (0..=part.len())
            .map(|at| digit(bits >> (18 - 6 * at)))
            .collect();
        format!("{digits:=<4}")
    };
    json!({"type": "Precompiled", "precompiled_charsmap": all.chunks(3).map(written).collect::<String>()})
}

/// Makes a trie of 512 units whose only text is `a`, which leads to `value`.
fn trie(value: u32) -> Vec<u32> {
    let mut units = vec![1 << 31; 512];
    // The root leads to the second half, and the unit of `a` there to the first one, which has the value.
    units[0] = 256 << 10;
    units[256 ^ 0x61] = 0x61 | 1 << 8 | (256 ^ 0x61 ^ 1) << 10;
    units[1] = 1 << 31 | value;
    units
}

#[test]
fn parts_on_which_the_library_panics_are_refused() {
    let sequence = |key: &str, steps: Value| json!({"type": "Sequence", key: steps});
    let mut off = trie(0);
    off[0] = 1 << 20;
    let three = template(&json!([special("<s>"), text("A"), special("<s>")]));
    let cases = [
        (
            "TemplateProcessing",
            json!({"post_processor": template(&json!([text("A"), special("X")]))}),
        ),
        (
            "TemplateProcessing",
            json!({"post_processor": template(&json!([text("B")]))}),
        ),
        (
            "TemplateProcessing",
            json!({"post_processor": template(&json!([{"Sequence": ["B", 0]}]))}),
        ),
        (
            "TemplateProcessing",
            json!({"post_processor": sequence("processors", json!([bytes(), template(&json!([special("X")]))]))}),
        ),
        // Three parts of a text, for which the second one has no template.
        (
            "TemplateProcessing",
            json!({"post_processor": sequence("processors", json!([three, template(&json!([text("A")]))]))}),
        ),
        (
            "post_processor",
            json!({"post_processor": [["</s>", 1], ["<s>", 0]]}),
        ),
        ("Replace", normalizer(&replace(&json!({"Regex": "^"}), "▁"))),
        (
            "Replace",
            normalizer(&replace(&json!({"Regex": "x*"}), "y")),
        ),
        (
            "Replace",
            normalizer(&replace(&json!({"Regex": "(?=a)|b"}), "y")),
        ),
        ("Replace", normalizer(&replace(&json!({"String": ""}), "y"))),
        (
            "Replace",
            json!({"normalizer": sequence("normalizers", json!([replace(&json!({"Regex": "^"}), "▁"), {"type": "NFC"}]))}),
        ),
        (
            "Prepend",
            normalizer(&json!({"type": "Prepend", "prepend": ""})),
        ),
        (
            "Prepend",
            normalizer(&sequence(
                "normalizers",
                json!([{"type": "Prepend", "prepend": ""}]),
            )),
        ),
        (
            "Precompiled",
            json!({"normalizer": {"type": "Precompiled"}}),
        ),
        (
            "Precompiled",
            json!({"normalizer": {"type": "Precompiled", "precompiled_charsmap": null}}),
        ),
        (
            "Precompiled",
            json!({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}),
        ),
        (
            "Precompiled",
            json!({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA\n"}}),
        ),
        // No trie, less of it than it says, texts that are no UTF-8, a place beyond the trie, one beyond the texts.
        ("Precompiled", json!({"normalizer": charsmap(0, &[], b"b")})),
        (
            "Precompiled",
            json!({"normalizer": charsmap(u32::MAX, &[0], b"")}),
        ),
        (
            "Precompiled",
            json!({"normalizer": charsmap(2048, &trie(0), b"\xff")}),
        ),
        (
            "Precompiled",
            json!({"normalizer": charsmap(2048, &off, b"b\0")}),
        ),
        (
            "Precompiled",
            json!({"normalizer": sequence("normalizers", json!([charsmap(2048, &trie(3), b"b\0")]))}),
        ),
        (
            "merges",
            prefixed(&json!({"a": 0, "b": 1}), &json!(["a b"])),
        ),
        (
            "merges",
            prefixed(&json!({"a": 0, "b": 1}), &json!([["a", "b"]])),
        ),
        (
            "merges",
            prefixed(&json!({"a": 0, "#é": 1}), &json!(["a #é"])),
        ),
        (
            "merges",
            prefixed(&json!({"a": 0, "##b": 1}), &json!(["##b ##b"])),
        ),
        // The merged token is longer than all tokens.
        (
            "merges",
            json!({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}}),
        ),
        (
            "FixedLength",
            json!({"pre_tokenizer": {"type": "FixedLength", "length": 0}}),
        ),
        (
            "FixedLength",
            json!({"pre_tokenizer": sequence("pretokenizers", json!([{"type": "FixedLength", "length": 0}]))}),
        ),
        ("Strip", json!({"decoder": strip(1, 1)})),
        ("Strip", json!({"decoder": strip(0, 2)})),
        (
            "Strip",
            json!({"decoder": sequence("decoders", json!([{"type": "Fuse"}, strip(0, 1)]))}),
        ),
        ("decoder", json!({"decoder": ["a", 1, 1]})),
        (
            "added_tokens",
            added(&[(" ", true, false), ("<s>", false, true)]),
        ),
    ];
    for (part, parts) in cases {
        let error =
            Tokenizer::from_hf(&document(&parts), None, None).expect_err(&parts.to_string());
        let said = error.to_string();
        assert_eq!(error.code(), "tokenizer.invalid", "{parts}");
        assert!(
            said.contains("tokenizer.json") && said.contains(part) && said.contains(": expected "),
            "{said}"
        );
    }
}

#[test]
fn sound_parts_like_them_open_and_encode() {
    let sequence = |key: &str, steps: Value| json!({"type": "Sequence", key: steps});
    let cases = [
        (
            json!({"post_processor": template(&json!([special("<s>"), text("A")]))}),
            "ab",
            &[2][..],
            "ab",
        ),
        (
            json!({"post_processor": sequence("processors", json!([bytes(), template(&json!([text("A")]))]))}),
            "ab",
            &[2],
            "ab",
        ),
        (
            normalizer(&replace(&json!({"Regex": "x+"}), "a")),
            "xxb",
            &[2],
            "ab",
        ),
        (
            normalizer(&replace(&json!({"Regex": "x*$"}), "")),
            "abx",
            &[2],
            "ab",
        ),
        // Nothing asks for the places of characters.
        (
            json!({"normalizer": replace(&json!({"Regex": "^"}), "a")}),
            "b",
            &[2],
            "ab",
        ),
        (
            json!({"normalizer": {"type": "Prepend", "prepend": ""}}),
            "ab",
            &[2],
            "ab",
        ),
        (
            json!({"normalizer": {"type": "Prepend", "prepend": "▁"}}),
            "ab",
            &[3, 2],
            "▁ ab",
        ),
        (
            json!({"normalizer": charsmap(2048, &trie(2), b"a\0b\0")}),
            "ab",
            &[1, 1],
            "b b",
        ),
        (
            prefixed(&json!({"a": 0, "##b": 1, "ab": 2}), &json!(["a ##b"])),
            "ab",
            &[2],
            "ab",
        ),
        (
            json!({"pre_tokenizer": {"type": "FixedLength", "length": 1}}),
            "ab",
            &[0, 1],
            "a b",
        ),
        (
            json!({"pre_tokenizer": {"type": "FixedLength", "length": 3}}),
            "ab",
            &[2],
            "ab",
        ),
        (json!({"decoder": strip(1, 0)}), "ab", &[2], "b"),
        (
            json!({"decoder": sequence("decoders", json!([replace(&json!({"Regex": "x*$"}), ""), {"type": "Fuse"}, strip(2, 0)]))}),
            "aab",
            &[0, 2],
            "b",
        ),
        (
            added(&[(" ", false, false), ("<s>", true, true)]),
            "a b",
            &[0, 5, 1],
            "a   b",
        ),
    ];
    for (parts, text, ids, decoded) in cases {
        let tokenizer = Tokenizer::from_hf(&document(&parts), None, None)
            .unwrap_or_else(|error| panic!("{parts}: {error}"));
        let found = tokenizer.encode(text).unwrap();
        assert_eq!(
            (found.as_slice(), tokenizer.decode(&found).unwrap().as_str()),
            (ids, decoded),
            "{parts}"
        );
        assert_eq!(tokenizer.decode(&[]).unwrap(), "", "{parts}");
    }
}
