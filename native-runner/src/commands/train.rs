//! `tabtune train`: prepares a run from the options and trains it.

mod best;
mod device_losses;
mod driver;
mod idle;
mod loss;
mod start;

use serde_json::json;
use tabtune::bundle::{FileStream, ModelAssets};
use tabtune::checkpoint::{MANIFEST, Origin};
use tabtune::config::{ChosenSetting, EVAL_EVERY};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::gpu::profile::KernelTimes;
use tabtune::train::{Notice, Trainer, memory_plan};
use tabtune::word;

use self::best::Best;
use self::device_losses::Losses;
use self::driver::Driver;
use self::start::prepare;
use super::Outcome;
use crate::args::TrainArgs;
use crate::data::unused_on;
use crate::error::{Result, RunError};
use crate::files::is_same;
use crate::output::{Output, warning_line};
use crate::place::Folder;
use crate::progress::Progress;
use crate::signals::Signals;

/// A trainer with its device, and the documents that are saved with its weights.
struct Run {
    trainer: Trainer,
    device: Device,
    assets: ModelAssets,
    origin: Origin,
    /// Settings that were chosen for the run.
    chosen: Vec<ChosenSetting>,
}

/// Parts of a run that its next device takes over after a loss.
struct Kept {
    device: Device,
    data: Dataset,
}

impl Run {
    fn step(&self) -> u64 {
        self.trainer.progress().completed_steps
    }
}

/// Trains, saves and evaluates as requested; prints one line per step. However the steps end, the last complete one is saved.
///
/// # Errors
/// `output.occupied`, `run.locked`, `cli.usage`, and the errors of data, model, device and training.
pub fn run(args: &TrainArgs, output: &Output) -> Result<Outcome> {
    idle::refuse(args)?;
    let place = args
        .out
        .as_deref()
        .map(Folder::for_checkpoints)
        .transpose()?;
    if let (Some(place), Some(best)) = (&place, &args.keep_best)
        && is_same(place.path(), best)
    {
        return Err(RunError::Usage(format!(
            "--keep-best: expected another folder than that of --to, found {}",
            best.display()
        )));
    }
    let mut best = args
        .keep_best
        .as_deref()
        .map(|path| Best::claim(path, args.resume.is_some()))
        .transpose()?;
    for place in place.iter().chain(best.as_ref().map(Best::place)) {
        let inputs = [
            ("--model", &args.model),
            ("--adapter", &args.adapter),
            ("--merge-adapter", &args.merge_adapter),
        ];
        for (option, input) in inputs
            .into_iter()
            .filter_map(|(option, path)| Some((option, path.as_deref()?)))
        {
            place.check_input(option, input)?;
        }
    }
    let mut run = prepare(args, None, output)?;
    if let Some(best) = &mut best {
        best.continue_with(&run)?;
    }
    let eval_every = args.eval_every.or_else(|| chosen_interval(&run));
    if args.keep_best.is_some() && eval_every.is_none() {
        return Err(RunError::Usage(
            "--keep-best: expected --eval-every, since nothing is evaluated otherwise".into(),
        ));
    }
    if eval_every.is_some() {
        run.trainer.check_evaluation()?;
    } else if !args.validation_data.is_empty() || run.trainer.config().validation_fraction > 0.0 {
        let part = if args.validation_data.is_empty() {
            "the part that --validation-fraction keeps"
        } else {
            "--validation-data"
        };
        run.trainer.add_notices(vec![Notice::filled(
            word!("data.validation.unused"),
            [part, "--eval-every", ""],
        )]);
    }
    let unused = unused_on(run.trainer.dataset(), &args.settings.given);
    run.trainer.add_notices(Vec::from_iter(unused));
    for place in place.iter().chain(best.as_ref().map(Best::place)) {
        let stream = tabtune::checkpoint::write(&run.trainer, &run.assets, &run.origin)?;
        place.check_room(&stream, largest_checkpoint(&run.trainer, &stream)?)?;
    }
    tell_chosen(&run.chosen, output)?;
    tell_fallbacks(&run.trainer.optim().fallbacks(), output)?;
    for notice in run.trainer.notices() {
        output.line(&json!({ "warning": notice }), || {
            warning_line(&notice.message, notice.code)
        })?;
    }
    if run.trainer.config().gradient_release && args.out.is_some() && args.save_every.is_none() {
        let found = "with gradient release, a gradient that is not finite ends the run at its last save. Set --save-every too";
        let Notice { code, message, .. } =
            Notice::filled(word!("run.unprotected"), ["", "", found]);
        output.line(
            &json!({ "warning": { "code": code, "message": message } }),
            || warning_line(&message, code),
        )?;
    }
    let (total, first) = (run.trainer.config().steps, run.step());
    if let Some(stop) = args.stop_at.filter(|stop| *stop > total) {
        return Err(RunError::Usage(format!(
            "--stop-at {stop}: expected a step of the run, whose last one is {total}"
        )));
    }
    let driver = Driver {
        last: args.stop_at.map_or(total, |step| step.min(total)),
        first,
        told: first,
        evaluated: None,
        saved: None,
        losses: Losses::default(),
        eval_every,
        lowest: f64::INFINITY,
        rises: false,
        best,
        signals: Signals::listen().map_err(RunError::Signals)?,
        progress: Progress::new(total, first, !output.json()),
        times: args.profile.then(KernelTimes::default),
        place,
        args,
        output,
    };
    driver.run(run)
}

/// Returns the chosen number of steps between evaluations, where there is something to evaluate on.
fn chosen_interval(run: &Run) -> Option<u64> {
    let chosen = run
        .chosen
        .iter()
        .find(|chosen| chosen.setting == EVAL_EVERY)?;
    chosen.value.as_u64()
}

/// Prints the settings that were chosen, with the reasons.
fn tell_chosen(chosen: &[ChosenSetting], output: &Output) -> Result<()> {
    if chosen.is_empty() {
        return Ok(());
    }
    output.line(&json!({ "chosen": chosen }), || {
        let lines = chosen.iter().map(|chosen| {
            let ChosenSetting {
                setting,
                value,
                reason,
            } = chosen;
            format!("\n  {setting} {value}: {reason}")
        });
        format!(
            "Chosen, since no --learning-rate is given:{}",
            lines.collect::<String>()
        )
    })
}

/// Returns an upper bound in bytes for the run's largest checkpoint, estimated from a checkpoint of its current step.
fn largest_checkpoint(trainer: &Trainer, stream: &FileStream) -> Result<u64> {
    /// Size of a later manifest and the headers together, in first manifests: the weights once, and up to three states of each.
    const RECORDS: u64 = 5;
    let plan = memory_plan(trainer.model().config(), trainer.config(), None, false)?;
    let now = stream.files().iter().map(|file| file.bytes).sum();
    let tensors = (plan.weights - plan.base + plan.optimizer).max(now);
    if trainer.progress().completed_steps > 0 {
        return Ok(tensors);
    }
    // Some optimizers create their state with the first step.
    let manifest = stream
        .files()
        .iter()
        .filter(|file| file.name == MANIFEST)
        .map(|file| file.bytes)
        .sum::<u64>();
    Ok(tensors + RECORDS * manifest)
}

/// Prints the tensors that APOLLO leaves to AdamW, if there are any; programs get the complete list.
fn tell_fallbacks(names: &[&str], output: &Output) -> Result<()> {
    const SHOWN: usize = 3;
    if names.is_empty() {
        return Ok(());
    }
    output.line(&json!({ "fallbacks": names }), || {
        let more = if names.len() > SHOWN {
            format!(" and {} more", names.len() - SHOWN)
        } else {
            String::new()
        };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        format!(
            "APOLLO leaves {} tensors to AdamW: {shown}{more}",
            names.len()
        )
    })
}
