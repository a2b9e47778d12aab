//! The rank and the scale of each pair.

use super::config::LoraConfig;
use super::targets::Pattern;
use crate::error::Result;

/// Rank of a pair, and what its product is multiplied by: alpha / r, or alpha / √r.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) rank: u64,
    pub(super) scale: f64,
}

impl LoraConfig {
    /// Rank and scale of the pairs of `modules`, in their order.
    pub(super) fn scalings(&self, modules: &[&str]) -> Result<Vec<Scaling>> {
        let (ranks, alphas) = (first_matches(&self.rank_pattern, modules)?, first_matches(&self.alpha_pattern, modules)?);
        let scaling = |(rank, alpha): (Option<u64>, Option<f64>)| {
            let (rank, alpha) = (rank.unwrap_or(self.r), alpha.unwrap_or(self.lora_alpha));
            // At most 65,536.
            let over = if self.use_rslora { (rank as f64).sqrt() } else { rank as f64 };
            Scaling { rank, scale: alpha / over }
        };
        Ok(ranks.into_iter().zip(alphas).map(scaling).collect())
    }
}

/// The value of the first pattern that matches each of `modules`.
fn first_matches<T: Copy>(table: &[(Pattern, T)], modules: &[&str]) -> Result<Vec<Option<T>>> {
    let mut found = vec![None; modules.len()];
    for (pattern, value) in table {
        let matches = pattern.prepared()?;
        for (found, module) in found.iter_mut().zip(modules) {
            if found.is_none() && matches(module) {
                *found = Some(*value);
            }
        }
    }
    Ok(found)
}
