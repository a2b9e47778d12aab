//! The ids of a prompt with its completion are those of the joined text, in vocabularies of every kind.

use serde_json::Value;
use tabtune::config::{DataOrder, Form, TrainConfig};
use tabtune::data::Dataset;
use tabtune::tokenizer::Tokenizer;

const BEGIN: u32 = 1;
const END: u32 = 2;

/// Ids of an example, each with a flag that it is a counted target.
type Row = Vec<(u32, bool)>;

fn shown(tokenizer: &Tokenizer, rows: &str) -> (Vec<Row>, u64) {
    let data = Dataset::from_bytes(rows.as_bytes(), Form::Jsonl, tokenizer, 0.0).unwrap();
    let config = TrainConfig {
        seq_len: 512,
        data_order: DataOrder::Sequential,
        ..TrainConfig::default()
    };
    let tokens = |preview: tabtune::data::Preview| {
        let tokens = |segment: tabtune::data::Segment| {
            segment
                .tokens
                .into_iter()
                .map(move |token| (token.id, segment.learned))
                .collect::<Row>()
        };
        preview.segments.into_iter().flat_map(tokens).collect()
    };
    let crossings = data
        .reading_warnings()
        .iter()
        .filter(|warning| warning.code == "data.boundary")
        .map(|warning| warning.count as u64)
        .sum();
    (
        data.preview(&config, tokenizer, usize::MAX)
            .unwrap()
            .into_iter()
            .map(tokens)
            .collect(),
        crossings,
    )
}

#[test]
fn a_prompt_and_its_completion_have_the_ids_of_their_joined_text() {
    let path = format!("{}/golden/joints.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let pairs: Vec<(String, String)> = serde_json::from_value(golden["pairs"].clone()).unwrap();
    let line = |(prompt, completion): &(String, String)| {
        format!(
            "{}\n",
            serde_json::json!({"prompt": prompt, "completion": completion})
        )
    };
    let rows: String = pairs.iter().map(line).collect();
    for kind in ["byte_level", "sentence_piece", "unigram"] {
        let expected = &golden["tokenizers"][kind];
        for begun in [false, true] {
            let config = serde_json::json!({"tokenizer_class": "LlamaTokenizer", "add_bos_token": begun, "bos_token": "<s>", "eos_token": "</s>"});
            let tokenizer = Tokenizer::from_hf(
                expected["document"].to_string().as_bytes(),
                Some(config.to_string().as_bytes()),
                None,
            )
            .unwrap();
            let (found, crossings) = shown(&tokenizer, &rows);
            assert_eq!(found.len(), pairs.len());
            let expected = expected["rows"].as_array().unwrap();
            for ((row, expected), pair) in found.iter().zip(expected).zip(&pairs) {
                let ids: Vec<u32> = serde_json::from_value(expected["ids"].clone()).unwrap();
                let learned: Vec<bool> =
                    serde_json::from_value(expected["learned"].clone()).unwrap();
                let begin = begun.then_some((BEGIN, false)).into_iter();
                let whole: Row = begin
                    .chain(ids.into_iter().zip(learned))
                    .chain([(END, true)])
                    .collect();
                assert_eq!(row, &whole, "{kind}: {pair:?}");
            }
            let crossing = expected.iter().filter(|row| row["crosses"] == true).count() as u64;
            // A token ends where the next one begins: spaces at the joint that a normalizer drops belong to the token before them.
            let told = if kind == "unigram" {
                crossings >= crossing
            } else {
                crossings == crossing
            };
            assert!(told && crossing > 0, "{kind}: {crossings}, {crossing}");
        }
    }
}

#[test]
fn a_token_that_an_answer_shares_with_its_prompt_is_reported() {
    let path = format!("{}/golden/joints.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let document = golden["tokenizers"]["byte_level"]["document"].to_string();
    let config = serde_json::json!({"eos_token": "</s>"}).to_string();
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let row = serde_json::json!({"messages": [said("user", "a"), said("assistant", "The cat")]})
        .to_string();
    let told = |colon: &str| {
        let turns = format!(
            "{{% for m in messages %}}{{{{ m.role }}}}{colon}{{{{ m.content }}}}</s>\n{{% endfor %}}"
        );
        let template =
            format!("{turns}{{% if add_generation_prompt %}}assistant{colon}{{% endif %}}");
        let tokenizer = Tokenizer::from_hf(
            document.as_bytes(),
            Some(config.as_bytes()),
            Some(template.as_bytes()),
        )
        .unwrap();
        let (rows, crossings) = shown(&tokenizer, &row);
        let learned: Vec<u32> = rows[0]
            .iter()
            .filter(|(_, learned)| *learned)
            .map(|(id, _)| *id)
            .collect();
        (
            tokenizer.decode(&learned).unwrap().contains("The"),
            crossings,
        )
    };
    // In this vocabulary a space and "The" are one token.
    assert_eq!([told(":\n"), told(": ")], [(true, 0), (false, 1)]);
}
