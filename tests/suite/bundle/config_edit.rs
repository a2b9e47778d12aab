//! `config.json` for weights of another dtype or with a padded table: two fields change, one is left out, and no other byte changes.

use serde_json::{Value, json};
use tabtune::bundle::{ModelAssets, open_bundle};
use tabtune::config::Precision;
use tabtune::families::edited_config;

use super::files::{file, ramp, safetensors};

fn edited(document: &str) -> String {
    String::from_utf8(edited_config(document.as_bytes(), "bfloat16", 64, false).unwrap()).unwrap()
}

#[test]
fn edited_config_changes_two_fields_and_no_other_byte() {
    let odd = "{\n\t\"architectures\" : [\"X\", {\"vocab_size\": 1, \"torch_dtype\":\"float16\"}],\r\n \"vocab_size\":49152  ,\n \"a\\\"}\":\"}],{\\\\\",\
               \"torch_dtype\" : \"float16\",\n \"x\":-1.50e+03, \"n\": null, \"t\":true , \"é\":\"\u{1F642}\"\n}\n\n";
    let expected = odd.replacen("49152", "64", 1).replace(
        "\"torch_dtype\" : \"float16\"",
        "\"torch_dtype\" : \"bfloat16\"",
    );
    assert_eq!(edited(odd), expected);
    assert_eq!(edited(&expected), expected, "what is right stays");
    assert_eq!(
        edited(r#"{"dtype":"float32","vocab_size":64}"#),
        r#"{"dtype":"bfloat16","vocab_size":64}"#
    );
    assert_eq!(
        edited(r#"{"dtype":null,"torch_dtype":"float32"}"#),
        r#"{"dtype":"bfloat16","torch_dtype":"bfloat16"}"#
    );
    assert_eq!(
        edited("{\"vocab\\u005fsize\": 7,\"dtype\":\"f\"}"),
        "{\"vocab\\u005fsize\": 64,\"dtype\":\"bfloat16\"}"
    );
}

#[test]
fn edited_config_gets_a_dtype_where_it_had_none() {
    assert_eq!(
        edited("{\n  \"vocab_size\": 5\n}"),
        "{\n  \"torch_dtype\": \"bfloat16\",\n  \"vocab_size\": 64\n}"
    );
    assert_eq!(edited("{}"), "{\"torch_dtype\": \"bfloat16\"}");
    for broken in ["", "[]", "{", "{\"a\":}", "\u{feff}{}"] {
        assert_eq!(
            edited_config(broken.as_bytes(), "float32", 1, false)
                .unwrap_err()
                .code(),
            "bundle.config.json",
            "{broken:?}"
        );
    }
}

/// The place where somebody had the parent is left out with one comma, wherever it is.
#[test]
fn edited_config_does_not_say_where_its_parent_was() {
    let place = r#""_name_or_path" : "/home/a\"},b/c""#;
    let right = r#""dtype":"bfloat16""#;
    for (document, expected) in [
        (
            format!("{{ {place} , {right}}}\n"),
            format!("{{ {right}}}\n"),
        ),
        (
            format!("{{{right},\n {place}\n}}"),
            format!("{{{right}\n}}"),
        ),
        (
            format!("{{\n  \"a\": 1,\n  {place},\n  {right}\n}}"),
            format!("{{\n  \"a\": 1,\n  {right}\n}}"),
        ),
        (
            format!("{{{place},{place},{right},{place}, {place} }}"),
            format!("{{{right} }}"),
        ),
        (
            format!("{{{place}}}"),
            r#"{"torch_dtype": "bfloat16"}"#.to_string(),
        ),
        (
            format!("{{{place},\"vocab_size\":5}}"),
            r#"{"torch_dtype": "bfloat16","vocab_size":64}"#.to_string(),
        ),
        (
            format!("{{\"dtype\":\"f\",{place}}}"),
            format!("{{{right}}}"),
        ),
        (
            format!("{{{right},\"text_config\":{{{place}}}}}"),
            format!("{{{right},\"text_config\":{{{place}}}}}"),
        ),
    ] {
        assert_eq!(edited(&document), expected, "{document}");
    }
}

#[test]
fn exported_documents_say_dtype_and_rows_as_written() {
    let config = "{ \"model_type\": \"llama\", \"vocab_size\": 3, \"hidden_size\": 4, \"intermediate_size\": 4, \"num_hidden_layers\": 1,\
        \"num_attention_heads\": 1, \"max_position_embeddings\": 8, \"tie_word_embeddings\": true, \"torch_dtype\": \"float16\", \"odd\":  1.0 }";
    let weights = safetensors(&[("model.embed_tokens.weight", vec![5, 4], ramp(20, 0.0))]);
    let bundle = open_bundle(vec![
        file("config.json", config),
        file("model.safetensors", weights),
    ])
    .unwrap();
    let assets = ModelAssets::of_bundle(&bundle);
    assert_eq!(
        assets.documents[0].1,
        config.as_bytes(),
        "what came is kept"
    );
    for (precision, dtype) in [(Precision::F32, "float32"), (Precision::Bf16, "bfloat16")] {
        let documents = assets.documents_for(&bundle.config, precision).unwrap();
        let expected = config
            .replace("\"vocab_size\": 3", "\"vocab_size\": 5")
            .replace("float16", dtype);
        assert_eq!(String::from_utf8(documents[0].1.clone()).unwrap(), expected);
    }
    let made = ModelAssets::of_config(&bundle.config, None)
        .documents_for(&bundle.config, Precision::Bf16)
        .unwrap();
    let value: Value = serde_json::from_slice(&made[0].1).unwrap();
    assert_eq!(
        (&value["torch_dtype"], &value["vocab_size"]),
        (&json!("bfloat16"), &json!(5))
    );
}
