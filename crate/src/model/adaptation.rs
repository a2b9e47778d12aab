//! The adapter of a model: which matrices have low-rank factors, and which modules are trained in full alongside them.

use std::collections::{BTreeMap, BTreeSet};

use super::low_rank::LowRank;
use super::parameter_request::Kind;
use crate::config::{AdapterConfig, AdapterWarning, Init, Resolved, Target};
use crate::families::factor_names;
use crate::random;

/// Purpose of the dropout noise, as part of its key.
const DROPOUT: &str = "dropout:";

/// Adapter of a model, before its tensors have values. All other parameters of the model are constants; with an empty adapter, which is the
/// default, every parameter is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adaptation {
    targets: BTreeMap<String, Target>,
    saved: BTreeSet<String>,
    dropout: f64,
    init: Init,
    seed: u64,
    warnings: Vec<AdapterWarning>,
}

/// Factors that a layer requests: name, shape and kind of A and B, and how they are used.
pub(super) struct FactorRequests {
    pub a: (String, [usize; 2], Kind),
    pub b: (String, [usize; 2], Kind),
    pub low_rank: LowRank,
}

impl Adaptation {
    /// Creates the adapter of `settings` with the modules that these select; `seed` is the seed of new factors and of dropout.
    pub(super) fn of_resolved(settings: &AdapterConfig, resolved: Resolved, seed: u64) -> Self {
        let targets = resolved
            .targets
            .into_iter()
            .map(|target| (target.module.clone(), target))
            .collect();
        let saved = resolved.saved.into_iter().collect();
        Self {
            targets,
            saved,
            dropout: settings.dropout,
            init: settings.init,
            seed,
            warnings: resolved.warnings,
        }
    }

    /// Returns the matrices that have factors, keyed by the names of their modules.
    pub fn targets(&self) -> &BTreeMap<String, Target> {
        &self.targets
    }

    /// Returns the warnings about settings that work but deserve attention.
    pub fn warnings(&self) -> &[AdapterWarning] {
        &self.warnings
    }

    /// Returns the seed of new factors and of dropout.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns whether the base's parameter `name` is trained in full.
    pub fn saves(&self, name: &str) -> bool {
        name.rsplit_once('.')
            .is_some_and(|(module, _)| self.saved.contains(module))
    }

    /// Returns the factors of the matrix `[out, input]` of `module`, if it is a target.
    pub(super) fn factors(&self, module: &str, [out, input]: [usize; 2]) -> Option<FactorRequests> {
        let &Target { rank, scale, .. } = self.targets.get(module)?;
        let [a, b] = factor_names(module);
        let low_rank = LowRank {
            scale: scale as f32,
            dropout: self.dropout,
            key: random::key(DROPOUT, self.seed, module),
        };
        let first = match self.init {
            Init::Uniform => Kind::Uniform,
            Init::Gaussian => Kind::Gaussian,
        };
        Some(FactorRequests {
            a: (a, [rank, input], first),
            b: (b, [out, rank], Kind::Zero),
            low_rank,
        })
    }
}
