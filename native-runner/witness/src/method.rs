//! Methods of training: the update rules, each in f32 and in bf16.

use clap::ValueEnum;
use tabtune::config::{
    AdafactorConfig, AdamwConfig, ApolloConfig, OptimizerConfig, Precision, SgdConfig,
};
use tabtune_bench::stock::Planted;

/// Update rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// AdamW
    Adamw,
    /// Adafactor
    Adafactor,
    /// APOLLO
    Apollo,
    /// SGD with Nesterov's momentum
    Sgd,
}

/// Added to the roots of second moments. It is far above the noise of gradients that are zero except for rounding, such as those of GPT-2's
/// key biases.
const EPS: f64 = 1e-4;
const BETAS: [f64; 2] = [0.9, 0.95];
const WEIGHT_DECAY: f64 = 0.1;

impl Rule {
    /// Returns the settings of the rule.
    pub fn config(self) -> OptimizerConfig {
        let [beta1, beta2] = BETAS;
        let (eps, weight_decay) = (EPS, WEIGHT_DECAY);
        match self {
            Self::Adamw => OptimizerConfig::Adamw(AdamwConfig {
                beta1,
                beta2,
                eps,
                weight_decay,
                ..AdamwConfig::default()
            }),
            Self::Adafactor => OptimizerConfig::Adafactor(AdafactorConfig {
                eps1: eps * eps,
                weight_decay,
                // Updates have an RMS of about 1 without it.
                clip_threshold: 0.5,
                ..AdafactorConfig::default()
            }),
            Self::Apollo => OptimizerConfig::Apollo(ApolloConfig {
                beta1,
                beta2,
                eps,
                weight_decay,
                ..ApolloConfig::default()
            }),
            Self::Sgd => OptimizerConfig::Sgd(SgdConfig {
                momentum: 0.9,
                nesterov: true,
                weight_decay,
                ..SgdConfig::default()
            }),
        }
    }

    /// Returns a learning rate with which the loss falls at once.
    pub fn learning_rate(self) -> f64 {
        match self {
            Self::Sgd => 0.05,
            _ => 2e-3,
        }
    }
}

/// Update rule of a run, and storage type of its matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The rule.
    pub rule: Rule,
    /// The storage type.
    pub precision: Precision,
}

impl Method {
    /// AdamW in f32.
    pub const ADAMW: Self = Self {
        rule: Rule::Adamw,
        precision: Precision::F32,
    };

    /// Returns every rule in f32 and in bf16, AdamW in f32 first.
    pub fn all() -> Vec<Self> {
        [Precision::F32, Precision::Bf16]
            .into_iter()
            .flat_map(|precision| {
                Rule::value_variants()
                    .iter()
                    .map(move |&rule| Self { rule, precision })
            })
            .collect()
    }

    /// Returns the words of rule and storage type, as on the command line.
    pub fn words(self) -> [&'static str; 2] {
        let rule = match self.rule {
            Rule::Adamw => "adamw",
            Rule::Adafactor => "adafactor",
            Rule::Apollo => "apollo",
            Rule::Sgd => "sgd",
        };
        let precision = match self.precision {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        };
        [rule, precision]
    }

    /// Returns true if this mistake changes a run.
    pub fn has(self, planted: Planted) -> bool {
        match planted {
            Planted::RopePairs | Planted::NormEps | Planted::VectorDecay => true,
            Planted::UpdateClip => self.rule == Rule::Adafactor,
            Planted::ProjectionScale | Planted::GrowthLimit => self.rule == Rule::Apollo,
            Planted::PlainMomentum => self.rule == Rule::Sgd,
            Planted::NearestRounding | Planted::OneStream => self.precision == Precision::Bf16,
        }
    }
}
