//! A chat template of each kind, and the part of a row that is learned. The same table is tested in a browser.

use serde_json::{Value, json};
use tabtune::config::{DataOrder, Form, TrainConfig};
use tabtune::data::{Dataset, Loader};
use tabtune::tokenizer::Tokenizer;

fn golden(name: &str) -> Value {
    serde_json::from_slice(
        &std::fs::read(format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap(),
    )
    .unwrap()
}

#[test]
fn each_kind_of_template_teaches_the_answers() {
    let document = golden("joints")["tokenizers"]["byte_level"]["document"].to_string();
    let config = json!({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}).to_string();
    for case in golden("template-kinds").as_array().unwrap() {
        let template = case["template"].as_str().unwrap();
        let tokenizer = Tokenizer::from_hf(
            document.as_bytes(),
            Some(config.as_bytes()),
            Some(template.as_bytes()),
        )
        .unwrap();
        let data = Dataset::from_bytes(
            case["row"].to_string().as_bytes(),
            Form::Jsonl,
            &tokenizer,
            0.0,
        )
        .unwrap();
        let settings = TrainConfig {
            batch_size: 1,
            seq_len: 1024,
            data_order: DataOrder::Sequential,
            ..TrainConfig::default()
        };
        let preview = data.preview(&settings, &tokenizer, usize::MAX).unwrap();
        let learned = preview.iter().map(|example| {
            example
                .segments
                .iter()
                .filter(|segment| segment.learned)
                .map(|segment| &*segment.text)
                .collect()
        });
        assert_eq!(
            json!(learned.collect::<Vec<Vec<&str>>>()),
            case["learned"],
            "{}",
            case["name"]
        );
        let report = data.report(&settings, &Loader::for_run(&data, &settings).unwrap());
        assert_eq!(
            json!(report.rules),
            json!({ case["rule"].as_str().unwrap(): 1 }),
            "{}",
            case["name"]
        );
        if let Some(begins) = case["begins"].as_str() {
            assert!(
                preview[0].segments[0].text.starts_with(begins),
                "{}",
                preview[0].segments[0].text
            );
        }
    }
}
