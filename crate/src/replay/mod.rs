//! Replays recorded trajectories (tests/golden/vectors/README.md) through the real optimizers, kernels and schedules.

mod optimizer;
mod schedule;
mod tables;
mod values;

use serde_json::Value;

use crate::device::Device;
use crate::error::{Error, Result};

/// Result of replaying one file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ReplayReport {
    /// Name of the file.
    pub file: String,
    /// `optimizer`, `schedule`, `rounding`, `noise` or `projector`.
    pub kind: &'static str,
    /// Largest error as a share of its bound (`tolerance` is 1); for bit-exact values the number of those that differ.
    pub max_error: f64,
    /// Largest `max_error` that is accepted.
    pub tolerance: f64,
    /// True if the error is within the tolerance.
    pub ok: bool,
    /// The largest errors in their own units, and where they were found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Reason why the file is not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// Errors of one file while it is replayed.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// Largest share of a bound, and its place.
    share: (f64, String),
    /// Number of values compared bit for bit, and of those that differ.
    exact: (usize, usize),
    /// Largest distance of such a value in bf16 ulp, and the place of the first.
    ulp: (u32, String),
    /// Conditions that do not hold.
    broken: Vec<String>,
}

impl Errors {
    /// Checks that `error` is at most `bound`.
    fn bound(&mut self, place: impl FnOnce() -> String, error: f64, bound: f64) {
        let share = if error == 0.0 { 0.0 } else { error / bound };
        // A NaN must count as worse than anything.
        if share.is_nan() || share > self.share.0 {
            self.share = (share, format!("{} {error:.3e} of {bound:.3e}", place()));
        }
    }

    /// Checks that bits are equal; `ulp` is their distance.
    fn equal(&mut self, place: impl FnOnce() -> String, ulp: u32) {
        self.exact.0 += 1;
        if ulp != 0 {
            self.exact.1 += 1;
            if self.ulp.0 == 0 {
                self.ulp.1 = place();
            }
            self.ulp.0 = self.ulp.0.max(ulp);
        }
    }

    fn require(&mut self, holds: bool, place: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(place());
        }
    }

    /// Returns the verdict; up to `allowed` values may differ by one bf16 ulp.
    fn report(self, file: &str, kind: &'static str, allowed: usize) -> ReplayReport {
        let (compared, differ) = self.exact;
        let excess = if differ <= allowed && self.ulp.0 <= 1 {
            0
        } else {
            differ
        };
        let max_error = if self.broken.is_empty() {
            self.share.0.max(excess as f64)
        } else {
            f64::MAX
        };
        let mut detail = Vec::new();
        if compared > 0 {
            detail.push(format!(
                "{differ}/{compared} bit patterns differ{}{}",
                if differ > 0 { ", first " } else { "" },
                self.ulp.1
            ));
        }
        if !self.share.1.is_empty() {
            detail.push(format!(
                "{:.2} of the bound: {}",
                self.share.0, self.share.1
            ));
        }
        detail.extend(self.broken);
        let ok = max_error <= 1.0 && excess == 0;
        ReplayReport {
            file: file.to_string(),
            kind,
            max_error,
            tolerance: 1.0,
            ok,
            detail: detail.join("; "),
            skipped: None,
        }
    }
}

/// Replays one vector file, given by name and bytes, on `device`.
///
/// # Errors
/// [`Error::SourceRead`] for a file of another format, and the errors of the optimizer and the device.
pub async fn replay(file: &str, bytes: &[u8], device: &Device) -> Result<ReplayReport> {
    let root: Value =
        serde_json::from_slice(bytes).map_err(|e| unreadable(file, &e.to_string()))?;
    let class = root["replay"]["class"].as_str().unwrap_or_default();
    let kind = if root["params"].is_array() {
        "optimizer"
    } else if root["cases"][0]["P"].is_object() {
        "projector"
    } else if root["known_answers"].is_array() {
        "noise"
    } else if root["cases"][0]["f32_bits"].is_number() || root["nearest"].is_array() {
        "rounding"
    } else {
        "schedule"
    };
    if class == "information" {
        let reason = root["replay"]["reason"]
            .as_str()
            .unwrap_or("recorded for information")
            .to_string();
        let (file, detail) = (file.to_string(), String::new());
        return Ok(ReplayReport {
            file,
            kind,
            max_error: 0.0,
            tolerance: 0.0,
            ok: true,
            detail,
            skipped: Some(reason),
        });
    }
    let mut errors = Errors::default();
    let mut allowed = 0;
    let done = match kind {
        "optimizer" => optimizer::replay(&root, device, &mut errors)
            .await?
            .map(|tolerated| allowed = tolerated),
        "projector" => tables::projectors(&root, device, &mut errors).await?,
        "noise" => tables::noise(&root, device, &mut errors).await?,
        "rounding" => tables::rounding(&root, device, &mut errors).await?,
        _ => schedule::replay(&root, &mut errors),
    };
    done.ok_or_else(|| unreadable(file, "a field is missing or has another type"))?;
    Ok(errors.report(file, kind, allowed))
}

fn unreadable(file: &str, reason: &str) -> Error {
    Error::SourceRead {
        name: file.to_string(),
        reason: format!("not a vector file: {reason}"),
    }
}
