//! `tabtune train`: prepares a run from the options and trains it.

mod best;
mod device_losses;
mod driver;
mod idle;
mod loss;

use std::path::Path;
use std::rc::Rc;

use futures_lite::future;
use serde_json::{Map, Value, json};
use tabtune::bundle::{Bundle, FileStream, ModelAssets};
use tabtune::checkpoint::{Base, Environment, MANIFEST, Origin};
use tabtune::config::{DataSettings, ModelConfig, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::gpu::launch;
use tabtune::gpu::profile::KernelTimes;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, no_base};
use tabtune::state::VerifyPolicy;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{Notice, Trainer, check_limits, memory_plan};
use tabtune::word;

use self::best::Best;
use self::device_losses::Losses;
use self::driver::Driver;
use super::{Outcome, open_device, outgoing, tokenizer_of};
use crate::args::{TrainArgs, Verify};
use crate::data::{DataFiles, read_both, unused_on};
use crate::error::{Result, RunError};
use crate::files::{Wanted, is_same, open_checkpoint, open_wanted};
use crate::output::{Output, warning_line};
use crate::place::Folder;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::waits::{self, block_on};
use crate::{scratch, settings};

/// A trainer with its device, and the documents that are saved with its weights.
struct Run {
    trainer: Trainer,
    device: Device,
    assets: ModelAssets,
    origin: Origin,
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
    let place = args.out.as_deref().map(Folder::for_checkpoints).transpose()?;
    if let (Some(place), Some(best)) = (&place, &args.keep_best)
        && is_same(place.path(), best)
    {
        return Err(RunError::Usage(format!("--keep-best: expected another folder than that of --out, found {}", best.display())));
    }
    let mut best = args.keep_best.as_deref().map(|path| Best::claim(path, args.resume.is_some())).transpose()?;
    for place in place.iter().chain(best.as_ref().map(Best::place)) {
        let inputs = [("--model", &args.model), ("--adapter", &args.adapter), ("--merge-adapter", &args.merge_adapter)];
        for (option, input) in inputs.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))) {
            place.check_input(option, input)?;
        }
    }
    let mut run = prepare(args, None, output)?;
    if let Some(best) = &mut best {
        best.continue_with(&run)?;
    }
    if args.eval_every.is_some() {
        run.trainer.check_evaluation()?;
    } else if !args.validation_data.is_empty() || run.trainer.config().validation_fraction > 0.0 {
        let part = if args.validation_data.is_empty() { "the part that --validation-fraction keeps" } else { "--validation-data" };
        run.trainer.add_notices(vec![Notice::told(word!("data.validation.unused"), [part, "--eval-every", ""])]);
    }
    let unused = unused_on(run.trainer.dataset(), &args.settings.given);
    run.trainer.add_notices(Vec::from_iter(unused));
    for place in place.iter().chain(best.as_ref().map(Best::place)) {
        let stream = tabtune::checkpoint::write(&run.trainer, &run.assets, &run.origin)?;
        place.check_room(&stream, largest_checkpoint(&run.trainer, &stream)?)?;
    }
    tell_fallbacks(&run.trainer.optim().fallbacks(), output)?;
    for notice in run.trainer.notices() {
        output.line(&json!({ "warning": notice }), || warning_line(&notice.message, notice.code))?;
    }
    if run.trainer.config().gradient_release && args.out.is_some() && args.save_every.is_none() {
        let found = "with gradient release, a gradient that is not finite ends the run at its last save. Set --save-every too";
        let Notice { code, message, .. } = Notice::told(word!("run.unprotected"), ["", "", found]);
        output.line(&json!({ "warning": { "code": code, "message": message } }), || warning_line(&message, code))?;
    }
    let (total, first) = (run.trainer.config().steps, run.step());
    if let Some(stop) = args.stop_at.filter(|stop| *stop > total) {
        return Err(RunError::Usage(format!("--stop-at {stop}: expected a step of the run, whose last one is {total}")));
    }
    let driver = Driver {
        last: args.stop_at.map_or(total, |step| step.min(total)),
        first,
        told: first,
        evaluated: None,
        saved: None,
        losses: Losses::default(),
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
    let manifest = stream.files().iter().filter(|file| file.name == MANIFEST).map(|file| file.bytes).sum::<u64>();
    Ok(tensors + RECORDS * manifest)
}

/// Prints the tensors that APOLLO leaves to AdamW, if there are any; programs get the complete list.
fn tell_fallbacks(names: &[&str], output: &Output) -> Result<()> {
    const SHOWN: usize = 3;
    if names.is_empty() {
        return Ok(());
    }
    output.line(&json!({ "fallbacks": names }), || {
        let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        format!("APOLLO leaves {} tensors to AdamW: {shown}{more}", names.len())
    })
}

/// Prepares a run from the options; after a loss with the data and in place of the device of the lost run.
fn prepare(args: &TrainArgs, kept: Option<&Kept>, output: &Output) -> Result<Run> {
    let given = settings::given(&args.settings)?;
    let data = Data { training: DataFiles::of(&args.data.data)?, validation: DataFiles::of(&args.validation_data)?, kept };
    let mut run = match (&args.resume, &args.model, &args.config) {
        (Some(folder), ..) => resume(args, folder, given, &data),
        (_, Some(path), _) => fine_tune(args, path, settings::resolve(given, None)?, &data, output),
        (.., Some(path)) => from_scratch(args, path, settings::resolve(given, None)?, &data),
        _ => Err(RunError::Usage("expected --model, --config or --resume".into())),
    }?;
    run.trainer.pace();
    run.trainer.record_steps();
    Ok(run)
}

/// Data files of a run, and what it takes over from a lost one.
struct Data<'a> {
    training: DataFiles,
    validation: DataFiles,
    kept: Option<&'a Kept>,
}

impl Data<'_> {
    /// Reads the training data and the separate evaluation data, if there is any; after a loss they are kept. Token ids need no tokenizer.
    fn set(&self, tokenizer: Result<&Tokenizer>, settings: &DataSettings) -> Result<Dataset> {
        if let Some(kept) = self.kept {
            return Ok(kept.data.clone());
        }
        read_both(&self.training, &self.validation, tokenizer, settings)
    }

    /// Opens the device and checks that it can hold each tensor of such a model.
    fn device(&self, args: &TrainArgs, model: &ModelConfig, train: &TrainConfig, base: Option<&Bundle>) -> Result<Device> {
        if let Some(lost) = self.kept {
            let device = future::block_on(lost.device.reopen())?;
            waits::forget();
            return Ok(device);
        }
        let device = open_device(args.device)?;
        if args.as_gpu {
            launch::set_software(&device.inner(), false);
        }
        check_limits(model, train, base, device.info().limits)?;
        Ok(device)
    }
}

fn resume(args: &TrainArgs, folder: &Path, mut given: Map<String, Value>, data: &Data<'_>) -> Result<Run> {
    let checkpoint = open_checkpoint(
        folder,
        args.model.as_slice(),
        if args.verify == Some(Verify::Header) { VerifyPolicy::Header } else { VerifyPolicy::Full },
    )?;
    if args.model.is_some() && checkpoint.manifest().train.adapter.is_none() {
        return Err(RunError::Usage("--model with --resume: expected the checkpoint of an adapter, which needs its base".into()));
    }
    let epochs = given.contains_key("epochs");
    if args.settings.more_steps {
        let (made, more) = (checkpoint.manifest().progress.completed_steps, given["steps"].as_u64().expect("an integer"));
        given.insert("steps".into(), made.saturating_add(more).into());
    }
    let mut config = settings::resolve(given.clone(), Some(&checkpoint.manifest().train))?;
    let dataset = data.set(tokenizer_of(checkpoint.bundle(), folder), &config.data_settings_of_resume(&given))?;
    if epochs {
        config = config.with_steps_of(&dataset)?;
    }
    let device = data.device(args, &checkpoint.manifest().model, &config, Some(checkpoint.bundle()))?;
    let mut trainer = block_on(checkpoint.resume(dataset, Some(config), &args.overrides, &device.inner(), &Interrupt::none()))?;
    let environment = Environment::on(&device.inner(), &device.info().adapter);
    trainer.add_notices(Vec::from_iter(checkpoint.other_environment(&environment)));
    let origin = Origin { environment, base: checkpoint.manifest().base.clone() };
    let assets = ModelAssets::of_bundle(checkpoint.bundle()).with_ends(trainer.dataset().turn_ends());
    Ok(Run { trainer, device, assets, origin })
}

fn fine_tune(args: &TrainArgs, path: &Path, config: TrainConfig, data: &Data<'_>, output: &Output) -> Result<Run> {
    let (adapter, apart) = (args.adapter.as_deref().or(args.merge_adapter.as_deref()), args.adapter.is_some());
    let bundle =
        open_wanted(path, Wanted { adapter, apart, exact: !apart, resize_vocabulary: args.resize_vocabulary, ..Wanted::default() })?;
    let bundle = Rc::new(bundle);
    let given = settings::given(&args.settings)?;
    let config = settings::dated(settings::with_files_of_adapter(config, &given, &bundle)?, bundle.tokenizer.as_ref());
    let dataset = data.set(tokenizer_of(&bundle, path), &config.data_settings())?;
    let config = config.settled_for(&dataset, &given, bundle.config.max_position_embeddings)?;
    let device = data.device(args, &bundle.config, &config, Some(&bundle))?;
    let survived = args.merge_adapter.as_ref().map(|_| outgoing::survival_in(&bundle, config.precision)).transpose()?.flatten();
    if let Some(told) = survived.filter(|_| data.kept.is_none()) {
        output.line(&json!({ "survival": told }), || told.to_string())?;
    }
    let model = block_on(Model::for_run(&bundle, &config, &device.inner(), &Interrupt::none()))?;
    if !args.allow_non_finite {
        model.check_finite()?;
    }
    let origin = Origin { environment: Environment::on(&device.inner(), &device.info().adapter), base: Some(base_of(&bundle, &config)?) };
    let assets = ModelAssets::of_bundle(&bundle).with_ends(dataset.turn_ends());
    Ok(Run { trainer: Trainer::new(model, dataset, config)?, device, assets, origin })
}

/// Describes the files of a run's base. The checkpoints of an adapter do not contain the base, so they name every piece of it.
fn base_of(bundle: &Bundle, config: &TrainConfig) -> Result<Base> {
    let base = Base::of_bundle(bundle);
    Ok(if config.adapter.is_some() { base.pieced(bundle)? } else { base })
}

fn from_scratch(args: &TrainArgs, path: &Path, config: TrainConfig, data: &Data<'_>) -> Result<Run> {
    let characters = block_on(Dataset::characters(&data.training.and(&data.validation), &config.data_settings(), &Interrupt::none()))?;
    let (shape, tokenizer) = scratch::plan(path, &characters)?;
    let dataset = data.set(Ok(&tokenizer), &config.data_settings())?;
    let config = config.settled_for(&dataset, &settings::given(&args.settings)?, shape.max_position_embeddings)?;
    if config.adapter.is_some() {
        return Err(no_base().into());
    }
    let device = data.device(args, &shape, &config, None)?;
    let model = block_on(Model::init(&shape, config.seed, config.precision, &device.inner(), &Interrupt::none()))?;
    let origin = Origin { environment: Environment::on(&device.inner(), &device.info().adapter), base: None };
    let assets = ModelAssets::of_config(&shape, Some(tokenizer));
    Ok(Run { trainer: Trainer::new(model, dataset, config)?, device, assets, origin })
}
