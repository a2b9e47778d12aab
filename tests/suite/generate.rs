//! Generated texts: the tokens that can be drawn, and the reasons for which a text ends.

mod conversation;
mod templates;

use tabtune::config::{ModelConfig, Precision};
use tabtune::device::Device;
use tabtune::generate::{End, GenerateConfig, Generator};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::{PartsModel, Tokenizer, TokenizerParts};
use tabtune_tests::{block_on, cpu};

const TOKENS: usize = 48;
/// Number of rows of the table, of which the last thirteen are padding.
const ROWS: usize = TOKENS + 13;

fn model() -> Model {
    model_of(ROWS, 64, &cpu())
}

/// Makes a model of one block with large weights.
fn model_of(rows: usize, context: usize, device: &Device) -> Model {
    let config: ModelConfig =
        serde_json::from_value(serde_json::json!({"architecture": "llama", "model_type": "llama", "vocab_size": rows,
        "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
        "max_position_embeddings": context, "norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "default"},
        "tie_word_embeddings": false, "attention_bias": false, "qk_norm": false, "initializer_range": 0.5}))
        .unwrap();
    block_on(Model::init(
        &config,
        3,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn tokenizer() -> Tokenizer {
    let characters: String = ('A'..).take(TOKENS).collect();
    Tokenizer::characters(&characters).unwrap()
}

/// Returns the ids of a text, and the reason why it ended.
fn text(model: &Model, stop: Vec<u32>, config: GenerateConfig) -> (Vec<u32>, Option<End>) {
    let (tokenizer, mut ids) = (tokenizer(), Vec::new());
    let mut generator = Generator::from_ids(model, stop, &[1, 2], config).unwrap();
    while let Some(token) = block_on(generator.next(model, &tokenizer)).unwrap() {
        assert_eq!(generator.ended(), None);
        assert!(token.top.iter().all(|top| (top.id as usize) < TOKENS));
        ids.push(token.id);
    }
    assert!(
        block_on(generator.next(model, &tokenizer))
            .unwrap()
            .is_none()
    );
    (ids, generator.ended())
}

#[test]
fn ids_that_no_token_has_are_never_drawn() {
    let model = model();
    // 84 · 2 · 60 > 10⁴ tokens.
    for seed in 0..84 {
        for top_k in [0, ROWS] {
            let config = GenerateConfig {
                max_tokens: 60,
                temperature: 5.0,
                seed,
                top_k,
                top_logprobs: ROWS,
                ..GenerateConfig::default()
            };
            let (ids, _) = text(&model, Vec::new(), config);
            assert!(
                ids.len() == 60 && ids.iter().all(|id| (*id as usize) < TOKENS),
                "{ids:?}"
            );
        }
    }
}

#[test]
fn a_text_says_why_it_ended() {
    let model = model();
    let greedy = |max_tokens| GenerateConfig {
        max_tokens,
        temperature: 0.0,
        ..GenerateConfig::default()
    };
    let (ids, end) = text(&model, Vec::new(), greedy(5));
    assert_eq!((ids.len(), end), (5, Some(End::Length)));
    assert_eq!(
        text(&model, vec![ids[0]], greedy(5)),
        (vec![], Some(End::Stop))
    );
    // The last token fills the context, and nothing comes after it.
    let (ids, end) = text(&model, Vec::new(), greedy(100));
    assert_eq!((ids.len(), end), (63, Some(End::Context)));
}

/// The share counts only what the k most likely tokens have together, as in other samplers.
#[test]
fn top_p_counts_what_top_k_leaves() {
    let model = model();
    let config = |top_k, top_p| GenerateConfig {
        max_tokens: 40,
        temperature: 3.0,
        top_k,
        top_p,
        ..GenerateConfig::default()
    };
    let greedy = GenerateConfig {
        max_tokens: 40,
        temperature: 0.0,
        ..GenerateConfig::default()
    };
    // The more likely of two tokens has at least half.
    assert_eq!(
        text(&model, Vec::new(), config(2, 0.5)),
        text(&model, Vec::new(), greedy)
    );
    assert_ne!(
        text(&model, Vec::new(), config(2, 1.0)).0,
        text(&model, Vec::new(), config(2, 0.5)).0
    );
}

#[test]
fn a_seed_is_one_that_javascript_holds() {
    let valid = |seed| {
        GenerateConfig {
            seed,
            ..GenerateConfig::default()
        }
        .validate()
    };
    assert!(valid((1 << 53) - 1).is_ok());
    assert!(
        valid(1 << 53)
            .unwrap_err()
            .to_string()
            .contains("9007199254740991")
    );
    let run = |seed| {
        tabtune::config::TrainConfig {
            seed,
            ..Default::default()
        }
        .validate()
    };
    assert!(run((1 << 53) - 1).is_ok());
    assert!(run(1 << 53).unwrap_err().to_string().contains("seed"));
}

/// Returns words that include their space, as SentencePiece writes them, and parts of words.
fn words() -> Tokenizer {
    let tokens = [
        "<unk>", "<s>", "</s>", "▁", "i", "s", "a", "▁i", "▁is", "▁a", "▁be",
    ]
    .map(String::from)
    .to_vec();
    let scores = (0..tokens.len()).map(|id| id as f32).collect();
    let types = (0..tokens.len())
        .map(|id| [2, 3, 3].get(id).copied().unwrap_or(1))
        .collect();
    let model = PartsModel::SentencePiece {
        scores,
        add_space_prefix: true,
    };
    let parts = TokenizerParts {
        model,
        tokens,
        types,
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
    };
    Tokenizer::from_parts(parts).unwrap()
}

#[test]
fn a_continuation_keeps_the_space_before_its_first_word() {
    let tokenizer = words();
    let model = model_of(tokenizer.vocab_size(), 64, &cpu());
    let mut spaces = 0;
    for seed in 0..30 {
        for prompt in ["is", "is a", ""] {
            let config = GenerateConfig {
                max_tokens: 6,
                temperature: 5.0,
                seed,
                ..GenerateConfig::default()
            };
            let mut generator = Generator::new(&model, &tokenizer, prompt, config).unwrap();
            let (mut ids, mut text) = (tokenizer.encode(prompt).unwrap(), prompt.to_string());
            while let Some(token) = block_on(generator.next(&model, &tokenizer)).unwrap() {
                spaces += usize::from(
                    text == prompt && !prompt.is_empty() && token.text.starts_with(' '),
                );
                text.push_str(&token.text);
                ids.push(token.id);
            }
            assert_eq!(text, tokenizer.decode(&ids).unwrap(), "{prompt:?} {seed}");
        }
    }
    assert!(spaces > 5, "{spaces}");
}
