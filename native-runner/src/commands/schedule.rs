//! `tabtune schedule`: prints the learning rates that a new run plans.

use serde_json::json;
use tabtune::config::TrainConfig;
use tabtune::schedule::{misfits, preview, resolve_start};
use tabtune::train::Notice;
use tabtune::word;

use super::Outcome;
use crate::args::ScheduleArgs;
use crate::error::{Result, RunError};
use crate::output::{Output, warn};
use crate::settings::{from_file, resolve};

/// Prints one line per step, with its learning rate.
///
/// # Errors
/// `source.read`, `cli.json`, and the refusal of impossible settings.
pub fn run(args: &ScheduleArgs, output: &Output) -> Result<Outcome> {
    let config = resolve(from_file(&args.train_config)?, None)?;
    if config.epochs.is_some() && args.steps.is_none() {
        return Err(RunError::Usage(
            "the steps of epochs follow from the data: give their number (--steps)".into(),
        ));
    }
    let steps = args.steps.unwrap_or(config.steps);
    let start = resolve_start(&config.schedule, None, 0);
    for misfit in misfits(
        &TrainConfig {
            steps,
            ..config.clone()
        },
        start,
    ) {
        let notice = Notice::filled(word!("schedule.misfit"), ["", "", &misfit]);
        warn(&notice.message, notice.code);
    }
    for (step, rate) in (1..=steps).zip(preview(
        1..=steps,
        config.learning_rate,
        &config.schedule,
        start,
    )) {
        output.line(&json!({ "step": step, "learning_rate": rate }), || {
            format!("{step} {rate:e}")
        })?;
    }
    Ok(Outcome::Good)
}
