//! Settings of APOLLO (shaders/README.md, "APOLLO").

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::AdamwConfig;
use super::rules::{DECAY_RULE, Rules, is_decay, is_positive_f32};

/// Maximum rank that is chosen by default.
const MAX_DEFAULT_RANK: usize = 128;
/// JSON value of [`ApolloScale::Auto`].
const AUTO: &str = "auto";

/// Kind of random matrix with which APOLLO projects gradients.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectorKind {
    /// Independent, normally distributed entries.
    #[default]
    Normal,
    /// Orthonormal columns.
    Orthogonal,
}

/// Matrices that APOLLO projects; AdamW updates the rest.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Projected {
    /// Matrices of attention and MLP.
    #[default]
    Blocks,
    /// These, and embeddings and head.
    All,
}

/// Square of a factor of the update.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ApolloScale {
    /// Length of a channel divided by the rank, which makes an update as long as AdamW's for every rank; `"auto"` in JSON.
    #[default]
    Auto,
    /// A fixed value.
    Square(f64),
}

impl Serialize for ApolloScale {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str(AUTO),
            Self::Square(scale) => to.serialize_f64(*scale),
        }
    }
}

struct ScaleVisitor;

impl Visitor<'_> for ScaleVisitor {
    type Value = ApolloScale;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or \"auto\"")
    }

    fn visit_f64<E: de::Error>(self, scale: f64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale))
    }

    fn visit_u64<E: de::Error>(self, scale: u64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale as f64))
    }

    fn visit_i64<E: de::Error>(self, scale: i64) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Square(scale as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ApolloScale, E> {
        if text == AUTO { Ok(ApolloScale::Auto) } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
    }

    // Older checkpoints have null for a scale that was not given.
    fn visit_unit<E: de::Error>(self) -> Result<ApolloScale, E> {
        Ok(ApolloScale::Auto)
    }
}

impl<'de> Deserialize<'de> for ApolloScale {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ScaleVisitor)
    }
}

/// APOLLO and APOLLO-Mini (arXiv:2412.05270).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApolloConfig {
    /// Decay factor of the first moment, 0 ≤ β < 1.
    pub beta1: f64,
    /// Decay factor of the second moment, 0 ≤ β < 1.
    pub beta2: f64,
    /// Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
    pub eps: f64,
    /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
    pub weight_decay: f64,
    /// Use one scale for a whole tensor instead of one for each channel (APOLLO-Mini).
    pub mini: bool,
    /// Rank of the projection, ≥ 1. If absent, a quarter of a matrix's shorter side, at most 128; 1 with `mini`.
    pub rank: Option<u64>,
    /// Square of a factor of the update, > 0: updates are multiplied by √scale. `"auto"` is the shorter side divided by the rank, which
    /// makes learning rates those of AdamW.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value", extend("oneOf" = [{"type": "number"}, {"const": "auto"}])))]
    pub scale: ApolloScale,
    /// Apply √scale before the growth limiter instead of after it.
    pub scale_front: bool,
    /// Maximum growth of an update's norm from one step to the next, as a factor > 1; null disables the limit.
    pub growth_limit: Option<f64>,
    /// Matrices that are projected: blocks takes those of attention and MLP, all takes embeddings and head too. AdamW updates the rest,
    /// with these betas, eps and weight decay. In a model that is not tabtune's own, all matrices are projected.
    pub projected: Projected,
    /// Factor of the learning rate for parameters that AdamW updates, > 0.
    pub adamw_learning_rate_scale: f64,
    /// Number of steps after which new projectors are drawn, ≥ 1.
    pub update_steps: u64,
    /// Random matrix of the projection: normal has independent entries, orthogonal has orthonormal columns.
    pub projector: ProjectorKind,
    /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
    pub stochastic_rounding: bool,
}

impl Default for ApolloConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-6,
            weight_decay: 0.0,
            mini: false,
            rank: None,
            scale: ApolloScale::Auto,
            scale_front: false,
            growth_limit: Some(1.01),
            projected: Projected::Blocks,
            adamw_learning_rate_scale: 1.0,
            update_steps: 200,
            projector: ProjectorKind::Normal,
            stochastic_rounding: true,
        }
    }
}

#[doc(hidden)]
impl ApolloConfig {
    /// Returns the rank for a matrix whose shorter side has this length.
    pub fn rank(&self, side: usize) -> usize {
        match self.rank {
            Some(rank) => rank as usize,
            None if self.mini => 1,
            None => (side / 4).clamp(1, MAX_DEFAULT_RANK),
        }
    }

    /// Returns the scale for a matrix whose shorter side has this length.
    pub fn scale(&self, side: usize) -> f64 {
        match self.scale {
            ApolloScale::Auto => side as f64 / self.rank(side) as f64,
            ApolloScale::Square(scale) => scale,
        }
    }

    /// Returns the rule of parameters that are not projected. Their learning rate has the factor `adamw_learning_rate_scale`.
    pub(crate) fn fallback(&self) -> AdamwConfig {
        AdamwConfig {
            beta1: self.beta1,
            beta2: self.beta2,
            eps: self.eps,
            weight_decay: self.weight_decay,
            stochastic_rounding: self.stochastic_rounding,
        }
    }

    /// Checks these values at this learning rate.
    pub(super) fn check(&self, rules: &mut Rules<'_>, learning_rate: f64) {
        rules.moments(self.beta1, self.beta2, self.eps);
        if let Some(rank) = self.rank {
            rules.check((1..=u64::from(u32::MAX)).contains(&rank), "rank", "an integer ≥ 1", rank);
        }
        if let ApolloScale::Square(scale) = self.scale {
            rules.positive("scale", scale);
        }
        if let Some(limit) = self.growth_limit {
            rules.check((limit as f32).is_finite() && limit as f32 > 1.0, "growth_limit", "> 1 and finite in f32, or null", limit);
        }
        let (factor, rate) = (self.adamw_learning_rate_scale, learning_rate * self.adamw_learning_rate_scale);
        // A rate of 0 means that the rate is not known yet.
        let fits = is_positive_f32(factor) && (learning_rate == 0.0 || is_positive_f32(rate));
        rules.check(fits, "adamw_learning_rate_scale", "finite and > 0 in f32, also multiplied by learning_rate", factor);
        // The caller checks the decay at the rate of projected matrices, as for every rule.
        if factor > 1.0 && is_decay(self.weight_decay, learning_rate) {
            rules.check(is_decay(self.weight_decay, rate), "adamw_learning_rate_scale", DECAY_RULE, factor);
        }
        rules.check(self.update_steps >= 1, "update_steps", "an integer ≥ 1", self.update_steps);
    }
}
