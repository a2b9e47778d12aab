//! Tokenizer documents in a folder other than tokenizer.json.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{Bundle, ModelAssets, open_bundle};
use tabtune::formats::ByteSource;
use tabtune::tokenizer::Conversation;

use super::files::{file, ramp, safetensors};

/// Opens a model of `rows` rows with these documents.
fn opened(rows: usize, documents: &[(&str, Vec<u8>)]) -> Bundle {
    let config = json!({"model_type": "llama", "vocab_size": rows, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true});
    let weights = safetensors(&[(
        "model.embed_tokens.weight",
        vec![rows, 4],
        ramp(4 * rows, 0.0),
    )]);
    let mut files: Vec<Rc<dyn ByteSource>> = vec![
        file("config.json", config.to_string()),
        file("model.safetensors", weights),
    ];
    files.extend(
        documents
            .iter()
            .map(|(name, bytes)| file(name, bytes.clone())),
    );
    open_bundle(files).unwrap()
}

fn written(bundle: &Bundle) -> BTreeMap<String, Vec<u8>> {
    ModelAssets::of_bundle(bundle)
        .folder_documents(&bundle.config, "float32")
        .unwrap()
        .into_iter()
        .collect()
}

fn codes(bundle: &Bundle) -> Vec<(&'static str, &str)> {
    bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect()
}

#[test]
fn every_document_of_a_tokenizer_is_carried_byte_for_byte() {
    let tokenizer = json!({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    let documents: Vec<(&str, Vec<u8>)> = vec![
        ("tokenizer.json", tokenizer.to_string().into()),
        ("tokenizer_config.json", b"{ \"a\":  1}\n".to_vec()),
        ("special_tokens_map.json", b"{}  ".to_vec()),
        ("tokenizer.model", vec![10, 0, 255, 254, 13]),
        ("added_tokens.json", b"{ }\r\n".to_vec()),
        ("vocab.json", b"{\"a\":0,  \"b\":1}".to_vec()),
        ("merges.txt", b"#version: 0.2\r\n".to_vec()),
        ("tekken.json", b"{ } ".to_vec()),
        ("sentencepiece.bpe.model", vec![1, 2]),
        ("vocab.txt", b"a\nb\r\n".to_vec()),
        ("chat_template.json", b"{\"chat_template\":  \"\"}".to_vec()),
    ];
    let bundle = opened(2, &documents);
    assert_eq!(codes(&bundle), []);
    let found = written(&bundle);
    for (name, bytes) in &documents {
        assert_eq!(found.get(*name), Some(bytes), "{name}");
    }
    // Opened again, as from an export or a checkpoint.
    let again: Vec<(&str, Vec<u8>)> = found
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let again: Vec<_> = again
        .into_iter()
        .filter(|(name, _)| *name != "config.json")
        .collect();
    assert_eq!(written(&opened(2, &again)), found);
}

#[test]
fn a_pointer_in_the_place_of_a_document_is_reported_and_not_carried() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n".to_vec();
    let bundle = opened(2, &[("tokenizer.model", pointer)]);
    assert!(codes(&bundle).contains(&("tokenizer.file.pointer", "tokenizer.model")));
    assert!(!written(&bundle).contains_key("tokenizer.model"));
    assert!(
        bundle
            .warnings
            .iter()
            .any(|warning| warning.message().contains("git lfs pull"))
    );
}

/// Returns GPT-2's character for each byte: printable ones are themselves, the others count from 256 on.
fn byte_characters() -> Vec<String> {
    let plain =
        |byte: u32| (33..=126).contains(&byte) || (161..=172).contains(&byte) || byte >= 174;
    let mut next = 255;
    let mut other = || {
        next += 1;
        next
    };
    (0..256)
        .map(|byte| {
            char::from_u32(if plain(byte) { byte } else { other() })
                .unwrap()
                .to_string()
        })
        .collect()
}

/// Makes a vocabulary of the bytes, followed by `more`.
fn vocab(more: &[&str]) -> Vec<u8> {
    let tokens = byte_characters()
        .into_iter()
        .chain(more.iter().map(|token| token.to_string()));
    json!(tokens.zip(0..).collect::<BTreeMap<String, u32>>())
        .to_string()
        .into()
}

const MERGES: &str = "#version: 0.2\nt h\nth e\nĠ the\n1 2\n";
const MERGED: [&str; 4] = ["th", "the", "Ġthe", "12"];

fn of_pairs(more: &[&str], settings: &serde_json::Value, others: &[(&str, Vec<u8>)]) -> Bundle {
    let tokens: Vec<&str> = MERGED.iter().chain(more).copied().collect();
    let mut documents = vec![
        ("vocab.json", vocab(&tokens)),
        ("merges.txt", MERGES.as_bytes().to_vec()),
    ];
    documents.push(("tokenizer_config.json", settings.to_string().into()));
    documents.extend_from_slice(others);
    opened(256 + tokens.len(), &documents)
}

#[test]
fn vocab_and_merges_are_a_byte_level_tokenizer() {
    let bundle = of_pairs(
        &["<|endoftext|>"],
        &json!({"tokenizer_class": "GPT2Tokenizer"}),
        &[],
    );
    assert_eq!(codes(&bundle), []);
    let tokenizer = bundle.need_tokenizer().unwrap();
    // t=116 h=104 e=101; "the"=257, " the"=258, "12"=259, the end 260; a space is 32, é is the bytes 195 169.
    assert_eq!(
        tokenizer.encode("the the 123").unwrap(),
        [257, 258, 32, 259, 51]
    );
    assert_eq!(
        tokenizer.encode("é<|endoftext|>th").unwrap(),
        [195, 169, 260, 256]
    );
    assert_eq!(
        (tokenizer.eos(), tokenizer.bos(), tokenizer.prompt_prefix()),
        (&[260][..], &[260][..], &[][..])
    );
    assert_eq!(tokenizer.decode(&[257, 258, 195, 169]).unwrap(), "the theé");
    // An export has the original files, and the same tokenizer comes out of it.
    let documents = written(&bundle);
    assert_eq!(
        documents["vocab.json"],
        vocab(&["th", "the", "Ġthe", "12", "<|endoftext|>"])
    );
    assert_eq!(
        (
            &documents["merges.txt"][..],
            &documents["tokenizer_config.json"][..]
        ),
        (
            MERGES.as_bytes(),
            &br#"{"tokenizer_class":"GPT2Tokenizer"}"#[..]
        )
    );
    let kept: Vec<(&str, Vec<u8>)> = documents
        .iter()
        .filter(|(name, _)| *name != "config.json")
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let again = opened(261, &kept);
    assert_eq!(
        again
            .need_tokenizer()
            .unwrap()
            .encode("the the 123")
            .unwrap(),
        [257, 258, 32, 259, 51]
    );
    assert_eq!(
        (
            again.need_tokenizer().unwrap().eos(),
            again.need_tokenizer().unwrap().bos()
        ),
        (&[260][..], &[260][..])
    );
}

#[test]
fn vocab_and_merges_take_their_class_and_their_added_tokens() {
    let settings = json!({"tokenizer_class": "Qwen2TokenizerFast", "eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]});
    let added = (r#"{"<|im_start|>": 261, "<|im_end|>": 262, "<tool>": 263}"#)
        .as_bytes()
        .to_vec();
    let bundle = of_pairs(
        &["<|endoftext|>", "x1", "x2", "x3"],
        &settings,
        &[("added_tokens.json", added.clone())],
    );
    // An id that the vocabulary has already is a contradiction.
    assert_eq!(
        bundle.need_tokenizer().unwrap_err().code(),
        "tokenizer.invalid"
    );
    let documents: Vec<(&str, Vec<u8>)> = vec![
        (
            "vocab.json",
            vocab(&["th", "the", "Ġthe", "12", "<|endoftext|>"]),
        ),
        ("merges.txt", MERGES.replace('\n', "\r\n").into()),
        ("tokenizer_config.json", settings.to_string().into()),
        ("added_tokens.json", added),
    ];
    let bundle = opened(264, &documents);
    assert_eq!(codes(&bundle), []);
    let tokenizer = bundle.need_tokenizer().unwrap();
    // Qwen2 tokenizes each digit separately, and composes accents.
    assert_eq!(
        tokenizer.encode("12 e\u{301}<|im_start|><tool>").unwrap(),
        [49, 50, 32, 195, 169, 261, 263]
    );
    assert_eq!(
        (tokenizer.eos(), tokenizer.pad(), tokenizer.bos()),
        (&[262][..], Some(260), &[][..])
    );
    assert_eq!(
        tokenizer.decode_plain(&[261, 116, 263, 262]).unwrap(),
        "t<tool>",
        "special tokens alone are left out"
    );
}

#[test]
fn settings_ask_for_a_beginning_of_a_text() {
    let settings = json!({"tokenizer_class": "GPT2Tokenizer", "bos_token": {"content": "<s>"}, "add_bos_token": true});
    let specials = json!({"eos_token": "</s>"}).to_string().into();
    let bundle = of_pairs(
        &["<s>", "</s>"],
        &settings,
        &[("special_tokens_map.json", specials)],
    );
    let tokenizer = bundle.need_tokenizer().unwrap();
    assert_eq!(
        (tokenizer.encode_prompt("the").unwrap(), tokenizer.eos()),
        (vec![260, 257], &[261][..])
    );
}

#[test]
fn other_files_of_a_tokenizer_are_refused_with_the_way_out() {
    let refused = |documents: &[(&str, Vec<u8>)]| {
        let bundle = opened(3, documents);
        let error = bundle.need_tokenizer().unwrap_err();
        assert!(
            bundle.read_f32("model.embed_tokens.weight").is_ok()
                && bundle.warnings[0].code == error.code()
        );
        (error.code(), error.to_string())
    };
    for (documents, subject) in [
        (vec![("tokenizer.model", vec![10, 3])], "tokenizer.model"),
        (vec![("vocab.json", br#"{"a": 0}"#.to_vec())], "vocab.json"),
        (
            vec![
                ("vocab.json", br#"{"a</w>": 0, "\u4f60": 1}"#.to_vec()),
                ("merges.txt", b"".to_vec()),
            ],
            "vocab.json",
        ),
        (
            vec![
                ("vocab.json", br#"{"a": 0}"#.to_vec()),
                ("merges.txt", b"".to_vec()),
                (
                    "tokenizer_config.json",
                    br#"{"tokenizer_class": "CLIPTokenizer"}"#.to_vec(),
                ),
            ],
            "CLIPTokenizer",
        ),
    ] {
        let (code, text) = refused(&documents);
        assert_eq!(code, "tokenizer.model.unsupported", "{text}");
        assert!(
            text.contains(subject)
                && text.contains("tokenizer.json")
                && text.contains("save_pretrained"),
            "{text}"
        );
    }
    for merges in ["a", "a b c", "a  b", "a z"] {
        let documents = [
            ("vocab.json", br#"{"a": 0, "b": 1, "ab": 2}"#.to_vec()),
            ("merges.txt", merges.as_bytes().to_vec()),
        ];
        assert_eq!(refused(&documents).0, "tokenizer.invalid", "{merges}");
    }
}

#[test]
fn merges_that_are_none_are_refused_as_their_own_file() {
    let of = |more: &[&str], merges: &[u8]| {
        let settings = br#"{"tokenizer_class": "GPT2Tokenizer"}"#.to_vec();
        let documents = [
            ("vocab.json", vocab(more)),
            ("merges.txt", merges.to_vec()),
            ("tokenizer_config.json", settings),
        ];
        opened(256 + more.len(), &documents)
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n";
    let mark = [&b"\xef\xbb\xbf"[..], MERGES.as_bytes()].concat();
    let cases: [(&[u8], &str); 9] = [
        (b"", "no pair"),
        (b"#version: 0.2\n", "no pair"),
        (b"<!DOCTYPE html><html>x</html>\n", "a page of HTML"),
        (pointer, "git lfs pull"),
        (&mark, "byte order mark"),
        (b"Entry not found", "Entry not found"),
        (b"\xff\xfet\0 \0h\0\n\0", "UTF-16"),
        (
            b"#version: 0.2\nt h\nth e\n<<<<<<< HEAD\n",
            "line 4 needs the token <<<<<<<",
        ),
        (b"t h\nq q\n", "line 2 needs the token qq"),
    ];
    for (merges, words) in cases {
        let bundle = of(&MERGED, merges);
        let error = bundle.need_tokenizer().unwrap_err();
        let text = error.to_string();
        assert!(
            ["tokenizer.invalid", "tokenizer.merges.missing"].contains(&error.code()),
            "{text}"
        );
        assert!(
            text.contains("merges.txt") && text.contains(words) && !text.contains("tokenizer.json"),
            "{words}: {text}"
        );
    }
    // A vocabulary of bytes and of added tokens needs no pairs.
    for merges in [&b""[..], b"#version: 0.2\n"] {
        assert_eq!(
            of(&["<|endoftext|>"], merges)
                .need_tokenizer()
                .unwrap()
                .encode("th")
                .unwrap(),
            [116, 104]
        );
    }
    // Neither is taken on next to a tokenizer.json.
    let tokenizer = json!({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    let bundle = opened(
        2,
        &[
            ("tokenizer.json", tokenizer.to_string().into()),
            ("merges.txt", b"Entry not found".to_vec()),
        ],
    );
    assert!(
        bundle.tokenizer.is_some() && codes(&bundle) == [("tokenizer.file.other", "merges.txt")],
        "{:?}",
        codes(&bundle)
    );
    assert!(!written(&bundle).contains_key("merges.txt"));
}

/// Llama 2 as it was published: its normalizer writes a space before a text, also before those of the added tokens.
#[test]
fn added_tokens_are_decoded_to_their_own_texts() {
    let added = |id: usize, text: &str| json!({"id": id, "content": text, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": true});
    let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let document = json!({
        "version": "1.0", "added_tokens": [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]},
        "decoder": {"type": "Sequence", "decoders": [replace("▁", " "), {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "▁a": 5}, "merges": ["▁ a"]},
    });
    let config = json!({"tokenizer_class": "LlamaTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_own.Own", null]}});
    let bundle = opened(
        6,
        &[
            ("tokenizer.json", document.to_string().into()),
            ("tokenizer_config.json", config.to_string().into_bytes()),
        ],
    );
    assert_eq!(
        codes(&bundle),
        [("tokenizer.code", "tokenizer_config.json")]
    );
    let tokenizer = bundle.tokenizer.as_ref().unwrap();
    assert_eq!(tokenizer.decode(&[5, 2, 1, 2]).unwrap(), "a</s><s></s>");
    assert_eq!(tokenizer.decode_plain(&[5, 2, 1, 5]).unwrap(), "a a");
}

#[test]
fn a_template_that_is_none_is_refused_with_the_tokenizer() {
    let tokenizer = json!({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    for place in [
        "chat_template.jinja",
        "additional_chat_templates/tool_use.jinja",
    ] {
        let with = |template: &str| {
            opened(
                2,
                &[
                    ("tokenizer.json", tokenizer.to_string().into()),
                    (place, template.as_bytes().to_vec()),
                ],
            )
        };
        let bundle = with("<!DOCTYPE html><p>");
        assert!(bundle.tokenizer.is_none());
        assert!(
            bundle
                .warnings
                .iter()
                .any(|warning| warning.message().contains("a page of HTML"))
        );
        for empty in ["", " \n"] {
            let bundle = with(empty);
            assert_eq!(codes(&bundle), [("tokenizer.template.empty", place)]);
            assert!(!bundle.need_tokenizer().unwrap().has_chat_template());
        }
    }
    // A document of another program alone cannot be used, and is reported.
    let bundle = opened(2, &[("tekken.json", b"{}".to_vec())]);
    assert!(
        codes(&bundle)
            .iter()
            .any(|(code, _)| *code == "tokenizer.model.unsupported"),
        "{:?}",
        codes(&bundle)
    );
}

/// Byte-level tokenizer with this dropout, in which `abcd` is one token.
fn with_dropout(dropout: f64) -> Vec<u8> {
    let mut document = json!({"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "model": {"type": "BPE", "dropout": dropout, "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "cd": 5, "abcd": 6, "\u{120}": 7},
            "merges": ["a b", "c d", "ab cd"]}});
    document["decoder"] = document["pre_tokenizer"].clone();
    document.to_string().into()
}

#[test]
fn dropout_of_merges_is_off() {
    for dropout in [0.0, 0.5, 1.0] {
        let bundle = opened(8, &[("tokenizer.json", with_dropout(dropout))]);
        let tokenizer = bundle.need_tokenizer().unwrap();
        for _ in 0..20 {
            assert_eq!(tokenizer.encode("abcd abcd").unwrap(), [6, 7, 6]);
        }
    }
}

#[test]
fn templates_in_a_folder_of_their_own_are_used_and_carried() {
    let main = "M{{ messages[0].content }}";
    let tools = "T{{ tools | length }}{{ messages[0].content }}";
    let documents: Vec<(&str, Vec<u8>)> = vec![
        ("tokenizer.json", with_dropout(0.0)),
        ("chat_template.jinja", main.into()),
        ("additional_chat_templates/tool_use.jinja", tools.into()),
    ];
    // A browser gives the last names of files.
    for name in ["additional_chat_templates/tool_use.jinja", "tool_use.jinja"] {
        let mut given = documents.clone();
        given[2].0 = name;
        let bundle = opened(8, &given);
        assert_eq!(codes(&bundle), []);
        let tokenizer = bundle.need_tokenizer().unwrap();
        let rendered = |names: serde_json::Value| {
            let mut chat = Conversation::new(vec![json!({"role": "user", "content": "a"})]);
            chat.names = names.as_object().unwrap().clone();
            tokenizer.render_chat(&chat, false).unwrap().text
        };
        assert_eq!(
            (rendered(json!({})), rendered(json!({"tools": [1, 2]}))),
            ("Ma".to_owned(), "T2a".to_owned())
        );
        let found = written(&bundle);
        for (name, bytes) in &documents {
            assert_eq!(found.get(*name), Some(bytes), "{name}");
        }
    }
}

/// Returns the codes of a folder with these documents, and what it writes of a message without and with tools.
fn rendered(documents: &[(&str, &str)]) -> (Vec<(&'static str, String)>, [String; 2]) {
    let mut given = vec![("tokenizer.json", with_dropout(0.0))];
    given.extend(
        documents
            .iter()
            .map(|(name, text)| (*name, text.as_bytes().to_vec())),
    );
    let bundle = opened(8, &given);
    let tokenizer = bundle.need_tokenizer().unwrap();
    let told = codes(&bundle)
        .into_iter()
        .map(|(code, subject)| (code, subject.to_owned()))
        .collect();
    let text = |tools: bool| {
        let mut chat = Conversation::new(vec![json!({"role": "user", "content": "a"})]);
        chat.names
            .extend(tools.then(|| ("tools".to_owned(), json!([{"name": "f"}]))));
        tokenizer
            .render_chat(&chat, false)
            .map_or_else(|error| error.to_string(), |rendered| rendered.text)
    };
    (told, [text(false), text(true)])
}

#[test]
fn a_template_for_tools_alone_is_used_with_tools() {
    let (main, tools) = (
        "chat_template.jinja",
        "additional_chat_templates/tool_use.jinja",
    );
    let list =
        json!({"chat_template": [{"name": "tool_use", "template": "T{{ messages[0].content }}"}]})
            .to_string();
    let cases: [(&[(&str, &str)], usize); 3] = [
        (&[(tools, "T{{ messages[0].content }}")], 0),
        (&[("tokenizer_config.json", list.as_str())], 0),
        (&[(main, ""), (tools, "T{{ messages[0].content }}")], 1),
    ];
    for (documents, empty) in cases {
        let (told, [without, with]) = rendered(documents);
        assert_eq!((told.len(), with.as_str()), (empty, "Ta"), "{told:?}");
        assert!(
            without.contains("no default chat template, which a conversation without tools needs, only named ones: tool_use"),
            "{without}"
        );
    }
    // Neither template is one for conversations.
    let (_, [without, with]) = rendered(&[
        (
            "additional_chat_templates/rag.jinja",
            "R{{ messages[0].content }}",
        ),
        (tools, " "),
    ]);
    assert!(
        without == with && without.contains("no default chat template, only named ones: rag"),
        "{without}"
    );
}

#[test]
fn templates_of_the_settings_are_a_text_a_list_or_an_object() {
    let of = |value: serde_json::Value| json!({ "chat_template": value }).to_string();
    let settings = |text: &str| rendered(&[("tokenizer_config.json", text)]);
    let named = of(
        json!({"default": "D{{ messages[0].content }}", "tool_use": "T{{ messages[0].content }}"}),
    );
    assert_eq!(
        settings(&named),
        (vec![], ["Da".to_owned(), "Ta".to_owned()])
    );
    let entry = |text: &str| json!({"name": "default", "template": text});
    let twice = of(json!([
        entry("1{{ messages[0].content }}"),
        entry("2{{ messages[0].content }}")
    ]));
    assert_eq!(settings(&twice).1[0], "2a");
    let wrong = [
        json!(3),
        json!(true),
        json!(["x"]),
        json!([{"name": "default"}]),
        json!({"default": 3}),
    ];
    for value in &wrong {
        let text = of(value.clone());
        let bundle = opened(
            8,
            &[
                ("tokenizer.json", with_dropout(0.0)),
                ("tokenizer_config.json", text.as_bytes().to_vec()),
            ],
        );
        let error = bundle.need_tokenizer().unwrap_err();
        assert_eq!(error.code(), "tokenizer.invalid", "{value}");
        let said = error.to_string();
        assert!(
            said.contains("tokenizer_config.json")
                && said.contains("chat_template: expected a text or templates by name"),
            "{said}"
        );
        // transformers does not read it next to a file.
        let (told, [text, _]) = rendered(&[
            ("tokenizer_config.json", text.as_str()),
            ("chat_template.jinja", "M{{ messages[0].content }}"),
        ]);
        assert_eq!(
            (told.as_slice(), text.as_str()),
            (
                &[(
                    "tokenizer.template.conflict",
                    "chat_template.jinja".to_owned()
                )][..],
                "Ma"
            )
        );
    }
}

#[test]
fn an_empty_template_leaves_the_place_to_another_one() {
    let settings = json!({"chat_template": "C{{ messages[0].content }}"}).to_string();
    let (told, [text, _]) = rendered(&[
        ("chat_template.jinja", "\n"),
        ("tokenizer_config.json", settings.as_str()),
    ]);
    assert_eq!(
        (told.as_slice(), text.as_str()),
        (
            &[("tokenizer.template.empty", "chat_template.jinja".to_owned())][..],
            "Ca"
        )
    );
    let (told, [text, _]) = rendered(&[
        ("chat_template.jinja", "M{{ messages[0].content }}"),
        ("tokenizer_config.json", r#"{"chat_template": ""}"#),
    ]);
    assert_eq!(
        (told.as_slice(), text.as_str()),
        (
            &[(
                "tokenizer.template.empty",
                "tokenizer_config.json".to_owned()
            )][..],
            "Ma"
        )
    );
}
