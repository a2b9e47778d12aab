//! The start of a run: from a checkpoint, from a model, or from scratch; after a loss of the device again.

use std::path::Path;
use std::rc::Rc;

use futures_lite::future;
use serde_json::{Map, Value, json};
use tabtune::bundle::{Bundle, ModelAssets};
use tabtune::checkpoint::{Base, Environment, Origin};
use tabtune::config::{Beginning, Choices, DataSettings, EVAL_EVERY, ModelConfig, TrainConfig};
use tabtune::data::{Dataset, characters};
use tabtune::device::Device;
use tabtune::gpu::launch;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, no_base};
use tabtune::portable::{RunState, is_bare_state};
use tabtune::state::VerifyPolicy;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{Trainer, check_limits};

use super::super::{open_device, outgoing, tokenizer_of};
use super::{Kept, Run};
use crate::args::{TrainArgs, Verify};
use crate::data::{DataFiles, read_both};
use crate::error::{Result, RunError};
use crate::files::{Wanted, chat_template, open_checkpoint, open_wanted, read_file, run_sources};
use crate::output::Output;
use crate::waits::{self, block_on};
use crate::{scratch, settings};

/// Prepares a run from the options; after a loss with the data and in place of the device of the lost run.
pub(super) fn prepare(args: &TrainArgs, kept: Option<&Kept>, output: &Output) -> Result<Run> {
    let given = settings::given(&args.settings)?;
    let data = Data {
        training: DataFiles::of(&args.data.data)?,
        validation: DataFiles::of(&args.validation_data)?,
        kept,
    };
    // A state with a configuration is the model, too.
    let model = args.model.as_deref().or(args.state.as_deref());
    let mut run = match (&args.resume, model, &args.config) {
        (Some(folder), ..) => resume(args, folder, given, &data),
        (_, Some(path), _) => fine_tune(args, path, given, &data, output),
        (.., Some(path)) => from_scratch(args, path, settings::resolve(given, None)?, &data),
        _ => Err(RunError::Usage(
            "expected --model, --config, --resume or --state".into(),
        )),
    }?;
    if args.eval_every.is_some() {
        run.chosen.retain(|chosen| chosen.setting != EVAL_EVERY);
    }
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

    /// Chooses settings for a new run, if it has `[fresh weights, no state]`.
    fn choices(
        &self,
        config: TrainConfig,
        given: &Map<String, Value>,
        model: &ModelConfig,
        [fresh, chooses]: [bool; 2],
    ) -> Result<(TrainConfig, Choices)> {
        let beginning = Beginning {
            model,
            fresh,
            chooses,
            evaluates_apart: !self.validation.is_empty(),
        };
        Ok(Choices::begin(config, given, beginning)?)
    }

    /// Opens the device and checks that it can hold each tensor of such a model.
    fn device(
        &self,
        args: &TrainArgs,
        model: &ModelConfig,
        train: &TrainConfig,
        base: Option<&Bundle>,
    ) -> Result<Device> {
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

fn resume(
    args: &TrainArgs,
    folder: &Path,
    mut given: Map<String, Value>,
    data: &Data<'_>,
) -> Result<Run> {
    let checkpoint = open_checkpoint(
        folder,
        args.model.as_slice(),
        if args.verify == Some(Verify::Header) {
            VerifyPolicy::Header
        } else {
            VerifyPolicy::Full
        },
    )?;
    if args.model.is_some() && checkpoint.manifest().train.adapter.is_none() {
        return Err(RunError::Usage(
            "--model with --resume: expected the checkpoint of an adapter, which needs its base"
                .into(),
        ));
    }
    let epochs = given.contains_key("epochs");
    if args.settings.more_steps {
        let (made, more) = (
            checkpoint.manifest().progress.completed_steps,
            given["steps"].as_u64().expect("an integer"),
        );
        given.insert("steps".into(), made.saturating_add(more).into());
    }
    let mut config = settings::resolve(given.clone(), Some(&checkpoint.manifest().train))?;
    let dataset = data.set(
        tokenizer_of(checkpoint.bundle(), folder),
        &config.data_settings_of_resume(&given),
    )?;
    if epochs {
        config = config.with_steps_of(&dataset)?;
    }
    let device = data.device(
        args,
        &checkpoint.manifest().model,
        &config,
        Some(checkpoint.bundle()),
    )?;
    let mut trainer = block_on(checkpoint.resume(
        dataset,
        Some(config),
        &args.overrides,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    let environment = Environment::on(&device.inner(), &device.info().adapter);
    trainer.add_notices(Vec::from_iter(checkpoint.other_environment(&environment)));
    let origin = Origin {
        environment,
        base: checkpoint.manifest().base.clone(),
    };
    let assets =
        ModelAssets::of_bundle(checkpoint.bundle()).with_ends(trainer.dataset().turn_ends());
    Ok(Run {
        trainer,
        device,
        assets,
        origin,
        chosen: Vec::new(),
    })
}

fn fine_tune(
    args: &TrainArgs,
    path: &Path,
    mut given: Map<String, Value>,
    data: &Data<'_>,
    output: &Output,
) -> Result<Run> {
    // Impossible settings are refused before the model is opened.
    settings::resolve(given.clone(), None)?;
    let sources = args.state.as_deref().map(run_sources).transpose()?;
    if args.model.is_none() && sources.as_ref().is_some_and(is_bare_state) {
        return Err(RunError::Usage(format!(
            "--state {}: it has no configuration of a model: name the model with --model",
            path.display()
        )));
    }
    let (adapter, apart) = (
        args.adapter.as_deref().or(args.merge_adapter.as_deref()),
        args.adapter.is_some(),
    );
    let bundle = open_wanted(
        path,
        Wanted {
            adapter,
            apart,
            exact: !apart,
            resize_vocabulary: args.resize_vocabulary,
            chat_template: chat_template(args.chat_template.as_deref())?,
            ..Wanted::default()
        },
    )?;
    let state = match &sources {
        Some(sources) => Some(block_on(RunState::open(sources, Some(&bundle)))?),
        None => None,
    };
    if let (Some(state), true) = (&state, args.settings.more_steps) {
        let more = given["steps"].as_u64().expect("an integer");
        let steps = state.completed_steps().saturating_add(more);
        given.insert("steps".into(), steps.into());
    }
    let bundle = Rc::new(bundle);
    let config = settings::dated(
        settings::resolve_on(&bundle, given.clone())?,
        bundle.tokenizer.as_ref(),
    );
    let config = match &state {
        Some(state) => state.settings(&bundle, &config, &given, &args.overrides)?,
        None => config,
    };
    let (config, mut choices) =
        data.choices(config, &given, &bundle.config, [false, state.is_none()])?;
    let dataset = data.set(tokenizer_of(&bundle, path), &choices.data_settings(&config))?;
    let config = config.settled_for(&dataset, &mut choices)?;
    let device = data.device(args, &bundle.config, &config, Some(&bundle))?;
    if args.merge_adapter.is_some() {
        let survived = outgoing::survival_in(&bundle, config.precision)?;
        if let Some(told) = survived.filter(|_| data.kept.is_none()) {
            output.line(&json!({ "survival": told }), || told.to_string())?;
        }
    }
    let assets = ModelAssets::of_bundle(&bundle).with_ends(dataset.turn_ends());
    let base = base_of(&bundle, &config)?;
    let (inner, interrupt) = (device.inner(), Interrupt::none());
    let trainer = match &state {
        Some(state) => block_on(state.resume(
            &bundle,
            config,
            &args.overrides,
            dataset,
            &inner,
            &interrupt,
        ))?,
        None => {
            let model = block_on(Model::for_run(&bundle, &config, &inner, &interrupt))?;
            let mut trainer = Trainer::new(model, dataset, config)?;
            trainer.warn_of_repeats();
            trainer
        }
    };
    if !args.allow_non_finite {
        trainer.model().check_finite()?;
    }
    let origin = Origin {
        environment: Environment::on(&device.inner(), &device.info().adapter),
        base: Some(base),
    };
    Ok(Run {
        trainer,
        device,
        assets,
        origin,
        chosen: choices.list,
    })
}

/// Describes the files of a run's base. The checkpoints of an adapter do not contain the base, so they name every piece of it.
fn base_of(bundle: &Bundle, config: &TrainConfig) -> Result<Base> {
    let base = Base::of_bundle(bundle);
    Ok(if config.adapter.is_some() {
        base.pieced(bundle)?
    } else {
        base
    })
}

fn from_scratch(
    args: &TrainArgs,
    path: &Path,
    config: TrainConfig,
    data: &Data<'_>,
) -> Result<Run> {
    let tokenizer = match &args.tokenizer {
        Some(file) => Tokenizer::for_new_model(read_file(file)?)?,
        None => Tokenizer::characters(&block_on(characters(
            &data.training.and(&data.validation),
            &config.data_settings(),
            &Interrupt::none(),
        ))?)?,
    };
    let shape = scratch::plan(path, &tokenizer)?;
    let given = settings::given(&args.settings)?;
    let (config, mut choices) = data.choices(config, &given, &shape, [true, true])?;
    let dataset = data.set(Ok(&tokenizer), &choices.data_settings(&config))?;
    let config = config.settled_for(&dataset, &mut choices)?;
    if config.adapter.is_some() {
        return Err(no_base().into());
    }
    let device = data.device(args, &shape, &config, None)?;
    let model = block_on(Model::init(
        &shape,
        config.seed,
        config.precision,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    let origin = Origin {
        environment: Environment::on(&device.inner(), &device.info().adapter),
        base: None,
    };
    let assets = ModelAssets::of_config(&shape, Some(tokenizer));
    Ok(Run {
        trainer: Trainer::new(model, dataset, config)?,
        device,
        assets,
        origin,
        chosen: choices.list,
    })
}
