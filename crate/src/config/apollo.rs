//! APOLLO: its settings, and what it keeps (shaders/README.md, "APOLLO").

use super::apollo_values::{ApolloScale, Projected, ProjectorKind};
use super::declare::settings;
use super::hyperparameters::{
    BETA1, BETA2, COUNT, EPS, FINITE, POSITIVE, POSITIVE_F32, STOCHASTIC_ROUNDING, WEIGHT_DECAY,
};
use super::optimizer_kind::{Extent, Hyperparameter, KeptTensor, OptimizerKind, Range};
use super::rules::{DECAY_RULE, RuleSettings, Rules, is_decay, is_positive_f32};
use super::{AdamwConfig, StateWord};

/// Maximum rank that is chosen by default.
const MAX_DEFAULT_RANK: usize = 128;
settings! {
    /// APOLLO and APOLLO-Mini (arXiv:2412.05270).
    pub struct ApolloConfig {
        /// Decay factor of the first moment, 0 ≤ β < 1.
        beta1: f64 = 0.9,
        /// Decay factor of the second moment, 0 ≤ β < 1.
        beta2: f64 = 0.999,
        /// Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
        eps: f64 = 1e-6,
        /// Decoupled weight decay, ≥ 0: p ← (1 − rate · weight_decay) · p.
        weight_decay: f64 = 0.0,
        /// Use one scale for a whole tensor instead of one for each channel (APOLLO-Mini).
        mini: bool = false,
        /// Rank of the projection, ≥ 1. If absent, a quarter of a matrix's shorter side, at most 128; 1 with `mini`.
        rank: Option<u64> = None,
        /// Square of a factor of the update, > 0: updates are multiplied by √scale. `"auto"` is the shorter side
        /// divided by the rank, which makes learning rates those of AdamW.
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value", extend("oneOf" = [{"type": "number"}, {"const": "auto"}])))]
        scale: ApolloScale = ApolloScale::Auto,
        /// Apply √scale before the growth limiter instead of after it.
        scale_front: bool = false,
        /// Maximum growth of an update's norm from one step to the next, as a factor > 1; null disables the limit.
        growth_limit: Option<f64> = Some(1.01),
        /// Matrices that are projected: blocks takes those of attention and MLP, all takes embeddings and head too.
        /// AdamW updates the rest, with these betas, eps and weight decay. In a model that is not tabtune's own, all
        /// matrices are projected.
        projected: Projected = Projected::Blocks,
        /// Factor of the learning rate for parameters that AdamW updates, > 0.
        adamw_learning_rate_scale: f64 = 1.0,
        /// Number of steps after which new projectors are drawn, ≥ 1.
        update_steps: u64 = 200,
        /// Random matrix of the projection: normal has independent entries, orthogonal has orthonormal columns.
        projector: ProjectorKind = ProjectorKind::Normal,
        /// Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
        stochastic_rounding: bool = true,
    }
}

#[doc(hidden)]
impl ApolloConfig {
    /// The rank for a matrix whose shorter side has this length.
    pub fn rank(&self, side: usize) -> usize {
        match self.rank {
            Some(rank) => rank as usize,
            None if self.mini => 1,
            None => (side / 4).clamp(1, MAX_DEFAULT_RANK),
        }
    }

    /// The scale for a matrix whose shorter side has this length.
    pub fn scale(&self, side: usize) -> f64 {
        match self.scale {
            ApolloScale::Auto => side as f64 / self.rank(side) as f64,
            ApolloScale::Square(scale) => scale,
        }
    }

    /// The rule of parameters that are not projected. Their learning rate has the factor
    /// `adamw_learning_rate_scale`.
    pub(crate) fn fallback(&self) -> AdamwConfig {
        AdamwConfig {
            beta1: self.beta1,
            beta2: self.beta2,
            eps: self.eps,
            weight_decay: self.weight_decay,
            stochastic_rounding: self.stochastic_rounding,
        }
    }

    /// The same settings with the defaults that depend on other keys filled in.
    pub(super) fn in_force(self) -> Self {
        Self {
            rank: self.rank.or(self.mini.then_some(1)),
            ..self
        }
    }
}

static MINI: Hyperparameter = Hyperparameter::switch("mini");
static RANK: Hyperparameter = Hyperparameter::new(
    "rank",
    COUNT,
    Range("an integer ≥ 1", |value| {
        (1.0..=f64::from(u32::MAX)).contains(&value)
    }),
)
.optional();
static SCALE: Hyperparameter = Hyperparameter::new("scale", POSITIVE, POSITIVE_F32).optional();
static SCALE_FRONT: Hyperparameter = Hyperparameter::switch("scale_front");
static GROWTH_LIMIT: Hyperparameter = Hyperparameter::new(
    "growth_limit",
    Range("0 or a number > 1", |value| value == 0.0 || value > 1.0),
    Range("> 1 and finite in f32, or null", |value| {
        (value as f32).is_finite() && value as f32 > 1.0
    }),
)
.words(&[(0.0, None)]);
static PROJECTED: Hyperparameter =
    Hyperparameter::switch("projected").words(&[(0.0, Some("blocks")), (1.0, Some("all"))]);
static ADAMW_LEARNING_RATE_SCALE: Hyperparameter =
    Hyperparameter::unchecked("adamw_learning_rate_scale", POSITIVE);
static UPDATE_STEPS: Hyperparameter = Hyperparameter::new(
    "update_steps",
    COUNT,
    Range("an integer ≥ 1", |value| value >= 1.0),
);
static PROJECTOR: Hyperparameter = Hyperparameter::unchecked("projector", FINITE)
    .words(&[(0.0, Some("normal")), (1.0, Some("orthogonal"))]);

/// APOLLO. AdamW moves parameters that it does not project.
pub(crate) static APOLLO: OptimizerKind = OptimizerKind {
    word: "apollo",
    trained: true,
    hyperparameters: &[
        &BETA1,
        &BETA2,
        &EPS,
        &WEIGHT_DECAY,
        &MINI,
        &RANK,
        &SCALE,
        &SCALE_FRONT,
        &GROWTH_LIMIT,
        &PROJECTED,
        &ADAMW_LEARNING_RATE_SCALE,
        &UPDATE_STEPS,
        &PROJECTOR,
        &STOCHASTIC_ROUNDING,
    ],
    state: &[
        KeptTensor::f32(StateWord::M, Extent::Projection),
        KeptTensor::f32(StateWord::V, Extent::Projection),
        KeptTensor::f32(StateWord::Norm, Extent::Projected),
    ],
};

impl RuleSettings for ApolloConfig {
    fn kind(&self) -> &'static OptimizerKind {
        &APOLLO
    }

    fn check(&self, rules: &mut Rules<'_>, learning_rate: f64) {
        self.fallback().check(rules, learning_rate);
        if let Some(rank) = self.rank {
            rules.within_shown(&RANK, rank as f64, rank);
        }
        if let ApolloScale::Square(scale) = self.scale {
            rules.within(&SCALE, scale);
        }
        if let Some(limit) = self.growth_limit {
            rules.within(&GROWTH_LIMIT, limit);
        }
        let (factor, rate) = (
            self.adamw_learning_rate_scale,
            learning_rate * self.adamw_learning_rate_scale,
        );
        let key = ADAMW_LEARNING_RATE_SCALE.key;
        // A rate of 0 means that the rate is not known yet.
        let fits = is_positive_f32(factor) && (learning_rate == 0.0 || is_positive_f32(rate));
        rules.check(
            fits,
            key,
            "finite and > 0 in f32, also multiplied by learning_rate",
            factor,
        );
        // The caller checks the decay at the rate of projected matrices, as for every rule.
        if factor > 1.0 && is_decay(self.weight_decay, learning_rate) {
            rules.check(is_decay(self.weight_decay, rate), key, DECAY_RULE, factor);
        }
        rules.within_shown(&UPDATE_STEPS, self.update_steps as f64, self.update_steps);
    }
}
