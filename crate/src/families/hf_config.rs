//! `config.json` ⇄ [`ModelConfig`]. Features that tabtune does not have are refused by their key.

use serde_json::{Map, Value, json};

use super::config_check::{check, unsupported};
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::{Refusal, Result, word};

/// Returns the model that a Hugging Face `config.json` describes, which must state its context.
///
/// # Errors
/// `bundle.config.key-missing`, `model.config.*`, `model.arch.unsupported` and `model.config.unsupported`, the first one that applies.
pub fn config_from_hf(json: &Value) -> Result<ModelConfig> {
    let (config, taken) = config_of_weights(json)?;
    match taken.first() {
        Some((key, _)) => Err(missing(key)),
        None => Ok(config),
    }
}

/// Returns the model that a `config.json` next to weights describes, and the absent keys that have a default in the family's publication, with
/// that default: early files have no context.
pub(crate) fn config_of_weights(json: &Value) -> Result<(ModelConfig, Taken)> {
    let keys = Keys(json.as_object().ok_or_else(|| wrong("config.json", "an object", json))?);
    let mut taken = Vec::new();
    let model_type = keys.text("model_type")?.ok_or_else(|| missing("model_type"))?;
    keys.refuse_features()?;
    let config = match model_type {
        "llama" | "mistral" | "qwen2" | "qwen3" => llama(&keys, model_type, &mut taken)?,
        "gpt2" => gpt2(&keys, &mut taken)?,
        _ => return Err(unsupported("model_type", model_type, "llama, mistral, qwen2, qwen3, gpt2")),
    };
    check(&config)?;
    Ok((config, taken))
}

/// Returns the context of a family whose configuration states none (transformers, `configuration_<family>.py`).
fn published_context(model_type: &str) -> usize {
    match model_type {
        "mistral" => 131_072,
        "qwen2" | "qwen3" => 32_768,
        "gpt2" => 1024,
        _ => 2048,
    }
}

/// Dimensions of a head of Qwen3 whose configuration states none (transformers).
const QWEN3_HEAD_DIM: usize = 128;

/// Keys that are absent, with the values that are used for them.
type Taken = Vec<(&'static str, usize)>;

struct Keys<'a>(&'a Map<String, Value>);

fn missing(key: &str) -> crate::error::Error {
    Refusal::new(word!("bundle.config.key-missing")).of("config.json").subject(key).into()
}

fn wrong(key: &str, expected: &str, found: &Value) -> crate::error::Error {
    Refusal::new(word!("model.config.type")).of("config.json").subject(key).expected(expected).found(found).into()
}

impl<'a> Keys<'a> {
    /// Returns the value of a key that is present and not null.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|value| value.as_str().ok_or_else(|| wrong(key, "text", value))).transpose()
    }

    fn bool(&self, key: &str, default: bool) -> Result<bool> {
        self.get(key).map_or(Ok(default), |value| value.as_bool().ok_or_else(|| wrong(key, "true or false", value)))
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        self.get(key).map(|value| value.as_f64().ok_or_else(|| wrong(key, "a number", value))).transpose()
    }

    fn count(&self, key: &str) -> Result<Option<usize>> {
        let read = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| wrong(key, "a count", value));
        self.get(key).map(read).transpose()
    }

    fn need(&self, key: &str) -> Result<usize> {
        self.count(key)?.ok_or_else(|| missing(key))
    }

    /// Returns the context, or the default of the family's publication.
    fn context(&self, key: &'static str, model_type: &str, taken: &mut Taken) -> Result<usize> {
        Ok(self.count(key)?.unwrap_or_else(|| {
            let context = published_context(model_type);
            taken.push((key, context));
            context
        }))
    }

    /// Refuses features that change the arithmetic and are not supported in any family.
    fn refuse_features(&self) -> Result<()> {
        let experts = ["num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"];
        let zero = ["attn_logit_softcapping", "final_logit_softcapping", "embedding_multiplier", "logits_scaling", "residual_multiplier"];
        for key in experts.into_iter().chain(zero) {
            if let Some(value) = self.get(key).filter(|value| value.as_f64() != Some(0.0)) {
                return Err(unsupported(key, value, "absent"));
            }
        }
        for key in ["mlp_bias", "rope_interleaved", "is_encoder_decoder", "add_cross_attention", "use_qk_norm"] {
            if self.bool(key, false)? {
                return Err(unsupported(key, true, "false"));
            }
        }
        for key in ["quantization_config", "no_rope_layers", "vision_config"] {
            if self.get(key).is_some() {
                return Err(unsupported(key, "given", "absent"));
            }
        }
        if let Some(factor) = self.number("partial_rotary_factor")?.filter(|factor| *factor != 1.0) {
            return Err(unsupported("partial_rotary_factor", factor, "1"));
        }
        let types = self.get("layer_types").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match types.iter().find(|kind| kind.as_str() != Some("full_attention")) {
            Some(kind) => Err(unsupported("layer_types", kind, "full_attention")),
            None => Ok(()),
        }
    }

    /// Refuses a sliding window that is switched on and shorter than the context.
    fn refuse_sliding_window(&self, model_type: &str, context: usize) -> Result<()> {
        let given = self.0.get("sliding_window");
        // transformers fills a Mistral config without the key with 4096.
        let window = if model_type == "mistral" && given.is_none() { Some(4096) } else { self.count("sliding_window")? };
        let used = if model_type.starts_with("qwen") { self.bool("use_sliding_window", false)? } else { true };
        match window {
            Some(window) if used && window < context => Err(unsupported("sliding_window", window, "null, or not less than the context")),
            _ => Ok(()),
        }
    }

    fn rope(&self) -> Result<(f64, RopeScaling)> {
        let theta = self.number("rope_theta")?;
        let (key, scaling) = match self.get("rope_parameters") {
            Some(value) => ("rope_parameters", Some(value)),
            None => ("rope_scaling", self.get("rope_scaling")),
        };
        let Some(value) = scaling else { return Ok((theta.unwrap_or(10_000.0), RopeScaling::Default)) };
        let inner = Keys(value.as_object().ok_or_else(|| wrong(key, "an object", value))?);
        let theta = inner.number("rope_theta")?.or(theta).unwrap_or(10_000.0);
        if let Some(factor) = inner.number("partial_rotary_factor")?.filter(|factor| *factor != 1.0) {
            return Err(unsupported("partial_rotary_factor", factor, "1"));
        }
        let word = match inner.text("rope_type")? {
            Some(word) => word,
            None => match inner.text("type")? {
                Some(word) => word,
                None if inner.get("factor").is_some() => return Err(missing(&format!("{key}.rope_type"))),
                None => "default",
            },
        };
        let need = |name: &str| inner.number(name)?.ok_or_else(|| missing(&format!("{key}.{name}")));
        let scaling = match word {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear { factor: need("factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: need("factor")?,
                low_freq_factor: need("low_freq_factor")?,
                high_freq_factor: need("high_freq_factor")?,
                original_max_position_embeddings: inner.need("original_max_position_embeddings")?,
            },
            _ => return Err(unsupported(&format!("{key}.rope_type"), word, "default, linear, llama3")),
        };
        Ok((theta, scaling))
    }
}

fn llama(keys: &Keys<'_>, model_type: &str, taken: &mut Taken) -> Result<ModelConfig> {
    let activation = keys.text("hidden_act")?.unwrap_or("silu");
    if !matches!(activation, "silu" | "swish") {
        return Err(unsupported("hidden_act", activation, "silu"));
    }
    // Outside Qwen2 the switch also puts a bias on o_proj.
    if model_type != "qwen2" && keys.bool("attention_bias", false)? {
        return Err(unsupported("attention_bias", true, "false (biases on q, k and v: model_type qwen2)"));
    }
    let (hidden_size, heads) = (keys.need("hidden_size")?, keys.need("num_attention_heads")?);
    let context = keys.context("max_position_embeddings", model_type, taken)?;
    keys.refuse_sliding_window(model_type, context)?;
    let (rope_theta, rope_scaling) = keys.rope()?;
    Ok(ModelConfig {
        architecture: Architecture::Llama,
        model_type: model_type.to_string(),
        vocab_size: keys.need("vocab_size")?,
        hidden_size,
        intermediate_size: keys.need("intermediate_size")?,
        num_hidden_layers: keys.need("num_hidden_layers")?,
        num_attention_heads: heads,
        num_key_value_heads: keys.count("num_key_value_heads")?.unwrap_or(heads),
        head_dim: head_dim(keys.count("head_dim")?.or((model_type == "qwen3").then_some(QWEN3_HEAD_DIM)), hidden_size, heads)?,
        max_position_embeddings: context,
        norm_eps: keys.number("rms_norm_eps")?.unwrap_or(1e-6),
        rope_theta,
        rope_scaling,
        tie_word_embeddings: keys.bool("tie_word_embeddings", false)?,
        attention_bias: model_type == "qwen2",
        qk_norm: model_type == "qwen3",
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
    })
}

/// Returns the stated head dimension, by default `hidden_size / heads`.
fn head_dim(stated: Option<usize>, hidden_size: usize, heads: usize) -> Result<usize> {
    match stated {
        Some(dim) => Ok(dim),
        None if heads > 0 && hidden_size.is_multiple_of(heads) => Ok(hidden_size / heads),
        None => {
            let refusal = Refusal::new(word!("model.config.heads")).of("config.json").subject("num_attention_heads");
            Err(refusal.expected(format!("a divisor of hidden_size {hidden_size}")).found(heads).into())
        }
    }
}

fn gpt2(keys: &Keys<'_>, taken: &mut Taken) -> Result<ModelConfig> {
    let activation = keys.text("activation_function")?.unwrap_or("gelu_new");
    if !matches!(activation, "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast") {
        return Err(unsupported("activation_function", activation, "gelu_new"));
    }
    if !keys.bool("scale_attn_weights", true)? {
        return Err(unsupported("scale_attn_weights", false, "true"));
    }
    if keys.bool("scale_attn_by_inverse_layer_idx", false)? {
        return Err(unsupported("scale_attn_by_inverse_layer_idx", true, "false"));
    }
    let (hidden_size, heads) = (keys.need("n_embd")?, keys.need("n_head")?);
    Ok(ModelConfig {
        architecture: Architecture::Gpt2,
        model_type: "gpt2".into(),
        vocab_size: keys.need("vocab_size")?,
        hidden_size,
        intermediate_size: keys.count("n_inner")?.unwrap_or(hidden_size.saturating_mul(4)),
        num_hidden_layers: keys.need("n_layer")?,
        num_attention_heads: heads,
        num_key_value_heads: heads,
        head_dim: head_dim(None, hidden_size, heads)?,
        max_position_embeddings: keys.context("n_positions", "gpt2", taken)?,
        norm_eps: keys.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::Default,
        tie_word_embeddings: keys.bool("tie_word_embeddings", true)?,
        attention_bias: true,
        qk_norm: false,
        initializer_range: keys.number("initializer_range")?.unwrap_or(0.02),
    })
}

/// Writes the model as a `config.json`.
pub fn config_to_hf(config: &ModelConfig) -> Value {
    if config.architecture == Architecture::Gpt2 {
        return json!({
            "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
            "vocab_size": config.vocab_size, "n_embd": config.hidden_size, "n_inner": config.intermediate_size,
            "n_layer": config.num_hidden_layers, "n_head": config.num_attention_heads, "n_positions": config.max_position_embeddings,
            "n_ctx": config.max_position_embeddings, "layer_norm_epsilon": config.norm_eps,
            "initializer_range": config.initializer_range, "tie_word_embeddings": config.tie_word_embeddings,
        });
    }
    // The family decides what Hugging Face's code builds, so it is derived from the parts that the model has.
    let (model_type, class) = match (config.attention_bias, config.qk_norm, config.model_type.as_str()) {
        (true, _, _) => ("qwen2", "Qwen2ForCausalLM"),
        (false, true, _) => ("qwen3", "Qwen3ForCausalLM"),
        (false, false, "mistral") => ("mistral", "MistralForCausalLM"),
        (false, false, _) => ("llama", "LlamaForCausalLM"),
    };
    let mut value = json!({
        "architectures": [class], "model_type": model_type, "hidden_act": "silu",
        "vocab_size": config.vocab_size, "hidden_size": config.hidden_size, "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads, "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings, "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta, "initializer_range": config.initializer_range,
        "tie_word_embeddings": config.tie_word_embeddings,
    });
    match model_type {
        "llama" => {
            value["attention_bias"] = false.into();
            value["mlp_bias"] = false.into();
        }
        "mistral" => value["sliding_window"] = Value::Null,
        "qwen3" => value["attention_bias"] = false.into(),
        _ => value["use_sliding_window"] = false.into(),
    }
    match config.rope_scaling {
        RopeScaling::Default => {}
        scaling => value["rope_scaling"] = json!(scaling),
    }
    value
}
