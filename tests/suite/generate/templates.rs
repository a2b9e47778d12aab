//! Models queried through chat templates of three kinds: the same tokens as for the rendered text, and answers that end by themselves.

use serde_json::json;
use tabtune::config::{Form, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::generate::{End, GenerateConfig, Generator, Prefix};
use tabtune::model::Model;
use tabtune::tokenizer::{Conversation, Tokenizer, TokenizerParts};
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, devices};

use crate::tokenizer::{byte_level, golden};

/// Templates of the golden chats, with the special tokens that they write: the beginning of a text first, the end of a turn last.
const TEMPLATES: [(&str, &[&str]); 3] = [
    ("chatml", &["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
    (
        "headers",
        &[
            "<|begin_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
        ],
    ),
    ("turns", &["<bos>", "<start_of_turn>", "<end_of_turn>"]),
];

/// Returns a base model's tokenizer: according to its files, only `<|endoftext|>` ends a text.
fn speaking((template, special): (&str, &[&str])) -> Tokenizer {
    let mut parts = byte_level("smollm");
    for token in special {
        if !parts.tokens.iter().any(|known| known == token) {
            parts.tokens.push((*token).to_owned());
            parts.types.push(3);
        }
    }
    let id = |token: &str| {
        parts
            .tokens
            .iter()
            .position(|known| known == token)
            .map(|id| id as u32)
    };
    let chat_template = golden("chats")["templates"][template]
        .as_str()
        .map(str::to_owned);
    let tokenizer = Tokenizer::from_parts(TokenizerParts {
        bos: id(special[0]),
        eos: vec![0],
        chat_template,
        ..parts.clone()
    })
    .unwrap();
    assert_eq!(
        tokenizer.turn_end(),
        id(special[special.len() - 1]),
        "{template}"
    );
    tokenizer
}

/// Returns a question about a place, and its answer.
fn turn(at: usize) -> [String; 2] {
    let places = [
        "Rome", "Oslo", "Cairo", "Lima", "Delhi", "Paris", "Tokyo", "Quito", "Berlin", "Accra",
    ];
    let asks = [
        "Is it far to",
        "Who was in",
        "Do you know",
        "When do we see",
        "Why not go to",
    ];
    let place = places[at % places.len()];
    [
        format!("{} {place}?", asks[at / places.len() % asks.len()]),
        format!("I like {place}."),
    ]
}

fn asked(at: usize) -> Conversation {
    Conversation::new(vec![json!({"role": "user", "content": turn(at)[0]})])
}

fn model(tokenizer: &Tokenizer, context: usize, device: &Device) -> Model {
    super::model_of(tokenizer.vocab_size(), context, device)
}

/// An answer is the greedy continuation of the ids that the template writes, and ends where the turn does.
#[test]
fn an_answer_is_the_continuation_of_the_rendered_conversation() {
    for device in devices() {
        for template in TEMPLATES {
            let tokenizer = speaking(template);
            let model = model(&tokenizer, 256, &device);
            let greedy = GenerateConfig {
                max_tokens: 12,
                temperature: 0.0,
                ..GenerateConfig::default()
            };
            let conversation = asked(3);
            let ids = tokenizer
                .encode(&tokenizer.render_chat(&conversation, true).unwrap().text)
                .unwrap();
            let mut answer = Generator::answer(
                &model,
                &tokenizer,
                &conversation,
                greedy.clone(),
                Prefix::default(),
            )
            .unwrap();
            let mut text = Generator::from_ids(&model, tokenizer.stops(), &ids, greedy).unwrap();
            loop {
                let (by_chat, by_ids) = (
                    block_on(answer.next(&model, &tokenizer)).unwrap(),
                    block_on(text.next(&model, &tokenizer)).unwrap(),
                );
                assert_eq!(by_chat, by_ids, "{}", template.0);
                if by_chat.is_none() {
                    break;
                }
            }
            assert_eq!(answer.ended(), text.ended());
        }
    }
}

/// Trains a new model for 200 steps on 50 rows.
fn trained(tokenizer: &Tokenizer, device: &Device) -> Trainer {
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let row = |at: usize| {
        json!({"messages": [message("user", &turn(at)[0]), message("assistant", &turn(at)[1])]})
            .to_string()
    };
    let rows: Vec<String> = (0..50).map(row).collect();
    let dataset =
        Dataset::from_bytes(rows.join("\n").as_bytes(), Form::Jsonl, tokenizer, 0.0).unwrap();
    let config = TrainConfig {
        steps: 200,
        batch_size: 4,
        seq_len: 160,
        learning_rate: 5e-3,
        seed: 1,
        packing: false,
        ..TrainConfig::default()
    };
    let mut trainer = Trainer::new(model(tokenizer, 192, device), dataset, config).unwrap();
    for _ in 0..200 {
        block_on(trainer.step()).unwrap();
    }
    trainer
}

fn ten_answers_stop(template: usize) {
    let (tokenizer, device) = (speaking(TEMPLATES[template]), cpu());
    let trainer = trained(&tokenizer, &device);
    let answers = |model: &Model| {
        let answer = |at: usize| {
            let config = GenerateConfig {
                max_tokens: 60,
                seed: at as u64,
                ..GenerateConfig::default()
            };
            let mut generator =
                Generator::answer(model, &tokenizer, &asked(at * 5), config, Prefix::default())
                    .unwrap();
            let mut text = String::new();
            while let Some(token) = block_on(generator.next(model, &tokenizer)).unwrap() {
                text.push_str(&token.text);
            }
            (text, generator.ended())
        };
        (0..10).map(answer).collect::<Vec<_>>()
    };
    let learned = answers(trainer.model());
    assert!(
        learned
            .iter()
            .all(|(text, end)| *end == Some(End::Stop) && !text.is_empty()),
        "{learned:?}"
    );
    // Without the training few do, by chance.
    let stopped = answers(&model(&tokenizer, 192, &device))
        .iter()
        .filter(|(_, end)| *end == Some(End::Stop))
        .count();
    assert!(stopped < 5, "{stopped}");
}

#[test]
fn answers_stop_after_a_short_training_with_chatml() {
    ten_answers_stop(0);
}

#[test]
fn answers_stop_after_a_short_training_with_headers() {
    ten_answers_stop(1);
}

#[test]
fn answers_stop_after_a_short_training_with_turns() {
    ten_answers_stop(2);
}
