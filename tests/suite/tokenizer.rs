//! Tokenizers compared with the Python packages `tokenizers` and `sentencepiece`, chat templates with Jinja.

mod bpe;
mod dates;
mod expressions;
mod flaws;
mod frame;
mod matrix;
mod patterns;

use serde_json::{Value, json};
use tabtune::tokenizer::{Conversation, PartsModel, Tokenizer, TokenizerKind, TokenizerParts};

pub fn golden(name: &str) -> Value {
    let path = format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

fn ids(value: &Value) -> Vec<Vec<u32>> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Returns the golden's byte-level vocabulary, with ChatML's tokens.
pub fn byte_level(pre: &str) -> TokenizerParts {
    let file = golden("tokenizers");
    let tokens = strings(&file["byte_level"]["tokens"]);
    let types = (0..tokens.len())
        .map(|id| if id < 3 { 3 } else { 1 })
        .collect();
    let chat_template = golden("chats")["templates"]["chatml"]
        .as_str()
        .map(str::to_owned);
    TokenizerParts {
        model: PartsModel::ByteLevelBpe {
            merges: strings(&file["byte_level"]["merges"]),
            pre: pre.to_owned(),
        },
        tokens,
        types,
        bos: Some(1),
        eos: vec![2, 0],
        pad: Some(2),
        unk: Some(0),
        add_bos: None,
        add_eos: None,
        chat_template,
        named_templates: Vec::new(),
        lstrip: Vec::new(),
        rstrip: Vec::new(),
    }
}

pub fn sentence_piece(add_space_prefix: bool) -> TokenizerParts {
    let file = golden("tokenizers");
    let piece = &file["sentence_piece"];
    TokenizerParts {
        model: PartsModel::SentencePiece {
            scores: serde_json::from_value(piece["scores"].clone()).unwrap(),
            add_space_prefix,
        },
        tokens: strings(&piece["tokens"]),
        types: serde_json::from_value(piece["types"].clone()).unwrap(),
        bos: Some(1),
        eos: vec![2],
        pad: None,
        unk: Some(0),
        add_bos: None,
        add_eos: None,
        chat_template: None,
        named_templates: Vec::new(),
        lstrip: Vec::new(),
        rstrip: Vec::new(),
    }
}

#[test]
fn byte_level_ids_equal_python_for_every_pre_tokenizer() {
    let file = golden("tokenizers");
    let lines = strings(&file["lines"]);
    assert_eq!(lines.len(), 200);
    for pre in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
        let tokenizer = Tokenizer::from_parts(byte_level(pre)).unwrap();
        for (line, expected) in lines.iter().zip(ids(&file["byte_level"]["ids"][pre])) {
            // Qwen2's document composes characters, which llama.cpp does not.
            if pre == "qwen2" && tokenizer.decode(&expected).unwrap() != *line {
                continue;
            }
            assert_eq!(tokenizer.encode(line).unwrap(), expected, "{pre}: {line:?}");
            assert_eq!(tokenizer.decode(&expected).unwrap(), *line, "{pre}");
        }
    }
}

#[test]
fn pre_tokenizers_differ_where_they_should() {
    let of = |pre: &str| {
        Tokenizer::from_parts(byte_level(pre))
            .unwrap()
            .encode("12345 67 8")
            .unwrap()
            .len()
    };
    assert!(of("smollm") > of("gpt-2") && of("qwen2") > of("llama-bpe"));
    let unknown = Tokenizer::from_parts(byte_level("unheard-of")).unwrap_err();
    assert_eq!(
        (unknown.code(), unknown.to_string().contains("unheard-of")),
        ("tokenizer.model.unsupported", true)
    );
}

/// Names in llama.cpp for the same rule give equal ids on a text in which the rules differ, and begin a text alike.
#[test]
fn other_words_for_a_rule_give_its_ids() {
    let alike = [
        (
            "gpt-2",
            &[
                "phi-2",
                "mpt",
                "olmo",
                "jais",
                "exaone4",
                "gigachat",
                "roberta-bpe",
            ][..],
        ),
        (
            "smollm",
            &[
                "starcoder",
                "refact",
                "command-r",
                "codeshell",
                "exaone",
                "minerva-7b",
            ],
        ),
        (
            "qwen2",
            &[
                "deepseek-r1-qwen",
                "megrez",
                "kormo",
                "stablelm2",
                "hunyuan",
                "grok-2",
            ],
        ),
        (
            "llama-bpe",
            &[
                "llama3",
                "llama-v3",
                "falcon3",
                "falcon-h1",
                "pixtral",
                "midm-2.0",
                "lfm2",
            ],
        ),
    ];
    let text = "It's a 12345 b, WE'LL 67\n\n  x";
    for (word, others) in alike {
        let ids = |pre: &str| {
            Tokenizer::from_parts(byte_level(pre))
                .unwrap()
                .encode_prompt(text)
                .unwrap()
        };
        for other in others {
            assert_eq!(ids(other), ids(word), "{other}");
        }
    }
    // Llama 3's expression, without a beginning of the text.
    let plain = |pre: &str| Tokenizer::from_parts(byte_level(pre)).unwrap();
    assert_eq!(
        plain("dbrx").encode(text).unwrap(),
        plain("llama-bpe").encode(text).unwrap()
    );
    assert_eq!(
        (
            plain("smaug-bpe").prompt_prefix(),
            plain("pixtral").prompt_prefix()
        ),
        (&[][..], &[1][..])
    );
    for unknown in ["default", "absent", "gemma4"] {
        let error = Tokenizer::from_parts(byte_level(unknown)).unwrap_err();
        assert_eq!(error.code(), "tokenizer.model.unsupported");
        assert!(
            error.to_string().contains(unknown) && error.to_string().contains("tokenizer.json"),
            "{error}"
        );
    }
}

#[test]
fn sentence_piece_ids_equal_sentencepiece() {
    let file = golden("tokenizers");
    let piece = &file["sentence_piece"];
    let tokenizer = Tokenizer::from_parts(sentence_piece(true)).unwrap();
    for (line, expected) in strings(&piece["lines"])
        .iter()
        .zip(ids(&piece["ids"]))
        .filter(|(line, _)| !line.is_empty())
    {
        assert_eq!(tokenizer.encode(line).unwrap(), expected, "{line:?}");
        assert_eq!(tokenizer.decode(&expected).unwrap(), *line);
    }
    // Without the prefix the text begins unchanged.
    let bare = Tokenizer::from_parts(sentence_piece(false)).unwrap();
    assert_eq!(
        bare.encode(" Bennet").unwrap(),
        tokenizer.encode("Bennet").unwrap()
    );
    assert_eq!(tokenizer.prompt_prefix(), [1]);
    assert_eq!(
        tokenizer.encode_prompt("Bennet").unwrap(),
        [vec![1], tokenizer.encode("Bennet").unwrap()].concat()
    );
}

/// As in llama.cpp and transformers: a beginning-of-text token if the file requests it, once, and no end-of-text token.
#[test]
fn a_text_that_is_continued_begins_as_its_file_says() {
    let of = |add_bos, add_eos| {
        Tokenizer::from_parts(TokenizerParts {
            add_bos,
            add_eos,
            ..sentence_piece(true)
        })
        .unwrap()
    };
    for (add_bos, begun) in [(None, true), (Some(true), true), (Some(false), false)] {
        for add_eos in [None, Some(true)] {
            let tokenizer = of(add_bos, add_eos);
            let plain = tokenizer.encode("Bennet").unwrap();
            let expected = if begun {
                [vec![1], plain.clone()].concat()
            } else {
                plain
            };
            assert_eq!(
                tokenizer.encode_beginning("Bennet").unwrap(),
                expected,
                "{add_bos:?} {add_eos:?}"
            );
            // A template writes the token itself.
            let written = tokenizer.encode_beginning("<s>Bennet").unwrap();
            assert_eq!(
                (written[0], written.iter().filter(|id| **id == 1).count()),
                (1, 1)
            );
        }
    }
    // An empty text still has its beginning.
    assert_eq!(of(None, None).encode_beginning("").unwrap(), [1]);
    assert_eq!(
        Tokenizer::characters("ab")
            .unwrap()
            .encode_beginning("ba")
            .unwrap(),
        [1, 0]
    );
}

/// A decoder leaves such ids out.
#[test]
fn ids_that_no_token_has_have_no_text() {
    let model = json!({"type": "WordLevel", "vocab": {"a": 0, "b": 2}, "unk_token": "a"});
    let tokenizer = Tokenizer::from_hf(
        &serde_json::to_vec(&json!({"version": "1.0", "model": model})).unwrap(),
        None,
        None,
    )
    .unwrap();
    assert_eq!(
        (
            tokenizer.decode(&[0, 1, 2]).unwrap(),
            tokenizer.detokenize(&[0, 2]).unwrap()
        ),
        ("a b".into(), "a b".into())
    );
    let absent = tokenizer.detokenize(&[0, 1, 2]).unwrap_err().to_string();
    assert!(
        absent.contains("ids[1] is 1, but must be the id of a token"),
        "{absent}"
    );
    assert_eq!(
        tokenizer.detokenize(&[0, 3]).unwrap_err().code(),
        "model.token-range"
    );
}

#[test]
fn exported_files_read_back_as_the_same_tokenizer() {
    for parts in [
        byte_level("smollm"),
        byte_level("llama-bpe"),
        sentence_piece(true),
    ] {
        let made = Tokenizer::from_parts(parts).unwrap();
        let files: std::collections::BTreeMap<String, Vec<u8>> =
            made.assets().into_iter().collect();
        let get = |name: &str| files.get(name).map(Vec::as_slice);
        let read = Tokenizer::from_hf(
            get("tokenizer.json").unwrap(),
            get("tokenizer_config.json"),
            get("chat_template.jinja"),
        )
        .unwrap();
        for text in strings(&golden("tokenizers")["lines"]) {
            assert_eq!(made.encode(&text).unwrap(), read.encode(&text).unwrap());
        }
        assert_eq!(
            (made.bos(), made.eos().first(), made.pad()),
            (read.bos(), read.eos().first(), read.pad())
        );
        assert_eq!(
            (made.vocab_size(), made.kind(), made.chat_template()),
            (read.vocab_size(), read.kind(), read.chat_template())
        );
        assert_eq!(made.assets(), read.assets());
    }
}

#[test]
fn long_texts_are_encoded_in_pieces_without_a_change() {
    let file = golden("tokenizers");
    let text = strings(&file["lines"]).join("\n").repeat(30);
    assert!(text.len() > 300_000);
    for parts in [
        byte_level("gpt-2"),
        byte_level("smollm"),
        byte_level("llama-bpe"),
        byte_level("qwen2"),
        sentence_piece(true),
    ] {
        let tokenizer = Tokenizer::from_parts(parts).unwrap();
        // Encoding with starts of tokens is never piecewise.
        let (whole, _) = tokenizer.encode_with_starts(&text).unwrap();
        assert!(tokenizer.encode(&text).unwrap() == whole);
    }
}

#[test]
fn characters_have_ids_by_code_point_and_refuse_others() {
    let tokenizer = Tokenizer::characters("hello\nwörld").unwrap();
    assert_eq!(
        (tokenizer.vocab_size(), tokenizer.kind()),
        (9, TokenizerKind::Characters)
    );
    assert_eq!(tokenizer.encode("\nöh").unwrap(), [0, 8, 3]);
    assert_eq!(tokenizer.decode(&[3, 2, 4, 4, 5]).unwrap(), "hello");
    assert_eq!(tokenizer.token_text(8).unwrap(), "ö");
    let refused = tokenizer.encode("x").unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().contains("'x'")),
        ("tokenizer.text", true)
    );
    let files = tokenizer.assets();
    let read = Tokenizer::from_hf(&files[0].1, Some(&files[1].1), None).unwrap();
    assert_eq!(
        (read.kind(), read.encode("x").unwrap_err().code()),
        (TokenizerKind::Characters, "tokenizer.text")
    );
    assert_eq!(
        Tokenizer::characters("").unwrap_err().code(),
        "data.too-short"
    );
}

#[test]
fn token_text_keeps_leading_spaces_and_marks_parts_of_characters() {
    let tokenizer = Tokenizer::from_parts(sentence_piece(true)).unwrap();
    let words = tokenizer.encode("of the").unwrap();
    assert_eq!(
        words
            .iter()
            .map(|&id| tokenizer.token_text(id).unwrap())
            .collect::<String>(),
        " of the"
    );
    let bytes = Tokenizer::from_parts(byte_level("smollm")).unwrap();
    let smile = bytes.encode("🙂").unwrap();
    assert!(smile.len() > 1 && bytes.token_text(smile[0]).unwrap().contains('\u{fffd}'));
    assert_eq!(bytes.token_text(2).unwrap(), "<|im_end|>");
    let beyond = bytes.token_text(1_000_000).unwrap_err();
    assert_eq!(beyond.code(), "model.token-range");
}

#[test]
fn broken_vocabularies_are_typed_errors() {
    let change = |edit: fn(&mut TokenizerParts)| {
        let mut parts = byte_level("smollm");
        edit(&mut parts);
        Tokenizer::from_parts(parts).unwrap_err().code()
    };
    assert_eq!(change(|p| p.tokens.clear()), "tokenizer.invalid");
    assert_eq!(change(|p| p.types.truncate(5)), "tokenizer.invalid");
    assert_eq!(change(|p| p.bos = Some(5000)), "tokenizer.invalid");
    assert_eq!(
        change(|p| p.tokens[7] = p.tokens[6].clone()),
        "tokenizer.invalid"
    );
    for merge in ["nospace", "zz yy"] {
        let mut parts = byte_level("smollm");
        parts.model = PartsModel::ByteLevelBpe {
            merges: vec![merge.to_owned()],
            pre: "gpt-2".to_owned(),
        };
        assert_eq!(
            Tokenizer::from_parts(parts).unwrap_err().code(),
            "tokenizer.invalid"
        );
    }
    let mut parts = sentence_piece(true);
    parts.model = PartsModel::SentencePiece {
        scores: vec![0.0],
        add_space_prefix: true,
    };
    assert_eq!(
        Tokenizer::from_parts(parts).unwrap_err().code(),
        "tokenizer.invalid"
    );
    for bytes in [&b""[..], b"{", b"[]", b"{\"model\": 3}", b"\xff"] {
        assert_eq!(
            Tokenizer::from_hf(bytes, None, None).unwrap_err().code(),
            "tokenizer.invalid"
        );
    }
}

/// Makes a tokenizer whose only purpose is its chat template.
fn with_template(template: &str, specials: &Value) -> Tokenizer {
    let files = Tokenizer::from_parts(byte_level("gpt-2")).unwrap().assets();
    Tokenizer::from_hf(
        &files[0].1,
        Some(specials.to_string().as_bytes()),
        Some(template.as_bytes()),
    )
    .unwrap()
}

#[test]
fn chat_templates_equal_jinja() {
    let file = golden("chats");
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 70);
    for case in cases {
        let name = case["template"].as_str().unwrap();
        let tokenizer = with_template(file["templates"][name].as_str().unwrap(), &file["specials"]);
        let messages = file["chats"][case["chat"].as_str().unwrap()]
            .as_array()
            .unwrap()
            .clone();
        let rendered = tokenizer.render_chat(
            &Conversation::new(messages),
            case["add_generation_prompt"].as_bool().unwrap(),
        );
        match case["error"].as_str() {
            // A message of the template itself is shown up to its 64th character.
            Some(message) => assert!(
                rendered
                    .unwrap_err()
                    .to_string()
                    .contains(&message[..message.len().min(60)]),
                "{name}"
            ),
            None => assert_eq!(
                rendered.unwrap().text,
                case["text"].as_str().unwrap(),
                "{name} {}",
                case["chat"]
            ),
        }
    }
}

#[test]
fn chat_templates_have_a_budget() {
    let said = Conversation::new(vec![json!({"role": "user", "content": "x"})]);
    let nothing = Conversation::default();
    let none = Value::Object(serde_json::Map::new());
    for endless in [
        "{% for i in range(9999) %}{% for j in range(9999) %}{% set x = 1 %}{% endfor %}{% endfor %}",
        "{% for i in range(9999) %}{% for j in range(99) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ] {
        let refused = with_template(endless, &none)
            .render_chat(&said, false)
            .unwrap_err();
        assert_eq!(
            (refused.code(), refused.kind()),
            ("template.budget", "BAD_MODEL_FILE"),
            "{endless}"
        );
    }
    // Imported unrendered, refused when it is used.
    let large = with_template(&"x".repeat((1 << 20) + 1), &none);
    assert_eq!(
        large.render_chat(&nothing, false).unwrap_err().code(),
        "template.budget"
    );
    assert_eq!(
        with_template(&"x".repeat(1 << 20), &none)
            .render_chat(&nothing, false)
            .unwrap()
            .text,
        "x".repeat(1 << 20)
    );
    for wrong in [
        "{{ strftime_now('%d') }}",
        "{% if %}",
        "{{ messages[0].content.nothing() }}",
        "{{ raise_exception('no') }}",
    ] {
        let refused = with_template(wrong, &none)
            .render_chat(&said, false)
            .unwrap_err();
        assert_eq!(refused.code(), "tokenizer.template", "{wrong}");
    }
    let spoken = format!("{{{{ raise_exception('\u{202e}{}') }}}}", "x".repeat(500));
    let words = with_template(&spoken, &none)
        .render_chat(&nothing, false)
        .unwrap_err()
        .to_string();
    assert!(
        words.chars().count() < 160 && !words.contains('\u{202e}'),
        "{words}"
    );
    let mut bare = byte_level("gpt-2");
    bare.chat_template = None;
    let bare = Tokenizer::from_parts(bare).unwrap();
    assert!(!bare.has_chat_template());
    assert_eq!(
        bare.render_chat(&nothing, false).unwrap_err().code(),
        "tokenizer.template"
    );
}

/// Makes a `tokenizer.json` of one letter whose texts are split by `pattern`.
fn split_by(pattern: &Value) -> tabtune::Result<Tokenizer> {
    let document = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {"x": 0, "y": 1, "xx": 2}, "merges": [["x", "x"]]}
    });
    Tokenizer::from_hf(document.to_string().as_bytes(), None, None)
}

#[test]
fn patterns_of_a_tokenizer_have_a_budget() {
    let endless = split_by(&serde_json::json!({"Regex": "(x+x+)+y(?!z)"})).unwrap();
    assert_eq!(endless.encode("xxy").unwrap(), [2, 1]);
    let text = "x".repeat(64);
    for refused in [
        endless.encode(&text).unwrap_err(),
        endless.encode_prompt(&text).unwrap_err(),
        endless.encode_with_starts(&text).unwrap_err(),
    ] {
        assert_eq!(
            (refused.code(), refused.kind()),
            ("tokenizer.budget", "BAD_MODEL_FILE")
        );
    }
    for kind in ["Regex", "String"] {
        let pattern = |bytes: usize| split_by(&serde_json::json!({ kind: "x".repeat(bytes) }));
        assert_eq!(
            pattern((1 << 20) + 1).unwrap_err().code(),
            "tokenizer.budget",
            "{kind}"
        );
        assert!(pattern(1 << 10).is_ok(), "{kind}");
    }
}

#[test]
fn words_of_libraries_about_a_tokenizer_are_cut() {
    let long = format!(
        r#"{{"version":"1.0","model":{{"type":"{}","vocab":{{}}}}}}"#,
        "\u{202e}é".repeat(500)
    );
    let said = Tokenizer::from_hf(long.as_bytes(), None, None)
        .unwrap_err()
        .to_string();
    assert!(
        said.chars().count() < 120 && !said.contains('\u{202e}'),
        "{said}"
    );
}
