//! `adapter_config.json` of PEFT: what a LoRA adapter must say (crate/FORMATS.md, "PEFT adapter").

use super::index::MAX_DEPTH;
use super::json::{self, Json, JsonFault};
use super::open::MAX_DOCUMENT_BYTES;
use super::refusal::Warning;
use super::source::{ByteSource, read_document};
use crate::error::{Error, Refusal, Result, word};

const MAX_RANK: u64 = 65_536;
const MAX_PATTERN_BYTES: usize = 1_024;

/// Fields of PEFT's LoraConfig.
const KNOWN: [&str; 38] = [
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "init_lora_weights",
    "layer_replication",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_bias",
    "lora_dropout",
    "megatron_config",
    "megatron_core",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "target_parameters",
    "task_type",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "use_rslora",
];

/// Refuses an adapter that is not a plain LoRA; unknown fields are warnings.
pub(super) fn check_adapter(source: &dyn ByteSource) -> Result<Vec<Warning>> {
    let bytes = read_document(source, MAX_DOCUMENT_BYTES)?;
    check(&bytes).map_err(|error| error.in_file(source.name()))
}

fn check(bytes: &[u8]) -> Result<Vec<Warning>> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::new(word!("adapter.json")).at(e.valid_up_to() as u64))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Refusal::new(word!("adapter.json")).at(at as u64),
        JsonFault::Depth { at } => Refusal::new(word!("adapter.depth")).at(at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("adapter.key.duplicate")).subject(&path).at(at as u64),
    })?;
    let fields = document.object().ok_or_else(|| Refusal::new(word!("adapter.field.type")).expected("an object"))?;
    let given = |key: &str| document.get(key).filter(|value| **value != Json::Null);
    let need = |key: &str| given(key).ok_or_else(|| Error::from(Refusal::new(word!("adapter.field.missing")).subject(key)));
    let (kind, rank, alpha, targets) = (need("peft_type")?, need("r")?, need("lora_alpha")?, need("target_modules")?);
    let word = kind.text().ok_or_else(|| typed("peft_type", "text"))?;
    if word != "LORA" {
        return Err(Refusal::new(word!("adapter.type.unsupported")).subject(word).expected("LORA").into());
    }
    check_rank("r", rank)?;
    pattern(&document, "rank_pattern", check_rank)?;
    check_alpha("lora_alpha", alpha)?;
    pattern(&document, "alpha_pattern", check_alpha)?;
    for key in ["use_dora", "use_qalora", "use_bdlora", "lora_bias"] {
        if given(key).is_some_and(|value| *value != Json::Bool(false)) {
            return Err(Refusal::new(word!("adapter.feature.unsupported")).subject(key).into());
        }
    }
    if given("bias").is_some_and(|value| value.text() != Some("none")) {
        return Err(Refusal::new(word!("adapter.feature.unsupported")).subject("bias").expected("none").into());
    }
    for key in ["layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens", "arrow_config"] {
        let empty = |value: &Json<'_>| value.list().is_some_and(<[_]>::is_empty) || value.object().is_some_and(<[_]>::is_empty);
        if given(key).is_some_and(|value| !empty(value)) {
            return Err(Refusal::new(word!("adapter.feature.unsupported")).subject(key).into());
        }
    }
    // These ways of starting change the base, so the adapter fits no other.
    let start = given("init_lora_weights").and_then(Json::text).unwrap_or_default();
    if matches!(start, "pissa" | "olora" | "corda" | "loftq") || start.starts_with("pissa_niter_") {
        return Err(Refusal::new(word!("adapter.feature.unsupported")).subject("init_lora_weights").found(start).into());
    }
    check_targets(targets)?;
    let unknown = fields.iter().filter(|(key, _)| !KNOWN.contains(&key.as_ref()));
    Ok(unknown.map(|(key, _)| Warning::new(word!("adapter.field.unknown"), key)).collect())
}

fn typed(key: &str, expected: &str) -> Refusal {
    Refusal::new(word!("adapter.field.type")).subject(key).expected(expected)
}

fn check_rank(key: &str, value: &Json<'_>) -> Result<()> {
    match value.count() {
        Some(1..=MAX_RANK) => Ok(()),
        _ => Err(Refusal::new(word!("adapter.rank")).subject(key).expected(format!("an integer from 1 to {MAX_RANK}")).into()),
    }
}

fn check_alpha(key: &str, value: &Json<'_>) -> Result<()> {
    let number = if let Json::Number(digits) = value { digits.parse::<f64>().ok() } else { None };
    match number {
        Some(alpha) if alpha.is_finite() && alpha > 0.0 => Ok(()),
        _ => Err(Refusal::new(word!("adapter.alpha")).subject(key).expected("finite and positive").into()),
    }
}

type Rule = fn(&str, &Json<'_>) -> Result<()>;

fn pattern(document: &Json<'_>, key: &str, rule: Rule) -> Result<()> {
    let Some(value) = document.get(key).filter(|value| **value != Json::Null) else { return Ok(()) };
    for (module, value) in value.object().ok_or_else(|| typed(key, "an object"))? {
        check_pattern(module)?;
        rule(module, value)?;
    }
    Ok(())
}

fn check_pattern(text: &str) -> Result<()> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(Refusal::new(word!("adapter.pattern.length"))
            .subject(text)
            .expected(format!("at most {MAX_PATTERN_BYTES} bytes"))
            .into());
    }
    Ok(())
}

/// One pattern, or a list of names.
fn check_targets(targets: &Json<'_>) -> Result<()> {
    let none = || Refusal::new(word!("adapter.target.none")).subject("target_modules");
    if let Some(text) = targets.text() {
        return if text.is_empty() { Err(none().into()) } else { check_pattern(text) };
    }
    let list = targets.list().ok_or_else(|| typed("target_modules", "text or a list of texts"))?;
    if list.is_empty() {
        return Err(none().into());
    }
    list.iter().try_for_each(|name| check_pattern(name.text().ok_or_else(|| typed("target_modules", "a list of texts"))?))
}
