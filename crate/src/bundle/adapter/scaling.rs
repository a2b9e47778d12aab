//! Computes the rank and the scale of each pair.

use super::config::LoraConfig;
use crate::config::{adapter_scale, first_matches};
use crate::error::Result;

/// Rank of a pair, and the factor of its product: alpha / r, or alpha / √r.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) rank: u64,
    pub(super) scale: f64,
}

impl LoraConfig {
    /// Returns rank and scale of the pairs of `modules`, in their order.
    pub(super) fn scalings(&self, modules: &[&str]) -> Result<Vec<Scaling>> {
        let (ranks, alphas) = (
            first_matches(&self.rank_pattern, modules)?,
            first_matches(&self.alpha_pattern, modules)?,
        );
        let scaling = |(rank, alpha): (Option<u64>, Option<f64>)| {
            let (rank, alpha) = (rank.unwrap_or(self.r), alpha.unwrap_or(self.lora_alpha));
            Scaling {
                rank,
                scale: adapter_scale(rank, alpha, self.use_rslora),
            }
        };
        Ok(ranks.into_iter().zip(alphas).map(scaling).collect())
    }
}
