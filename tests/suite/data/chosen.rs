//! Settings that are chosen for a run without a learning rate.

use serde_json::{Value, json};
use tabtune::config::{Beginning, Choices, ModelConfig, ScheduleConfig, TrainConfig};
use tabtune::data::{DataFile, DataSource, Dataset};
use tabtune::families::config_from_hf;
use tabtune::tokenizer::Tokenizer;

use super::super::tokenizer::byte_level;

fn model(width: usize) -> ModelConfig {
    config_from_hf(&json!({
        "model_type": "llama", "hidden_size": width, "intermediate_size": width,
        "num_hidden_layers": 1, "num_attention_heads": width / 16, "max_position_embeddings": 64,
        "vocab_size": 300,
    }))
    .unwrap()
}

/// Settings of a run on `rows` rows, with the names and values of those that were chosen.
fn settled(
    given: Value,
    (width, fresh, chooses): (usize, bool, bool),
    rows: usize,
) -> (TrainConfig, Vec<(&'static str, Value)>) {
    let model = model(width);
    let config = TrainConfig::default().overlaid(given.clone()).unwrap();
    let beginning = Beginning {
        model: &model,
        fresh,
        chooses,
        evaluates_apart: false,
    };
    let (config, mut choices) =
        Choices::begin(config, given.as_object().unwrap(), beginning).unwrap();
    let text: String = (0..rows)
        .map(|row| format!("{{\"text\": \"{row:040}\"}}\n"))
        .collect();
    let file: [&dyn DataSource; 1] = [&DataFile {
        name: "rows",
        bytes: text.as_bytes(),
    }];
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let settings = choices.data_settings(&config);
    let data = Dataset::read(&file, Ok::<_, tabtune::Error>(&tokenizer), &settings).unwrap();
    let config = config.settled_for(&data, &mut choices).unwrap();
    assert!(choices.list.iter().all(|chosen| !chosen.reason.is_empty()));
    let list = choices.list.into_iter();
    (
        config,
        list.map(|chosen| (chosen.setting, chosen.value)).collect(),
    )
}

const TRAINED: bool = false;

#[test]
fn trained_weights_get_a_low_rate_bf16_and_three_passes() {
    let (config, chosen) = settled(json!({}), (4096, TRAINED, true), 40);
    let warmup = config.steps.div_ceil(10);
    let epoch = config.steps / 3;
    assert_eq!(
        chosen,
        [
            ("learning_rate", json!(2e-5)),
            (
                "schedule",
                json!({"type": "cosine", "warmup_from_zero": false, "warmup_steps": warmup})
            ),
            ("precision", json!("bf16")),
            ("epochs", json!(3)),
            ("validation_fraction", json!(0.1)),
            ("batch_size", json!(3)),
            ("eval_every", json!(epoch)),
        ]
    );
    // The run has what the list says: 36 rows, one in each sequence of 64.
    assert_eq!((config.steps, config.batch_size), (36, 3));
    assert_eq!(config.learning_rate, 2e-5);
    assert_eq!(config.precision, tabtune::config::Precision::Bf16);
    assert_eq!(config.validation_fraction, 0.1);
    let ScheduleConfig::Cosine(cosine) = &config.schedule else {
        panic!("{:?}", config.schedule)
    };
    assert_eq!((cosine.warmup_steps, cosine.total_steps), (4, 36));
}

/// New weights pass over little data more often, for 300 steps, but at most 16 times.
#[test]
fn new_weights_have_some_hundred_steps() {
    let chosen = |given: Value, rows| {
        let (config, list) = settled(given, (128, true, true), rows);
        let epochs = list.iter().find(|(name, _)| *name == "epochs");
        (config.steps, epochs.map(|(_, value)| value.clone()))
    };
    assert_eq!(
        chosen(json!({"batch_size": 1}), 40),
        (324, Some(json!(9.0)))
    );
    assert_eq!(
        chosen(json!({"batch_size": 3}), 40),
        (192, Some(json!(16.0)))
    );
    assert_eq!(chosen(json!({"batch_size": 1}), 200), (720, Some(json!(4))));
    assert_eq!(
        chosen(json!({"epochs": 2, "batch_size": 1}), 40),
        (72, None)
    );
    let trained = settled(json!({"batch_size": 3}), (128, TRAINED, true), 40);
    assert_eq!(trained.0.epochs, Some(3.0));
}

#[test]
fn rates_follow_the_width_and_the_kind_of_training() {
    let rate = |given: Value, width, fresh| {
        let (config, chosen) = settled(given, (width, fresh, true), 40);
        let listed = chosen.iter().find(|(name, _)| *name == "learning_rate");
        assert_eq!(
            listed.map(|(_, value)| value),
            Some(&json!(config.learning_rate))
        );
        config.learning_rate
    };
    for (width, whole, adapter, fresh) in [
        (4096, 2e-5, 2e-4, 1e-3),
        (2048, 2e-5, 2e-4, 1e-3),
        (1024, 4e-5, 4e-4, 1e-3),
        (576, 7.1e-5, 7.1e-4, 1e-3),
        (384, 1.1e-4, 1.1e-3, 1.3e-3),
        (128, 2.5e-4, 2e-3, 2e-3),
    ] {
        assert_eq!(rate(json!({}), width, false), whole);
        let factors = json!({"adapter": {"target_modules": ["q_proj"]}});
        assert_eq!(rate(factors, width, false), adapter);
        assert_eq!(rate(json!({}), width, true), fresh);
    }
    let sgd = settled(
        json!({"optimizer": {"type": "sgd"}}),
        (128, TRAINED, false),
        40,
    );
    assert_eq!(sgd.0.learning_rate, TrainConfig::default().learning_rate);
    assert!(sgd.1.iter().all(|(name, _)| *name != "learning_rate"));
}

#[test]
fn nothing_is_chosen_over_the_user() {
    for (given, chooses) in [
        (json!({"learning_rate": 1e-3}), true),
        (json!({"seed": 1}), false),
    ] {
        let (config, chosen) = settled(given.clone(), (128, TRAINED, chooses), 40);
        let plain = TrainConfig::default().overlaid(given).unwrap();
        let seq_len = config.seq_len;
        assert_eq!((config, chosen), (TrainConfig { seq_len, ..plain }, vec![]));
    }
    let given = json!({
        "steps": 7, "precision": "f32", "batch_size": 4, "validation_fraction": 0.0,
        "schedule": {"type": "linear"},
    });
    let (config, chosen) = settled(given, (128, TRAINED, true), 40);
    assert_eq!(chosen, [("learning_rate", json!(2.5e-4))]);
    assert_eq!(
        (config.steps, config.epochs, config.batch_size),
        (7, None, 4)
    );
}

#[test]
fn a_share_is_kept_only_of_enough_rows() {
    let names = |rows| {
        let (config, chosen) = settled(json!({}), (128, true, true), rows);
        let names: Vec<_> = chosen.iter().map(|(name, _)| *name).collect();
        let kept = names.contains(&"validation_fraction");
        assert_eq!(kept, config.validation_fraction > 0.0);
        assert_eq!(kept, names.contains(&"eval_every"));
        kept
    };
    assert_eq!([1, 19, 20, 200].map(names), [false, false, true, true]);
}
