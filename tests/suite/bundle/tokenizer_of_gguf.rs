//! Tokenizers that are bound to a model in a GGUF file.

use tabtune::bundle::PortableTokenizerBinding;
use tabtune::formats::{GgufFile, GgufValue, MemorySource, gguf_header};
use tabtune::state::{AssetFormat, TokenizerFamily};

/// Returns three tokens as GGUF metadata.
fn metadata() -> Vec<(String, GgufValue)> {
    [
        ("general.architecture", GgufValue::of_text("llama")),
        (
            "tokenizer.ggml.tokens",
            GgufValue::of_texts(&["a", "b", "ab"]),
        ),
        ("tokenizer.ggml.model", GgufValue::of_text("gpt2")),
        ("tokenizer.ggml.merges", GgufValue::of_texts(&["a b"])),
        (
            "tokenizer.ggml.scores",
            GgufValue::of_f32s(&[0.0, -1.0, -2.0]),
        ),
        ("tokenizer.ggml.eos_token_id", GgufValue::of_u32(2)),
        ("tokenizer.ggml.eot_token_id", GgufValue::of_u32(1)),
        ("tokenizer.ggml.eom_token_id", GgufValue::of_u32(2)),
        ("tokenizer.ggml.add_bos_token", GgufValue::of_bool(false)),
        (
            "tokenizer.chat_template.tool_use",
            GgufValue::of_text("{{ tools }}"),
        ),
        (
            "tokenizer.chat_template.default",
            GgufValue::of_text("{{ undeclared }}"),
        ),
        (
            "tokenizer.chat_template",
            GgufValue::of_text("{{ messages }}"),
        ),
    ]
    .map(|(key, value)| (key.to_string(), value))
    .into()
}

fn of_gguf(metadata: &[(String, GgufValue)]) -> PortableTokenizerBinding {
    let file = GgufFile::open(&MemorySource::new(
        "m.gguf",
        gguf_header(metadata, &[]).unwrap().bytes,
    ))
    .unwrap();
    PortableTokenizerBinding::from_gguf(&file, "m.gguf")
        .unwrap()
        .unwrap()
}

/// Line 4 of tests/suite/portable/README.md, for GGUF: family, ids, flags, vocabulary and asset bytes; each changed part changes its digest.
#[test]
fn gguf_gives_its_metadata_as_one_asset() {
    let binding = of_gguf(&metadata());
    let record = &binding.record;
    assert_eq!(
        (record.family, record.asset_format),
        (TokenizerFamily::BytePairEncoding, AssetFormat::GgufMetadata)
    );
    assert_eq!(
        (record.vocab_size, record.bos, record.eos.as_slice()),
        (3, None, &[2, 1][..])
    );
    assert_eq!(
        (record.add_bos, record.add_eos, record.pad, record.unk),
        (Some(false), None, None, None)
    );
    // The asset by hand: ascending keys, each with length, type and bytes.
    let mut asset = Vec::new();
    let mut put = |key: &str, kind: u32, value: &[u8]| {
        asset.extend((key.len() as u64).to_le_bytes());
        asset.extend(key.as_bytes());
        asset.extend(kind.to_le_bytes());
        asset.extend(value);
    };
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let array = |kind: u32, items: &[Vec<u8>]| {
        [
            &kind.to_le_bytes()[..],
            &(items.len() as u64).to_le_bytes()[..],
            &items.concat()[..],
        ]
        .concat()
    };
    put("tokenizer.ggml.add_bos_token", 7, &[0]);
    put("tokenizer.ggml.eom_token_id", 4, &[2, 0, 0, 0]);
    put("tokenizer.ggml.eos_token_id", 4, &[2, 0, 0, 0]);
    put("tokenizer.ggml.eot_token_id", 4, &[1, 0, 0, 0]);
    put("tokenizer.ggml.merges", 9, &array(8, &[text("a b")]));
    put("tokenizer.ggml.model", 8, &text("gpt2"));
    put(
        "tokenizer.ggml.scores",
        9,
        &array(
            6,
            &[0.0f32, -1.0, -2.0].map(|score| score.to_le_bytes().to_vec()),
        ),
    );
    put(
        "tokenizer.ggml.tokens",
        9,
        &array(8, &["a", "b", "ab"].map(text)),
    );
    assert_eq!(
        binding.assets.keys().collect::<Vec<_>>(),
        ["gguf:tokenizer"]
    );
    assert_eq!(binding.assets["gguf:tokenizer"].bytes, asset);
    let templates = [("default", "{{ messages }}"), ("tool_use", "{{ tools }}")]
        .map(|(name, text)| (name.to_string(), text.to_string()));
    assert_eq!(binding.templates, templates.into());

    let changed = |key: &str, value: GgufValue| {
        let mut metadata = metadata();
        metadata.iter_mut().find(|(own, _)| own == key).unwrap().1 = value;
        of_gguf(&metadata)
    };
    for (key, value) in [
        (
            "tokenizer.ggml.tokens",
            GgufValue::of_texts(&["a", "b", "ab "]),
        ),
        (
            "tokenizer.ggml.scores",
            GgufValue::of_f32s(&[0.0, -1.0, -2.5]),
        ),
        ("tokenizer.ggml.eot_token_id", GgufValue::of_u32(0)),
        ("tokenizer.ggml.add_bos_token", GgufValue::of_bool(true)),
        (
            "tokenizer.chat_template",
            GgufValue::of_text("{{ messages}}"),
        ),
        (
            "tokenizer.chat_template.tool_use",
            GgufValue::of_text("{{ tools}}"),
        ),
    ] {
        // Without the merge, whose parts are tokens.
        let after = if key == "tokenizer.ggml.tokens" {
            let mut metadata = metadata();
            metadata[1].1 = value;
            metadata[3].1 = GgufValue::of_texts::<&str>(&[]);
            of_gguf(&metadata)
        } else {
            changed(key, value)
        };
        let of_template = key.contains("template");
        assert_eq!(
            after.template_digest != binding.template_digest,
            of_template,
            "{key}"
        );
        assert_eq!(
            after.tokenizer_digest != binding.tokenizer_digest,
            !of_template,
            "{key}"
        );
    }
    let merges = changed("tokenizer.ggml.merges", GgufValue::of_texts(&["b a"]));
    assert_ne!(merges.tokenizer_digest, binding.tokenizer_digest);
    // The order of the keys is not part of it.
    let mut turned = metadata();
    turned.reverse();
    assert_eq!(of_gguf(&turned), binding);
}

#[test]
fn gguf_without_a_tokenizer_has_none_and_a_wrong_one_is_refused() {
    let open = |metadata: &[(String, GgufValue)]| {
        let file = GgufFile::open(&MemorySource::new(
            "m.gguf",
            gguf_header(metadata, &[]).unwrap().bytes,
        ))
        .unwrap();
        PortableTokenizerBinding::from_gguf(&file, "m.gguf")
    };
    assert_eq!(open(&metadata()[..1]).unwrap(), None);
    assert_eq!(
        open(&[(
            "tokenizer.ggml.model".to_string(),
            GgufValue::of_text("none")
        )])
        .unwrap(),
        None
    );
    let mut wrong = metadata();
    wrong.push(("tokenizer.ggml.bos_token_id".into(), GgufValue::of_u32(3)));
    assert_eq!(open(&wrong).unwrap_err().code(), "tokenizer.id.range");
    // Encoding text does not need these.
    let mut beside = metadata();
    beside.extend(["padding", "mask", "cls"].map(|role| {
        (
            format!("tokenizer.ggml.{role}_token_id"),
            GgufValue::of_u32(3),
        )
    }));
    assert_eq!(open(&beside).unwrap().unwrap().record.pad, None);
    let rwkv = |tokens: &[&str]| {
        [
            ("tokenizer.ggml.model", GgufValue::of_text("rwkv")),
            ("tokenizer.ggml.tokens", GgufValue::of_texts(tokens)),
        ]
        .map(|(key, value)| (key.to_string(), value))
    };
    assert_eq!(
        open(&rwkv(&["a", "\\\\"])).unwrap().unwrap().record.family,
        TokenizerFamily::Character
    );
    assert_eq!(
        open(&rwkv(&["a", "ab"])).unwrap().unwrap().record.family,
        TokenizerFamily::Custom
    );
}
