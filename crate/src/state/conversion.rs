//! Measures the error of a tensor's type while the tensor is written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::formats::TensorType;

/// A tensor that was written in another type than it had, or as the sum with an adapter ([example](super::ModelIoArtifactReceipt)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// Name in the file that was written.
    pub tensor: String,
    /// Previous dtype: a word of safetensors, or `GGML:<type>`.
    pub from: String,
    /// dtype in the file.
    pub to: String,
    /// Largest difference between a finite value and the value that a reader of the file gets for it, both as f32.
    pub max_abs_error: f64,
    /// Number of values that were NaN or infinite before.
    pub non_finite: u64,
    /// For a tensor that an adapter was merged into, the share of the change that is left: 1 − ‖written − exact‖ / ‖change‖, 2-norms of all
    /// values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival: Option<f64>,
}

impl Conversion {
    /// True if the type in the file cannot hold every value of the previous one.
    fn rounds(&self) -> bool {
        let widest = TensorType::F32.ggml().dtype();
        self.from != self.to && (self.to != widest || self.from == "F64")
    }
}

/// Describes how weights that were written may differ from those before: sums with an adapter, factors that were `scaled`, and the types that
/// values were rounded to. `None` if all values are the same.
pub(crate) fn changes_of(conversions: &[Conversion], scaled: bool) -> Option<String> {
    let merged = conversions.iter().any(|one| one.survival.is_some());
    let rounded = conversions.iter().filter(|one| one.rounds());
    let types: BTreeSet<&str> = rounded
        .map(|one| one.to.strip_prefix("GGML:").unwrap_or(&one.to))
        .collect();
    let words: Vec<&str> = types.into_iter().collect();
    let changes = [
        merged.then(|| "merging the adapter".to_string()),
        scaled.then(|| "scaling the factors".to_string()),
        (!words.is_empty()).then(|| format!("rounding to {}", words.join(", "))),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    (!changes.is_empty()).then(|| changes.join(" and "))
}

/// Compares values with those that were written for them.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    to: TensorType,
    conversion: Conversion,
    /// Values whose block is not complete yet.
    waiting: Vec<f32>,
    /// Sum of the squares of all differences.
    squares: f64,
}

impl Measure {
    /// Measures the tensor `tensor`, which is written as `to`; `merged` if an adapter was merged into it.
    pub(crate) fn new(tensor: &str, from: &str, to: TensorType, merged: bool) -> Self {
        let conversion = Conversion {
            tensor: tensor.to_string(),
            from: from.to_string(),
            to: to.ggml().dtype(),
            max_abs_error: 0.0,
            non_finite: 0,
            survival: merged.then_some(1.0),
        };
        Self {
            to,
            conversion,
            waiting: Vec::new(),
            squares: 0.0,
        }
    }

    /// Completes the measurement after all values were compared, given the 2-norm of the merged change and the sum of squares of the errors of
    /// adding it in f32. That rounding and the type's are independent. If the change is zero, there is no survival.
    pub(crate) fn of_change(&mut self, norm: f64, squares: f64) {
        self.conversion.survival =
            (norm > 0.0).then(|| 1.0 - (self.squares + squares).sqrt() / norm);
    }

    /// Compares the next values with the blocks that they completed.
    pub(crate) fn compare(&mut self, values: Vec<f32>, encoded: &[u8]) {
        let mut decoded = Vec::new();
        self.to.decode(encoded, &mut decoded);
        let before = self.waiting.iter().copied().chain(values.iter().copied());
        for (before, after) in before.zip(&decoded) {
            if before.is_finite() {
                let error = (f64::from(before) - f64::from(*after)).abs();
                self.conversion.max_abs_error = self.conversion.max_abs_error.max(error);
                self.squares += error * error;
            } else {
                self.conversion.non_finite += 1;
            }
        }
        // Values of an incomplete block wait.
        let (waiting, done) = (self.waiting.len(), decoded.len());
        self.waiting = match done.checked_sub(waiting) {
            Some(done) => values.get(done..).unwrap_or_default().to_vec(),
            None => self.waiting.drain(done..).chain(values).collect(),
        };
    }

    /// The measurement so far.
    pub(crate) fn conversion(&self) -> Conversion {
        self.conversion.clone()
    }
}
