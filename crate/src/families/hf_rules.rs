//! Keys of a `config.json` that are accepted at one value only: another one asks for what the layers of a family do not have.

use serde_json::Value;

use super::hf_keys::Keys;
use super::refusal::unsupported;
use crate::error::Result;

/// A key, and the values at which it is accepted.
pub(super) type Rule = (&'static str, Accepted);

/// Values at which a key is accepted; it may always be absent or null.
#[derive(Debug, Clone, Copy)]
pub(super) enum Accepted {
    /// No value.
    Nothing,
    /// A neutral number.
    Number(f64),
    /// This truth value, which is also that of an absent key, with the words of a refusal.
    Flag(bool, &'static str),
    /// False, where other models have a word.
    False,
    /// This word, or one of the others, which say the same.
    Word(&'static str, &'static [&'static str]),
    /// A list of nothing but this word.
    Each(&'static str),
}

use Accepted::{Each, False, Flag, Nothing, Number, Word};

/// Rules of all families, except for keys that one of them reads.
const SHARED: &[Rule] = &[
    // Experts.
    ("num_experts", Number(0.0)),
    ("num_local_experts", Number(0.0)),
    ("n_routed_experts", Number(0.0)),
    ("moe_intermediate_size", Number(0.0)),
    // Caps of scores, logits and projections.
    ("attn_logit_softcapping", Number(0.0)),
    ("final_logit_softcapping", Number(0.0)),
    ("clip_qkv", Number(0.0)),
    // Factors of Granite, Cohere and MiniCPM, and Gemma's width of a head, which has no neutral value.
    ("embedding_multiplier", Number(1.0)),
    ("logits_scaling", Number(1.0)),
    ("residual_multiplier", Number(1.0)),
    ("logit_scale", Number(1.0)),
    ("scale_emb", Number(1.0)),
    ("scale_depth", Number(1.0)),
    ("attention_multiplier", Nothing),
    ("query_pre_attn_scalar", Nothing),
    ("dim_model_base", Nothing),
    ("mlp_bias", Flag(false, "false")),
    ("rope_interleaved", Flag(false, "false")),
    ("is_encoder_decoder", Flag(false, "false")),
    ("add_cross_attention", Flag(false, "false")),
    ("use_qk_norm", Flag(false, "false")),
    ("parallel_attn", Flag(false, "false")),
    ("alibi", Flag(false, "false")),
    ("is_causal", Flag(true, "true, or absent")),
    // Embedding models write a word here.
    ("use_bidirectional_attention", False),
    ("quantization_config", Nothing),
    ("no_rope_layers", Nothing),
    ("vision_config", Nothing),
    ("layer_types", Each("full_attention")),
];

/// Refuses keys by the shared rules, except for those that the family `reads`, and then by its `own`.
pub(super) fn check(keys: &Keys<'_>, reads: &[&str], own: &[Rule]) -> Result<()> {
    let shared = SHARED.iter().filter(|(key, _)| !reads.contains(key));
    let mut rules = shared.chain(own);
    rules.try_for_each(|(key, accepted)| accepted.check(keys, key))
}

impl Accepted {
    /// Refuses another value of a key.
    fn check(self, keys: &Keys<'_>, key: &str) -> Result<()> {
        let given = keys.get(key);
        let refused = match self {
            Nothing => given.map(|value| {
                let long = value.is_object() || value.is_array();
                let found = if long {
                    "given".to_owned()
                } else {
                    value.to_string()
                };
                (found, "absent")
            }),
            Number(neutral) => {
                let zero = neutral == 0.0;
                let expected = if zero { "0, or absent" } else { "1, or absent" };
                let other = given.filter(|value| value.as_f64() != Some(neutral));
                other.map(|value| (value.to_string(), expected))
            }
            Flag(accepted, expected) => {
                let other = keys.bool(key, accepted)? != accepted;
                other.then(|| ((!accepted).to_string(), expected))
            }
            False => {
                let other = given.filter(|value| value.as_bool() != Some(false));
                other.map(|value| (value.to_string(), "false, or absent"))
            }
            Word(word, others) => {
                let given = keys.text(key)?;
                let other = given.filter(|given| *given != word && !others.contains(given));
                other.map(|other| (other.to_owned(), word))
            }
            Each(word) => {
                let list = given.and_then(Value::as_array);
                let other = list.and_then(|list| list.iter().find(|kind| *kind != word));
                other.map(|other| (other.to_string(), word))
            }
        };
        refused.map_or(Ok(()), |(found, expected)| {
            Err(unsupported(key, found, expected))
        })
    }
}
