//! Documents and weights in whose place there is something else: each is described as what it is, and named as the file that it is in.

use std::rc::Rc;

use serde_json::json;
use tabtune::Error;
use tabtune::bundle::{Bundle, LoraConfig, ModelAssets, open_bundle};
use tabtune::formats::{ByteSource, MemorySource, SafetensorsFile, not_json};

use super::files::{file, ramp, safetensors};

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
const PAGE: &[u8] = b"<!DOCTYPE html><html><body>404</body></html>";

/// Returns every form that a document may take on the way to its user, with the words that describe it.
fn forms(document: &str) -> Vec<(Vec<u8>, &'static str)> {
    let utf16 = |mark: &[u8]| -> Vec<u8> {
        [
            mark,
            &document
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>(),
        ]
        .concat()
    };
    let end = document.len() - 1;
    let changed = |to: &str| format!("{}{to}", &document[..end]).into_bytes();
    vec![
        (changed(""), "ends in the middle"),
        (
            [&b"\xef\xbb\xbf"[..], document.as_bytes()].concat(),
            "byte order mark",
        ),
        (utf16(b"\xff\xfe"), "UTF-16"),
        (utf16(b""), "UTF-16"),
        (b"Entry not found".to_vec(), "Entry not found"),
        (
            b"Access to model a/b is restricted. You must have access to it".to_vec(),
            "Access to model a/b",
        ),
        (b"Repository Not Found".to_vec(), "check the name"),
        (b"Invalid username or password.".to_vec(), "your access"),
        (b"404: Not Found".to_vec(), "404: Not Found"),
        (
            br#"{"error":"Repository not found"}"#.to_vec(),
            "the message",
        ),
        (
            b"The server is on holiday".to_vec(),
            "The server is on holiday",
        ),
        (
            format!("<<<<<<< HEAD\n{document}\n=======\n{{}}\n>>>>>>> other\n").into_bytes(),
            "merge",
        ),
        (changed("\n=======\n}"), "merge"),
        (changed(", // why\n \"a\": 1}"), "comment"),
        (changed(", \"a\": NaN}"), "NaN"),
        (changed(", \"a\": -Infinity}"), "Infinity"),
        (changed(", \"a\": True}"), "JSON writes true"),
        (changed(", 'a': 1}"), "double quotes"),
        (changed(",}"), "comma"),
        (vec![0x1f, 0x8b, 8, 0, 0, 0], "gzip"),
        (b"PK\x03\x04....".to_vec(), "zip"),
        (vec![0x80, 2, b'}', b'q', 0, b'.'], "pickle"),
        (vec![0; 40], "zero bytes"),
    ]
}

/// Returns the files of a model of one row, with `changes` in the place of its documents.
fn model(changes: &[(&str, &[u8])]) -> Vec<Rc<dyn ByteSource>> {
    let config = json!({"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true});
    let end = json!({"id": 2, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let tokenizer = json!({"version": "1.0", "added_tokens": [end], "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    let mut documents: Vec<(&str, Vec<u8>)> = vec![
        ("config.json", config.to_string().into()),
        ("tokenizer.json", tokenizer.to_string().into()),
        (
            "model.safetensors",
            safetensors(&[("model.embed_tokens.weight", vec![3, 4], ramp(12, 0.0))]),
        ),
    ];
    for (name, bytes) in changes {
        documents.retain(|(found, _)| found != name);
        documents.push((name, bytes.to_vec()));
    }
    documents
        .into_iter()
        .map(|(name, bytes)| file(name, bytes))
        .collect()
}

/// Requires that an error is about the file `name` and has the words.
fn describes(error: &Error, name: &str, words: &str) {
    let text = error.to_string();
    assert!(
        text.contains(name) && text.contains(words),
        "{name}, {words}: {text}"
    );
}

#[test]
fn every_form_of_a_document_has_its_words() {
    let document = "{\"x\": {\"b\": [1, 2.5e3, \"é\"]},\n \"c\": null}";
    assert_eq!(not_json(document.as_bytes()), None);
    for (bytes, words) in forms(document) {
        let flaw = not_json(&bytes)
            .unwrap_or_else(|| panic!("{words}"))
            .to_string();
        assert!(flaw.contains(words), "{words}: {flaw}");
    }
    // A cut anywhere is a cut, but for one that leaves nothing.
    for end in (1..document.len()).filter(|&end| document.is_char_boundary(end)) {
        let flaw = not_json(&document.as_bytes()[..end])
            .unwrap_or_else(|| panic!("{end}"))
            .to_string();
        assert!(flaw.contains("ends in the middle"), "{end}: {flaw}");
    }
    assert!(
        not_json(b" \n")
            .unwrap()
            .to_string()
            .contains("an empty file")
    );
    assert!(
        not_json(b"{\"a\": 1\n \"b\": 2}")
            .unwrap()
            .to_string()
            .contains("line 2, column 2")
    );
    // Text of a file is shortened and escaped.
    let odd = not_json(
        "\u{202e}Sorry, this is a message that is longer than forty characters".as_bytes(),
    )
    .unwrap()
    .to_string();
    assert!(
        odd.contains("\\u{202e}Sorry") && odd.contains('…') && !odd.contains("characters"),
        "{odd}"
    );
}

#[test]
fn config_index_and_adapter_say_what_lies_in_their_place() {
    for (bytes, words) in forms("{\"model_type\": \"llama\"}") {
        let error = open_bundle(model(&[("config.json", &bytes)])).unwrap_err();
        assert_eq!(error.code(), "bundle.config.json", "{words}");
        describes(&error, "config.json", words);
    }
    for (bytes, words) in forms("{\"weight_map\": {}}") {
        let mut files = model(&[("model.safetensors.index.json", &bytes)]);
        files.retain(|file| file.name() != "model.safetensors");
        let error = open_bundle(files).unwrap_err();
        assert_eq!(error.code(), "index.json", "{words}");
        describes(&error, "model.safetensors.index.json", words);
    }
    for (bytes, words) in forms("{\"peft_type\": \"LORA\"}") {
        let error = LoraConfig::open(&MemorySource::new("adapter_config.json", bytes)).unwrap_err();
        assert_eq!(error.code(), "adapter.json", "{words}");
        describes(&error, "adapter_config.json", words);
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    let twice = br#"{"model_type": "llama", "hidden_size": 4, "rope_scaling": {"factor": 2.0, "factor": 4.0}}"#;
    let error = open_bundle(model(&[("config.json", twice)])).unwrap_err();
    assert_eq!(error.code(), "bundle.config.json", "{error}");
    describes(&error, "config.json", "rope_scaling.factor twice");
}

#[test]
fn an_end_that_is_no_id_is_refused() {
    let config = json!({"model_type": "llama", "eos_token_id": "</s>"});
    let error = open_bundle(model(&[("config.json", config.to_string().as_bytes())])).unwrap_err();
    assert_eq!(error.code(), "model.config.type", "{error}");
    describes(&error, "config.json", "an id, or a list of ids");
}

#[test]
fn a_chat_template_that_is_cut_is_reported() {
    let files = model(&[(
        "chat_template.jinja",
        b"{% for m in messages %}{{ m.content",
    )]);
    let bundle = open_bundle(files).unwrap();
    let told: Vec<String> = bundle
        .warnings
        .iter()
        .filter(|warning| warning.code == "tokenizer.template")
        .map(|w| w.message())
        .collect();
    assert!(
        told.len() == 1 && told[0].contains("carried along as it is"),
        "{told:?}"
    );
}

/// Opens a model whose tokenizer is refused, and returns the reason.
fn refused(changes: &[(&str, &[u8])]) -> (Bundle, Error) {
    let bundle = open_bundle(model(changes)).unwrap();
    assert!(bundle.tokenizer.is_none(), "{:?}", bundle.warnings);
    assert!(bundle.read_f32("model.embed_tokens.weight").is_ok());
    let error = bundle.need_tokenizer().unwrap_err();
    (bundle, error)
}

#[test]
fn documents_of_a_tokenizer_say_what_lies_in_their_place() {
    for name in [
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "generation_config.json",
    ] {
        for (bytes, words) in forms("{\"eos_token\": \"</s>\"}") {
            let (bundle, error) = refused(&[(name, &bytes)]);
            assert_eq!(error.code(), "tokenizer.invalid", "{name} {words}");
            describes(&error, name, words);
            // An export has nothing of it, and opening has said so.
            let written = ModelAssets::of_bundle(&bundle)
                .folder_documents(&bundle.config, "float32")
                .unwrap();
            assert!(
                written.iter().all(|(_, found)| *found != bytes),
                "{name} {words}"
            );
            let carried = bundle
                .warnings
                .iter()
                .find(|warning| warning.code == "tokenizer.file.other");
            if name != "tokenizer.json" {
                let message = carried
                    .unwrap_or_else(|| panic!("{name} {words}"))
                    .message();
                assert!(
                    message.contains(name)
                        && message.contains("not carried")
                        && message.contains(words),
                    "{message}"
                );
            }
        }
    }
    // JSON of another kind may not hide the end of a text either.
    let (_, error) = refused(&[("special_tokens_map.json", b"[]")]);
    describes(&error, "special_tokens_map.json", "end");
}

/// The one place of the token that ends a text counts where it is whole.
#[test]
fn the_end_of_a_text_is_never_lost_in_silence() {
    let places: [(&str, &[u8]); 2] = [
        ("special_tokens_map.json", br#"{"eos_token": "</s>"}"#),
        ("generation_config.json", br#"{"eos_token_id": 2}"#),
    ];
    for (name, bytes) in places {
        let bundle = open_bundle(model(&[(name, bytes)])).unwrap();
        assert_eq!(bundle.need_tokenizer().unwrap().eos(), [2], "{name}");
        let (_, error) = refused(&[(name, &bytes[..bytes.len() - 1])]);
        describes(&error, name, "ends a text");
    }
}

#[test]
fn a_chat_template_is_no_pointer_and_no_message() {
    let conflict = b"{{ a }}\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> b\n";
    let cases: [(&[u8], &str); 8] = [
        (POINTER, "git lfs pull"),
        (PAGE, "a page of HTML"),
        (b"Entry not found", "Entry not found"),
        (b"Access to model a/b is restricted.", "Access to model"),
        (b"\xef\xbb\xbf{{ messages }}", "byte order mark"),
        (b"\xff\xfe{\0{\0 \0a\0", "UTF-16"),
        (&[0x1f, 0x8b, 8, 0, 0], "gzip"),
        (conflict, "merge"),
    ];
    for (bytes, words) in cases {
        let (bundle, error) = refused(&[("chat_template.jinja", bytes)]);
        describes(&error, "chat_template.jinja", words);
        let written = ModelAssets::of_bundle(&bundle)
            .folder_documents(&bundle.config, "float32")
            .unwrap();
        assert!(
            written
                .iter()
                .all(|(name, _)| name != "chat_template.jinja"),
            "{words}"
        );
    }
    for template in [
        "<s>{{ messages }}",
        "<|im_start|>{% for m in messages %}{% endfor %}",
        "  {{ messages }}",
    ] {
        let bundle = open_bundle(model(&[("chat_template.jinja", template.as_bytes())])).unwrap();
        assert!(
            bundle.need_tokenizer().unwrap().has_chat_template(),
            "{template}"
        );
    }
}

#[test]
fn weights_say_what_lies_in_their_place() {
    let cases: [(&[u8], &str); 8] = [
        (b"Entry not found", "the message \"Entry not found\""),
        (
            b"Access to model a/b is restricted. You must have access",
            "check the name",
        ),
        (
            b"The server is on holiday",
            "the text \"The server is on holiday\"",
        ),
        (br#"{"error":"Not found"}"#, "the message"),
        (b"", "an empty file"),
        (&[0; 100], "zero bytes"),
        (b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> c\n", "merge"),
        (b"\xff\xfeE\0n\0t\0r\0y\0", "UTF-16"),
    ];
    for (bytes, words) in cases {
        let error = SafetensorsFile::open(&MemorySource::new("m.safetensors", bytes)).unwrap_err();
        assert!(
            error.code().starts_with("safetensors.header."),
            "{words}: {error}"
        );
        describes(&error, "m.safetensors", words);
    }
    for (bytes, words) in [
        (POINTER, "git lfs pull"),
        (PAGE, "a page of HTML"),
        (&b"PK\x03\x04......"[..], "never loaded"),
    ] {
        let error = SafetensorsFile::open(&MemorySource::new("m.safetensors", bytes)).unwrap_err();
        assert_eq!(error.code(), "format.mismatch", "{error}");
        describes(&error, "m.safetensors", words);
    }
    // The length of a header may have the bytes of a mark, and its fault stays what it is.
    for length in [0xfeff_u64, 0xfffe] {
        let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
        let error = SafetensorsFile::open(&MemorySource::new("m.safetensors", bytes)).unwrap_err();
        assert!(
            error.code().starts_with("safetensors.header.")
                && error.to_string().contains(&length.to_string()),
            "{error}"
        );
    }
}
