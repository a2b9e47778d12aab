//! Projectors of the caller's own, and how they are given (shaders/README.md, "APOLLO projectors").

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::Apollo;
use crate::config::glob_matches;
use crate::error::{Error, Fault, Result};
use crate::optim::{Optim, ParamInfo};

/// A projector that APOLLO asks for: P `[dim, rank]`, rank < dim, for the `refresh`-th matrix of `parameter`, counted from 0.
///
/// [`Optim::with_projector`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProjectorRequest<'a> {
    /// The parameter.
    pub parameter: &'a ParamInfo,
    /// The run's seed.
    pub seed: u64,
    /// Number of the matrix: a new one is asked for every `update_steps` steps.
    pub refresh: u64,
    /// The shorter side of the parameter as a matrix, which is projected.
    pub dim: usize,
    /// The rank r of the projection.
    pub rank: usize,
}

/// A function that makes projectors, row by row.
type Make = dyn Fn(&ProjectorRequest<'_>) -> Vec<f32> + Send + Sync;

/// The maker of a parameter's projectors.
#[derive(Clone)]
pub(super) struct Maker(Arc<Make>);

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}

impl Maker {
    /// Makes a projector, and refuses one of another size or with values that are not finite.
    pub fn make(&self, request: &ProjectorRequest<'_>) -> Result<Vec<f32>> {
        let matrix = (self.0)(request);
        let ProjectorRequest {
            parameter,
            dim,
            rank,
            ..
        } = request;
        let fits = matrix.len() == dim * rank && matrix.iter().all(|value| value.is_finite());
        if fits {
            return Ok(matrix);
        }
        let rule = format!("a projector of {dim} × {rank} finite values");
        let found = match matrix.iter().find(|value| !value.is_finite()) {
            Some(value) => value.to_string(),
            None => format!("{} values", matrix.len()),
        };
        Err(Error::invalid(&parameter.name, rule, found))
    }
}

impl Optim {
    /// Gives the parameters whose names match `pattern`, and which APOLLO projects, a projector of the caller's own: `make` returns the elements of
    /// P `[dim, rank]` row by row, once every `update_steps` steps. P is not saved, so a run repeats its bits after a resume if `make` is a function
    /// of the request alone.
    ///
    /// ```
    /// # fn main() -> tabtune::Result<()> {
    /// use burn::nn::LinearConfig;
    /// use tabtune::config::{ApolloConfig, OptimizerConfig, Projected};
    /// use tabtune::optim::{Optim, OptimSettings};
    ///
    /// # #[cfg(feature = "cpu")] {
    /// let linear = LinearConfig::new(64, 32).init(&tabtune::device::Device::cpu().autodiff());
    /// let apollo = ApolloConfig { rank: Some(4), ..ApolloConfig::default() };
    /// let settings = OptimSettings { optimizer: OptimizerConfig::Apollo(apollo), ..OptimSettings::default() };
    /// // The rank coordinates that follow the last ones.
    /// let optim = Optim::for_module(&linear, &settings)?.with_projector("*", |of| {
    ///     let column = |j: usize| (of.refresh as usize * of.rank + j) % of.dim;
    ///     (0..of.dim * of.rank).map(|e| f32::from(u8::from(e / of.rank == column(e % of.rank)))).collect()
    /// })?;
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `optim.groups` for a pattern that matches no projected parameter. A matrix of another size, or with values that are not finite, ends
    /// the run at the step that asks for it (`config.invalid`).
    pub fn with_projector(
        mut self,
        pattern: &str,
        make: impl Fn(&ProjectorRequest<'_>) -> Vec<f32> + Send + Sync + 'static,
    ) -> Result<Self> {
        let maker = Maker(Arc::new(make));
        let mut matched = false;
        for slot in self.slots.values_mut() {
            let rule: &mut dyn Any = &mut *slot.rule;
            if let Some(apollo) = rule.downcast_mut::<Apollo>()
                && !slot.frozen
                && glob_matches(pattern, &slot.info.name)
            {
                apollo.maker = Some(maker.clone());
                matched = true;
            }
        }
        if matched {
            return Ok(self);
        }
        let rule = "one that matches parameters that APOLLO projects";
        Err(Error::Groups(vec![Fault::new("pattern", rule, pattern)]))
    }
}
