//! `tabtune schedule`: the learning rates that a new run plans.

use serde_json::json;
use tabtune::schedule::{preview, resolve_start};

use super::Outcome;
use crate::args::ScheduleArgs;
use crate::error::Result;
use crate::output::Output;
use crate::settings::{from_file, settle};

/// Prints one line per step, with its rate.
pub fn run(args: &ScheduleArgs, output: &Output) -> Result<Outcome> {
    let config = settle(from_file(&args.train_config)?, None)?;
    let steps = args.steps.unwrap_or(config.steps);
    let start = resolve_start(&config.schedule, None, 0);
    for (index, rate) in preview(steps as usize, config.learning_rate, &config.schedule, start).into_iter().enumerate() {
        let step = index + 1;
        output.line(&json!({ "step": step, "learning_rate": rate }), || format!("{step} {rate:e}"))?;
    }
    Ok(Outcome::Good)
}
