//! Refuses options of `tabtune train` that would do nothing.

use crate::args::{DeviceName, TrainArgs};
use crate::error::{Result, RunError};

/// Refuses options without the one that they belong to. clap would accept some of them: it no longer requires an option that contradicts
/// another one.
///
/// # Errors
/// `cli.usage` for the first of them.
pub(super) fn refuse(args: &TrainArgs) -> Result<()> {
    let new = args.model.is_some() && args.resume.is_none();
    let of_state = args.state.is_some();
    let options = [
        (
            "--adapter",
            args.adapter.is_some(),
            new,
            "--model, whose adapter it is, in a new run",
        ),
        (
            "--merge-adapter",
            args.merge_adapter.is_some(),
            new,
            "--model, whose adapter it is, in a new run",
        ),
        (
            "--tokenizer",
            args.tokenizer.is_some(),
            args.config.is_some(),
            "--config, whose tokenizer it is, in a new run",
        ),
        (
            "--chat-template",
            args.chat_template.is_some(),
            new,
            "--model, whose template it replaces, in a new run",
        ),
        (
            "--resize-vocabulary",
            args.resize_vocabulary,
            args.merge_adapter.is_some(),
            "--merge-adapter",
        ),
        (
            "--allow-non-finite",
            args.allow_non_finite,
            new || of_state,
            "--model or --state, whose weights it is about, in a new run",
        ),
        (
            "--override",
            !args.overrides.is_empty(),
            args.resume.is_some() || of_state,
            "--resume or --state, whose settings it changes",
        ),
        (
            "--verify",
            args.verify.is_some(),
            args.resume.is_some() && args.model.is_some(),
            "--resume and --model, the base of its adapter",
        ),
        (
            "--profile",
            args.profile,
            args.device != DeviceName::Cpu,
            "--device wgpu: the CPU launches no kernels",
        ),
    ];
    match options
        .into_iter()
        .find(|(_, given, allowed, _)| *given && !allowed)
    {
        Some((option, .., other)) => Err(RunError::Usage(format!("{option} goes with {other}"))),
        None => Ok(()),
    }
}
