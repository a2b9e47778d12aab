//! Nothing is lost between text and ids: where tokens lie, ends of turns, characters without a token, control tokens, tools as texts.

use serde_json::{Value, json};
use tabtune::config::{DataOrder, Form, OnBadRow, TrainConfig};
use tabtune::data::{DataFile, DataWarning, Dataset, Preview};
use tabtune::tokenizer::{Conversation, Tokenizer};

use crate::tokenizer::golden;

/// Writes a byte as byte-level vocabularies do: itself if Latin-1 shows it, or else the next character from U+0100 on.
fn letter(byte: u8) -> char {
    let shown = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if shown(byte) {
        char::from(byte)
    } else {
        char::from_u32(256 + (0..byte).filter(|other| !shown(*other)).count() as u32).unwrap()
    }
}

/// Returns a document whose ids below 256 are bytes, then `merges`, then added tokens, each with its flag `special`.
fn bytes(merges: &[(&str, &str)], added: &[(&str, bool)]) -> Value {
    let mut vocab: serde_json::Map<String, Value> = (0..=u8::MAX)
        .map(|byte| (letter(byte).to_string(), json!(byte)))
        .collect();
    for (left, right) in merges {
        vocab.insert(format!("{left}{right}"), json!(vocab.len()));
    }
    let first = vocab.len();
    let token = |(at, (text, special)): (usize, &(&str, bool))| json!({"id": first + at, "content": text, "special": special, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    json!({
        "version": "1.0",
        "added_tokens": added.iter().enumerate().map(token).collect::<Vec<_>>(),
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges.iter().map(|(l, r)| json!([l, r])).collect::<Vec<_>>()},
    })
}

/// Returns a document of these characters and `<unk>`, with a model of a type that has an unknown token.
fn with_unknown(model: &Value, pre_tokenizer: &Value) -> Value {
    let unknown = json!({"id": 0, "content": "<unk>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    json!({"version": "1.0", "added_tokens": [unknown], "pre_tokenizer": pre_tokenizer, "model": model})
}

fn tokenizer(document: &Value, config: &Value, template: Option<&str>) -> Tokenizer {
    Tokenizer::from_hf(
        document.to_string().as_bytes(),
        Some(config.to_string().as_bytes()),
        template.map(str::as_bytes),
    )
    .unwrap()
}

fn read(tokenizer: &Tokenizer, row: &Value) -> Dataset {
    Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, tokenizer, 0.0).unwrap()
}

/// Returns the ids of the first example, each with a flag that it is learned.
fn taught(tokenizer: &Tokenizer, row: &Value) -> Vec<(u32, bool)> {
    let config = TrainConfig {
        seq_len: 512,
        data_order: DataOrder::Sequential,
        ..TrainConfig::default()
    };
    let Preview { segments, .. } = read(tokenizer, row)
        .preview(&config, tokenizer, 1)
        .unwrap()
        .remove(0);
    segments
        .into_iter()
        .flat_map(|segment| {
            segment
                .tokens
                .into_iter()
                .map(move |token| (token.id, segment.learned))
        })
        .collect()
}

fn learned(tokenizer: &Tokenizer, row: &Value) -> Vec<u32> {
    taught(tokenizer, row)
        .into_iter()
        .filter(|(_, learned)| *learned)
        .map(|(id, _)| id)
        .collect()
}

fn told(data: &Dataset, code: &str) -> Option<DataWarning> {
    data.reading_warnings()
        .into_iter()
        .find(|warning| warning.code == code)
}

const ENDS: &str = r#"{"bos_token": "<s>", "eos_token": "</s>"}"#;
const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn ends() -> Value {
    serde_json::from_str(ENDS).unwrap()
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// T5-08. The token " four" begins in the prompt of one row and in the completion of the other, whatever a post-processor says of its place.
#[test]
fn a_post_processor_that_trims_moves_no_token() {
    let merges = [("Ġ", "f"), ("Ġf", "o"), ("Ġfo", "u"), ("Ġfou", "r")];
    let mut document = bytes(&merges, &[("<s>", true), ("</s>", true)]);
    let trims = |trim: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": trim, "use_regex": true});
    let roberta = json!({"type": "RobertaProcessing", "sep": ["</s>", 261], "cls": ["<s>", 260], "trim_offsets": true, "add_prefix_space": false});
    for processor in [
        Value::Null,
        trims(false),
        trims(true),
        json!({"type": "Sequence", "processors": [trims(true)]}),
        roberta,
    ] {
        document["post_processor"] = processor.clone();
        let tokenizer = tokenizer(&document, &json!({"eos_token": "</s>"}), None);
        for (prompt, completion, expected, crosses) in [
            ("2+2 is ", "four", vec![261], true),
            ("2+2 is", " four", vec![259, 261], false),
        ] {
            let row = json!({"prompt": prompt, "completion": completion});
            assert_eq!(
                learned(&tokenizer, &row),
                expected,
                "{prompt:?} {processor}"
            );
            assert_eq!(
                told(&read(&tokenizer, &row), "data.boundary").is_some(),
                crosses,
                "{prompt:?} {processor}"
            );
        }
    }
}

/// A token with a space and the first byte of a character begins in the prompt and ends in the completion, in the middle of a character.
#[test]
fn parts_of_a_character_lie_where_their_bytes_do() {
    // "é" is c3 a9.
    let tokenizer = tokenizer(
        &bytes(&[("Ġ", "Ã")], &[("<s>", true), ("</s>", true)]),
        &json!({"eos_token": "</s>"}),
        None,
    );
    let row = json!({"prompt": "is ", "completion": "é"});
    assert_eq!(
        taught(&tokenizer, &row),
        [
            (105, false),
            (115, false),
            (256, false),
            (0xa9, true),
            (258, true)
        ]
    );
    assert!(told(&read(&tokenizer, &row), "data.boundary").is_some());
    let (_, starts) = tokenizer.encode_with_starts("a é€\u{1f642}").unwrap();
    assert_eq!(starts, [0, 1, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// T5-13. The token that ends a turn is that by the template, and needs no mark.
#[test]
fn a_turn_ends_in_a_token_that_is_not_special() {
    let added = |special| {
        [
            ("<|endoftext|>", true),
            ("<|im_start|>", special),
            ("<|im_end|>", special),
        ]
    };
    let row = json!({"messages": [said("user", "2+2?"), said("assistant", "4"), said("user", "3+3?"), said("assistant", "6")]});
    for special in [false, true] {
        let tokenizer = tokenizer(
            &bytes(&[], &added(special)),
            &json!({"eos_token": "<|endoftext|>"}),
            Some(CHATML),
        );
        assert_eq!(
            (tokenizer.turn_end(), tokenizer.stops()),
            (Some(258), vec![256, 258])
        );
        assert_eq!(learned(&tokenizer, &row), [52, 258, 54, 258]);
        let data = read(&tokenizer, &row);
        assert_eq!(
            (data.turn_ends(), told(&data, "data.end.turn").is_some()),
            (&[258][..], true)
        );
        assert_eq!(told(&data, "data.end.unknown"), None);
    }
    // A word may come before it.
    let words = tokenizer(
        &bytes(&[], &added(false)),
        &json!({"eos_token": "<|endoftext|>"}),
        Some(&CHATML.replace("content }}", "content }} done")),
    );
    assert_eq!(words.turn_end(), Some(258));
    // A line end that is an added token ends nothing.
    let lines = tokenizer(
        &bytes(&[], &[("<|endoftext|>", true), ("\n", false)]),
        &json!({"eos_token": "<|endoftext|>"}),
        Some("{% for m in messages %}{{ m.content }}\n{% endfor %}"),
    );
    assert_eq!(lines.turn_end(), None);
}

/// T5-06, and the other kinds of vocabularies that have an unknown token.
#[test]
fn characters_without_a_token_are_reported() {
    type Vocab = serde_json::Map<String, Value>;
    let letters = |more: &[&str]| -> Vocab {
        let tokens = ["<unk>", "▁"]
            .iter()
            .chain(more)
            .map(ToString::to_string)
            .chain(('a'..='z').map(String::from));
        tokens
            .enumerate()
            .map(|(id, token)| (token, json!(id)))
            .collect()
    };
    let scored: Vec<Value> = letters(&[])
        .keys()
        .map(|token| json!([token, -1.0]))
        .collect();
    let space =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let words = json!({"type": "Whitespace"});
    let bpe = |fuse: bool, fallback: bool, more: &[&str]| json!({"type": "BPE", "vocab": letters(more), "merges": [], "unk_token": "<unk>", "fuse_unk": fuse, "byte_fallback": fallback});
    let parts: Vocab = letters(&[])
        .into_iter()
        .chain(
            ('a'..='z')
                .zip(100..)
                .map(|(c, id)| (format!("##{c}"), json!(id))),
        )
        .collect();
    let both = &["€", "{"][..];
    for (model, rule, names) in [
        (bpe(false, false, &[]), &space, both),
        (bpe(true, false, &[]), &space, both),
        // One byte of the euro sign is missing; the brace is written as its byte.
        (
            bpe(false, true, &["<0xE2>", "<0x82>", "<0x7B>"]),
            &space,
            &both[..1],
        ),
        (
            json!({"type": "Unigram", "vocab": scored, "unk_id": 0, "byte_fallback": false}),
            &space,
            both,
        ),
        (
            json!({"type": "WordPiece", "vocab": parts, "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}),
            &words,
            both,
        ),
        (
            json!({"type": "WordLevel", "vocab": letters(&["is", "or"]), "unk_token": "<unk>"}),
            &words,
            both,
        ),
    ] {
        let kind = format!("{} {}", model["type"], names.len());
        let tokenizer = tokenizer(&with_unknown(&model, rule), &json!({}), None);
        let of = |completion: &str| {
            read(
                &tokenizer,
                &json!({"prompt": "a ", "completion": completion}),
            )
        };
        let text = "is € { or { a";
        let warning = told(&of(text), "data.unknown").unwrap();
        assert_eq!(
            (warning.count, warning.rows.len()),
            (if names.len() == 1 { 1 } else { 3 }, 1),
            "{kind}: {}",
            warning.message
        );
        assert!(
            names
                .iter()
                .all(|name| warning.message.contains(&format!("\"{name}\" ("))),
            "{kind}: {}",
            warning.message
        );
        // A stream and a prompt have the same warning; a text of known characters has none.
        let stream = Dataset::from_bytes(text.as_bytes(), Form::Text, &tokenizer, 0.0).unwrap();
        assert_eq!(
            told(&stream, "data.unknown").map(|found| found.message),
            Some(warning.message.clone()),
            "{kind}"
        );
        let (_, found) = tokenizer.encode_text(text).unwrap();
        assert_eq!(found.warnings()[0].message, warning.message, "{kind}");
        assert_eq!(told(&of("is or a"), "data.unknown"), None, "{kind}");
        // The token's own text is a control token, and no unknown character.
        let own = of("b <unk>");
        assert_eq!(
            (
                told(&own, "data.unknown"),
                told(&own, "data.control").map(|told| told.count)
            ),
            (None, Some(1)),
            "{kind}"
        );
        // A text that ends with two of them has no end twice.
        assert_eq!(told(&of("b € €"), "data.end.twice"), None, "{kind}");
    }
    // A word of known characters that the vocabulary lacks is named as a word.
    let whole = tokenizer(
        &with_unknown(
            &json!({"type": "WordLevel", "vocab": letters(&[]), "unk_token": "<unk>"}),
            &words,
        ),
        &json!({}),
        None,
    );
    let found = told(
        &read(&whole, &json!({"prompt": "a ", "completion": "word b"})),
        "data.unknown",
    )
    .unwrap();
    assert!(
        found.count == 1 && found.message.ends_with("\"word\" (1)."),
        "{}",
        found.message
    );
    // Ten different characters are named, and all are counted.
    let tokenizer = tokenizer(
        &with_unknown(&bpe(false, false, &[]), &space),
        &json!({}),
        None,
    );
    let line_end = told(
        &read(&tokenizer, &json!({"prompt": "a", "completion": "b\nc"})),
        "data.unknown",
    )
    .unwrap();
    assert!(
        line_end.message.contains("\"\\n\" (1)"),
        "{}",
        line_end.message
    );
    let many = told(
        &read(
            &tokenizer,
            &json!({"prompt": "a", "completion": "0123456789ABC0"}),
        ),
        "data.unknown",
    )
    .unwrap();
    assert!(
        many.sentence(&[]).starts_with("line 1: ") && many.sentence(&[]).ends_with("3 more."),
        "{}",
        many.sentence(&[])
    );
    assert!(
        many.count == 14
            && many.message.contains("\"0\" (2)")
            && many.message.contains("\"9\" (1), 3 more"),
        "{}",
        many.message
    );
}

/// Where a vocabulary has neither a token for a character nor one for unknown characters, the character would vanish.
#[test]
fn characters_that_would_vanish_are_refused() {
    let vocab: serde_json::Map<String, Value> = ["</s>", "▁"]
        .iter()
        .map(ToString::to_string)
        .chain(('a'..='z').map(String::from))
        .enumerate()
        .map(|(id, token)| (token, json!(id)))
        .collect();
    let plain = json!({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": []}});
    let mut byte_level = bytes(&[], &[("</s>", true)]);
    byte_level["model"]["vocab"]
        .as_object_mut()
        .unwrap()
        .shift_remove(&letter(0x82).to_string());
    for document in [plain, byte_level] {
        let tokenizer = tokenizer(&document, &json!({"eos_token": "</s>"}), None);
        for refused in [
            tokenizer.encode("a €").unwrap_err(),
            tokenizer.encode_with_starts("a €").unwrap_err(),
            tokenizer.encode_text("a €").unwrap_err(),
        ] {
            assert!(
                refused.code() == "tokenizer.text" && refused.to_string().contains('€'),
                "{refused}"
            );
        }
        assert!(tokenizer.encode("a b").is_ok());
        let rows = format!(
            "{}\n{}",
            json!({"prompt": "a", "completion": "b"}),
            json!({"prompt": "a", "completion": "€"})
        );
        let settings = tabtune::config::DataSettings {
            on_bad_row: OnBadRow::Skip,
            ..Default::default()
        };
        let file = DataFile {
            name: "rows.jsonl",
            bytes: rows.as_bytes(),
        };
        let data = Dataset::read(&[&file], Ok::<_, tabtune::Error>(&tokenizer), &settings).unwrap();
        assert!(
            told(&data, "data.row.skipped")
                .unwrap()
                .message
                .contains('€')
        );
    }
    assert!(
        tokenizer(&bytes(&[], &[]), &json!({}), None)
            .encode("a €")
            .is_ok()
    );
}

/// Control tokens in contents are encoded as transformers does, and reported; the template's own are not.
#[test]
fn control_tokens_in_contents_are_reported() {
    let added = [
        ("<|endoftext|>", true),
        ("<|im_start|>", true),
        ("<|im_end|>", false),
        ("<s>", true),
    ];
    let tokenizer = tokenizer(
        &bytes(&[], &added),
        &json!({"eos_token": "<|endoftext|>"}),
        Some(CHATML),
    );
    let row = json!({"messages": [said("user", "a<|im_end|><|im_start|>b<|im_end|>"), said("assistant", "c < d <s>")]});
    let warning = told(&read(&tokenizer, &row), "data.control").unwrap();
    assert_eq!((warning.count, warning.rows.len()), (4, 1));
    for name in ["<|im_end|> (2)", "<|im_start|> (1)", "<s> (1)"] {
        assert!(warning.message.contains(name), "{}", warning.message);
    }
    let (ids, found) = tokenizer
        .encode_chat(&Conversation::from_json(&row["messages"]).unwrap(), false)
        .unwrap();
    assert_eq!(found.warnings()[0].message, warning.message);
    assert_eq!(ids.iter().filter(|id| **id == 258).count(), 4);
    assert_eq!(
        told(
            &read(
                &tokenizer,
                &json!({"messages": [said("user", "a"), said("assistant", "b")]})
            ),
            "data.control"
        ),
        None
    );
    // In a stream of text the end of a text separates documents.
    let stream =
        |text: &str| Dataset::from_bytes(text.as_bytes(), Form::Text, &tokenizer, 0.0).unwrap();
    assert_eq!(told(&stream("a<|endoftext|>b"), "data.control"), None);
    assert_eq!(
        told(&stream("a<|im_start|>b"), "data.control").map(|told| told.count),
        Some(1)
    );
    // Beginning and end of a text have codes of their own.
    let mut begun = bytes(&[], &[("<s>", true), ("</s>", true)]);
    begun["post_processor"] = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}});
    let begun = self::tokenizer(&begun, &ends(), None);
    let control = |completion: &str| {
        told(
            &read(&begun, &json!({"prompt": "<s>a", "completion": completion})),
            "data.control",
        )
        .map(|told| told.count)
    };
    assert_eq!(
        [control("b"), control("b</s>"), control("</s>b</s>")],
        [None, None, Some(1)]
    );
}

const TOOLS: &str = "{%- if tools %}{%- for t in tools %}{{- (t | tojson) + '\n' }}{%- endfor %}{%- endif %}{%- for m in messages %}\
    {{- '<|im_start|>' + m.role + '\n' }}{%- if m.content %}{{- m.content }}{%- endif %}\
    {%- for c in m.tool_calls or [] %}{{- (c.function | tojson) }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}\
    {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}";

fn with_tools() -> Tokenizer {
    let added = [
        ("<|endoftext|>", true),
        ("<|im_start|>", true),
        ("<|im_end|>", true),
    ];
    tokenizer(
        &bytes(&[], &added),
        &json!({"eos_token": "<|im_end|>"}),
        Some(TOOLS),
    )
}

/// T5-10. Tools and functions as JSON texts are those that the texts hold, in rows and in requests.
#[test]
fn tools_and_functions_that_are_json_texts_are_decoded() {
    let tokenizer = with_tools();
    let chat = |tools: Value| json!({"messages": [said("user", "a"), said("assistant", "b")], "tools": tools});
    let function = json!({"name": "f", "parameters": {"type": "object"}});
    let tool = json!({"type": "function", "function": function});
    let expected = taught(&tokenizer, &chat(json!([tool])));
    let text = |value: &Value| Value::from(value.to_string());
    let parameters = json!({"type": "function", "function": {"name": "f", "parameters": text(&json!({"type": "object"}))}});
    for tools in [
        json!([text(&tool)]),
        text(&json!([tool])),
        text(&json!([text(&tool)])),
        json!([{"type": "function", "function": text(&function)}]),
        json!([parameters]),
    ] {
        assert_eq!(
            taught(&tokenizer, &chat(tools.clone())),
            expected,
            "{tools}"
        );
        let conversation = Conversation::from_json(&chat(tools.clone())).unwrap();
        let ids: Vec<u32> = expected.iter().map(|(id, _)| *id).collect();
        assert_eq!(
            tokenizer.encode_chat(&conversation, false).unwrap().0,
            ids,
            "{tools}"
        );
    }
    for wrong in [
        json!(["f(x)"]),
        json!([3]),
        json!([{"function": "f(x)"}]),
        json!("f"),
        json!({"name": "f"}),
        json!([{"function": {"parameters": "x"}}]),
    ] {
        let refused = Dataset::from_bytes(
            chat(wrong.clone()).to_string().as_bytes(),
            Form::Jsonl,
            &tokenizer,
            0.0,
        )
        .unwrap_err();
        assert!(
            refused.code() == "data.row" && refused.to_string().contains("tool"),
            "{wrong}: {refused}"
        );
        assert_eq!(
            Conversation::from_json(&chat(wrong)).unwrap_err().code(),
            "config.invalid"
        );
    }
    // A call's function, too.
    let called = |function: Value| json!({"messages": [said("user", "a"), {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}]});
    let call = json!({"name": "f", "arguments": {"x": 1}});
    assert_eq!(
        taught(&tokenizer, &called(text(&call))),
        taught(&tokenizer, &called(call))
    );
}

/// The arguments of a call that are a JSON text are a text, which `tojson` writes in quotes, in transformers too.
#[test]
fn arguments_that_are_texts_in_quotes_are_reported() {
    let called = |arguments: Value| json!({"messages": [said("user", "a"), {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": arguments}}]}]});
    let tokenizer = with_tools();
    let (object, quoted) = (called(json!({"x": "é"})), called(json!("{\"x\": \"é\"}")));
    let text = |row: &Value| {
        tokenizer
            .decode(
                &taught(&tokenizer, row)
                    .into_iter()
                    .map(|(id, _)| id)
                    .collect::<Vec<_>>(),
            )
            .unwrap()
    };
    // As `json.dumps(…, ensure_ascii=False)` writes both.
    assert!(
        text(&object).contains(r#"{"name": "f", "arguments": {"x": "é"}}"#),
        "{}",
        text(&object)
    );
    assert!(
        text(&quoted).contains(r#"{"name": "f", "arguments": "{\"x\": \"é\"}"}"#),
        "{}",
        text(&quoted)
    );
    let code = "data.arguments.text";
    assert_eq!(
        [
            told(&read(&tokenizer, &object), code),
            told(&read(&tokenizer, &called(json!("plain"))), code)
        ],
        [None, None]
    );
    assert_eq!(
        told(&read(&tokenizer, &quoted), code).map(|told| (told.count, told.rows.len())),
        Some((1, 1))
    );
    let (_, found) = tokenizer
        .encode_chat(&Conversation::from_json(&quoted).unwrap(), false)
        .unwrap();
    assert_eq!(
        found
            .warnings()
            .iter()
            .map(|told| told.code)
            .collect::<Vec<_>>(),
        [code]
    );
    // A template that writes them as they are.
    let plain = self::tokenizer(
        &bytes(&[], &[("<|im_start|>", true), ("<|im_end|>", true)]),
        &json!({"eos_token": "<|im_end|>"}),
        Some(&TOOLS.replace("(c.function | tojson)", "c.function.arguments")),
    );
    assert_eq!(told(&read(&plain, &quoted), code), None);
}

/// T5-14. What a template writes at another message is read.
#[test]
fn a_message_that_is_written_elsewhere_is_not_reported_as_unread() {
    let template = "{% if messages[0].role == 'system' %}{% set pre = messages[0].content + '\n\n' %}{% set turns = messages[1:] %}\
        {% else %}{% set pre = '' %}{% set turns = messages %}{% endif %}{% for m in turns %}<|im_start|>{{ m.role }}\n\
        {{ (pre if loop.first else '') + m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let added = [("<|im_start|>", true), ("<|im_end|>", true)];
    let of = |template: &str| {
        tokenizer(
            &bytes(&[], &added),
            &json!({"eos_token": "<|im_end|>"}),
            Some(template),
        )
    };
    let row = json!({"messages": [said("system", "Be brief."), said("user", "2+2?"), said("assistant", "4")]});
    assert_eq!(
        told(&read(&of(template), &row), "data.columns.unused"),
        None
    );
    // One that leaves it out is reported.
    let lost = template.replace("messages[0].content + ", "");
    let warning = told(&read(&of(&lost), &row), "data.columns.unused").unwrap();
    assert!(
        warning
            .message
            .contains("messages[].content of the role system"),
        "{}",
        warning.message
    );
}

/// A message of any role that says so itself is learned, from its content to the end of its turn.
#[test]
fn messages_that_are_to_be_trained_are_learned_in_any_role() {
    let added = [("<|im_start|>", true), ("<|im_end|>", true)];
    let of = |template: &str| {
        tokenizer(
            &bytes(&[], &added),
            &json!({"eos_token": "<|im_end|>"}),
            Some(template),
        )
    };
    let train =
        |role: &str, content: &str| json!({"role": role, "content": content, "train": true});
    let text = |template: &str, messages: Value| {
        let tokenizer = of(template);
        tokenizer
            .decode(&learned(&tokenizer, &json!({ "messages": messages })))
            .unwrap()
    };
    let marks = CHATML.replace(
        "{{ m.content }}",
        "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}",
    );
    let both = json!([
        said("system", "s"),
        train("user", "box"),
        said("assistant", "b"),
        said("user", "c"),
        said("assistant", "d")
    ]);
    assert_eq!(
        text(CHATML, both.clone()),
        "box<|im_end|>b<|im_end|>d<|im_end|>"
    );
    assert_eq!(text(&marks, both), "box<|im_end|>bd");
    assert_eq!(
        text(CHATML, json!([train("user", "a"), said("assistant", "b")])),
        "a<|im_end|>b<|im_end|>"
    );
    assert_eq!(
        text(CHATML, json!([said("system", "s"), train("user", "a")])),
        "a<|im_end|>"
    );
    let row = json!({"prompt": [train("assistant", "first"), said("user", "a")], "completion": [said("assistant", "b")]});
    let tokenizer = of(CHATML);
    assert_eq!(
        tokenizer.decode(&learned(&tokenizer, &row)).unwrap(),
        "first<|im_end|>b<|im_end|>"
    );
    // A template that does not write the content has nothing to learn of it.
    let silent = CHATML.replace(
        "{{ m.content }}",
        "{% if m.role == 'assistant' %}{{ m.content }}{% endif %}",
    );
    let row = json!({"messages": [train("user", "a"), said("assistant", "b")]}).to_string();
    let refused = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &of(&silent), 0.0)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("message 0"), "{refused}");
}

/// T5-22. An empty template is named as that, and so is one that writes nothing.
#[test]
fn an_empty_template_is_reported_as_that() {
    let row = json!({"messages": [said("user", "a"), said("assistant", "b")]}).to_string();
    for (template, words) in [
        ("", "template"),
        (" \n", "template"),
        ("{# nothing #}", "writes nothing"),
    ] {
        let config = json!({"eos_token": "</s>", "chat_template": template});
        let tokenizer = tokenizer(&bytes(&[], &[("</s>", true)]), &config, None);
        let refused =
            Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap_err();
        assert!(
            refused.code() == "data.template" && refused.to_string().contains(words),
            "{template:?}: {refused}"
        );
    }
}

/// Training, a request and the prompt of an answer give the same ids, in every template of the goldens and however a content is written.
#[test]
fn a_conversation_has_the_same_ids_in_training_chat_and_score() {
    let chats = golden("chats");
    for (name, template) in chats["templates"].as_object().unwrap() {
        let mut parts = crate::tokenizer::byte_level("smollm");
        parts.chat_template = Some(template.as_str().unwrap().to_owned());
        let tokenizer = Tokenizer::from_parts(parts).unwrap();
        let conversations = [
            json!({"messages": [said("user", "Who was it?"), said("assistant", "It was Bennet.")]}),
            json!({"messages": [said("user", " a  b\n"), {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"text": " d "}], "name": null}]}),
            json!({"messages": [said("user", "é€"), {"role": "assistant", "content": "e", "reasoning": "because"}]}),
        ];
        for row in conversations {
            let whole = Conversation::from_json(&row).unwrap();
            let scored = tokenizer.encode_chat(&whole, false).unwrap().0;
            let row = taught(&tokenizer, &row);
            let ids: Vec<u32> = row.iter().map(|(id, _)| *id).collect();
            // A template may leave the end of an answer to the next turn.
            assert!(
                ids.starts_with(&scored) && ids.len() <= scored.len() + 8,
                "{name}: {ids:?} {scored:?}"
            );
            let mut asked = whole.clone();
            asked.messages.truncate(1);
            let prompt = tokenizer.encode_chat(&asked, true).unwrap().0;
            let first = row.iter().position(|(_, learned)| *learned).unwrap();
            if ids.starts_with(&prompt) {
                assert!(first >= prompt.len(), "{name}");
                let between = tokenizer.decode(&ids[prompt.len()..first]).unwrap();
                assert!(between.trim().is_empty(), "{name}: {between:?}");
            } else {
                // A vocabulary may join the line ends before an answer when nothing follows them.
                let before = tokenizer.decode(&ids[..first]).unwrap();
                assert!(
                    tokenizer.decode(&prompt).unwrap().starts_with(&before),
                    "{name}: {before:?}"
                );
            }
        }
    }
}
