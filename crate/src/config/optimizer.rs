//! The update rules (shaders/README.md, "Update rules"): the choice among them, and their table, which has those of other programs too.

use serde::{Deserialize, Serialize};

use super::adafactor::ADAFACTOR;
use super::adamw::{ADAMW, MOMENTS};
use super::apollo::APOLLO;
use super::hyperparameters::{LEARNING_RATE, LEARNING_RATE_SCALE, WEIGHT_DECAY_SCALE};
use super::optimizer_kind::{Hyperparameter, KeptTensor, OptimizerKind};
use super::rules::{DECAY_RULE, RuleSettings, Rules, is_decay};
use super::sgd::{AVERAGE, SGD};
use super::{AdafactorConfig, AdamwConfig, ApolloConfig, SgdConfig};
use crate::error::Fault;

/// Every kind of optimizer, ascending; those of other programs, whose state is only carried, come last.
static KINDS: [&OptimizerKind; 7] = [
    &ADAFACTOR,
    &ADAMW,
    &APOLLO,
    &SGD,
    &carried("adam", MOMENTS),
    &carried("lamb", MOMENTS),
    &carried("lars", AVERAGE),
];

/// Describes a kind of another program.
const fn carried(word: &'static str, state: &'static [KeptTensor]) -> OptimizerKind {
    OptimizerKind {
        word,
        trained: false,
        hyperparameters: &[],
        state,
    }
}

impl OptimizerKind {
    /// The kind with this word.
    pub fn of_word(word: &str) -> Option<&'static Self> {
        KINDS.into_iter().find(|kind| kind.word == word)
    }

    /// The words of the kinds that tabtune trains, ascending.
    pub fn trained() -> Vec<&'static str> {
        KINDS
            .into_iter()
            .filter(|kind| kind.trained)
            .map(|kind| kind.word)
            .collect()
    }
}

impl Hyperparameter {
    /// The hyperparameter or scale of a group with this key, which means the same for every optimizer.
    pub fn of_key(key: &str) -> Option<&'static Self> {
        let of_groups = [&LEARNING_RATE, &LEARNING_RATE_SCALE, &WEIGHT_DECAY_SCALE];
        KINDS
            .into_iter()
            .flat_map(|kind| kind.hyperparameters)
            .copied()
            .chain(of_groups)
            .find(|of| of.key == key)
    }
}

/// Update rule of a run or a group ([example](crate::config)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum OptimizerConfig {
    /// AdamW.
    Adamw(AdamwConfig),
    /// Adafactor.
    Adafactor(AdafactorConfig),
    /// APOLLO.
    Apollo(ApolloConfig),
    /// SGD.
    Sgd(SgdConfig),
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::Adamw(AdamwConfig::default())
    }
}

/// Evaluates an expression with the settings of the update rule, whichever it is.
macro_rules! with_settings {
    ($config:expr, $settings:ident => $value:expr) => {
        match $config {
            OptimizerConfig::Adamw($settings) => $value,
            OptimizerConfig::Adafactor($settings) => $value,
            OptimizerConfig::Apollo($settings) => $value,
            OptimizerConfig::Sgd($settings) => $value,
        }
    };
}

#[doc(hidden)]
impl OptimizerConfig {
    /// Returns every rule with its defaults; APOLLO as APOLLO-Mini, whose rank fits every model.
    pub(crate) fn every() -> [Self; 4] {
        let apollo = ApolloConfig {
            mini: true,
            ..ApolloConfig::default()
        };
        [
            Self::default(),
            Self::Adafactor(Default::default()),
            Self::Apollo(apollo),
            Self::Sgd(Default::default()),
        ]
    }

    /// Returns its `type`.
    pub fn kind(&self) -> &'static str {
        with_settings!(self, settings => settings.kind().word)
    }

    /// The weight decay λ.
    pub fn weight_decay(&self) -> f64 {
        with_settings!(self, settings => settings.weight_decay)
    }

    /// The same rule with another weight decay λ.
    #[must_use]
    pub(crate) fn with_weight_decay(mut self, decay: f64) -> Self {
        with_settings!(&mut self, settings => settings.weight_decay = decay);
        self
    }

    /// Returns true if bf16 values are written with stochastic rounding.
    pub fn stochastic_rounding(&self) -> bool {
        with_settings!(self, settings => settings.stochastic_rounding)
    }

    /// The same rule with the defaults that depend on other keys filled in, so that rules with the same effect are equal.
    pub(crate) fn in_force(self) -> Self {
        match self {
            Self::Apollo(settings) => Self::Apollo(settings.in_force()),
            other => other,
        }
    }

    /// The rules that these values break at the given learning rate.
    pub fn faults(&self, learning_rate: f64) -> Vec<Fault> {
        self.faults_at("optimizer", learning_rate)
    }

    /// Like [`Self::faults`], with the keys under `prefix`.
    pub(crate) fn faults_at(&self, prefix: &str, learning_rate: f64) -> Vec<Fault> {
        let mut rules = Rules::of(prefix);
        with_settings!(self, settings => settings.check(&mut rules, learning_rate));
        let decay = self.weight_decay();
        rules.check(
            is_decay(decay, learning_rate),
            "weight_decay",
            DECAY_RULE,
            decay,
        );
        rules.faults
    }
}
