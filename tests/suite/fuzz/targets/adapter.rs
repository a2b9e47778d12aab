//! Target: the configuration of an adapter.

use serde_json::json;
use tabtune::bundle::FileFormat;

use super::super::mutation::mutated_json;
use super::{Target, hostile, in_short, inspected};

const ADAPTER_WORDS: [&str; 18] = [
    "\"peft_type\":\"LORA\",",
    "\"r\":8,",
    "\"lora_alpha\":16,",
    "\"target_modules\":[\"q_proj\"],",
    "\"use_dora\":true,",
    "\"bias\":\"all\",",
    "\"rank_pattern\":{\"q\":4},",
    "\"alpha_pattern\":{\"q\":4},",
    "\"init_lora_weights\":\"pissa\",",
    "\"layer_replication\":[[0,1]],",
    "\"modules_to_save\":[\"x\"],",
    "\"layers_to_transform\":[0],",
    "^(.*)+$",
    "(?i)",
    "\\\\d{1,999}",
    "null",
    "{",
    "}",
];

fn adapter_seeds() -> Vec<Vec<u8>> {
    let plain = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]});
    let full = json!({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8.5, "target_modules": "model\\.layers\\.\\d+\\.(q|v)_proj",
        "rank_pattern": {"layers.0.q": 2}, "alpha_pattern": {"layers.1": 3}, "bias": "none", "use_rslora": true, "fan_in_fan_out": false,
        "init_lora_weights": true, "layers_to_transform": [0, 1], "layers_pattern": "layers", "exclude_modules": ["lm_head"], "use_dora": false});
    let mut seeds = hostile("peft");
    seeds.extend([plain, full].map(|value| value.to_string().into_bytes()));
    seeds
}

pub const ADAPTER: Target = Target {
    name: "adapter-config",
    seeds: adapter_seeds,
    words: &ADAPTER_WORDS,
    change: mutated_json,
    answer: |file| in_short(&inspected(FileFormat::Peft, file)),
    answers: 11,
};
