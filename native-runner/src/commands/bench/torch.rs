//! Runs the same training steps in PyTorch, with a Python of the user.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tabtune::config::{OptimizerConfig, TrainConfig};
use tabtune::data::Batch;

use crate::error::{Result, RunError};

const SCRIPT: &str = include_str!("torch_steps.py");

/// Steps of one run: their milliseconds and losses.
pub struct Steps {
    pub precision: String,
    pub batch_size: usize,
    pub ms: Vec<f64>,
    pub losses: Vec<f64>,
}

/// A Python that has PyTorch and transformers.
pub struct Torch<'a> {
    python: &'a Path,
    /// Versions of the packages, and the device.
    pub about: Value,
}

/// Makes the request for one run of PyTorch.
pub fn wanted(precision: &str, batches: &[Batch]) -> Value {
    let of = batches.first();
    let batches: Vec<_> = batches
        .iter()
        .map(|batch| json!([batch.inputs, batch.targets]))
        .collect();
    json!({ "precision": precision, "batch_size": of.map(|b| b.batch_size), "seq_len": of.map(|b| b.seq_len), "batches": batches })
}

impl<'a> Torch<'a> {
    /// Checks `python` by asking for its versions.
    ///
    /// # Errors
    /// `bench.torch` if it cannot be started or lacks a package.
    pub fn of(python: &'a Path) -> Result<Self> {
        let lines = run(python, &json!({ "runs": [], "settings": {} }))?;
        let about = lines
            .into_iter()
            .next()
            .ok_or_else(|| refused(python, "it prints nothing"))?;
        match about.get("missing").and_then(Value::as_str) {
            Some(missing) => Err(refused(python, missing)),
            None => Ok(Self { python, about }),
        }
    }

    /// Trains the model in `folder` again for each of `runs`, with these settings.
    ///
    /// # Errors
    /// `bench.torch` if the program fails or its output cannot be parsed.
    pub fn steps(&self, folder: &Path, config: &TrainConfig, runs: &[Value]) -> Result<Vec<Steps>> {
        let OptimizerConfig::Adamw(adamw) = &config.optimizer else {
            return Err(refused(self.python, "it is asked for AdamW only"));
        };
        let settings = json!({
            "learning_rate": config.learning_rate, "beta1": adamw.beta1, "beta2": adamw.beta2, "eps": adamw.eps,
            "weight_decay": adamw.weight_decay, "max_grad_norm": config.max_grad_norm
        });
        let lines = run(
            self.python,
            &json!({ "model": folder, "settings": settings, "runs": runs }),
        )?;
        lines
            .iter()
            .skip(1)
            .map(|line| {
                parsed(line).ok_or_else(|| refused(self.python, format!("it printed {line}")))
            })
            .collect()
    }
}

fn parsed(line: &Value) -> Option<Steps> {
    let numbers = |key: &str| {
        line[key]
            .as_array()?
            .iter()
            .map(Value::as_f64)
            .collect::<Option<Vec<f64>>>()
    };
    let (precision, batch_size) = (
        line["precision"].as_str()?.to_owned(),
        line["batch_size"].as_u64()? as usize,
    );
    Some(Steps {
        precision,
        batch_size,
        ms: numbers("ms")?,
        losses: numbers("losses")?,
    })
}

fn refused(python: &Path, reason: impl ToString) -> RunError {
    RunError::Torch {
        python: python.display().to_string(),
        reason: reason.to_string(),
    }
}

/// Runs the script with the request `ask` and returns the lines that it prints.
fn run(python: &Path, ask: &Value) -> Result<Vec<Value>> {
    let failed = |reason: &dyn ToString| refused(python, reason.to_string());
    let mut child = Command::new(python);
    child
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().map_err(|error| failed(&error))?;
    // The script reads all input before it prints. If it ends early, stderr has the reason, so a closed pipe is not reported itself.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(ask.to_string().as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(failed(
            &errors
                .trim()
                .lines()
                .last()
                .unwrap_or("it ended without a word"),
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|_| failed(&format!("it printed {line:?}"))))
        .collect()
}
