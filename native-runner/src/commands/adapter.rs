//! `tabtune adapter`: what can be done with a LoRA adapter of PEFT.

use super::{Outcome, convert};
use crate::args::{AdapterAction, AdapterArgs, RequestArgs};
use crate::error::Result;
use crate::output::Output;

/// Merges the adapter into its base.
pub fn run(args: &AdapterArgs, output: &Output) -> Result<Outcome> {
    let AdapterAction::Merge { model, adapter, output: to } = &args.action;
    convert::convert(model, Some(adapter), &RequestArgs::default(), to, output)
}
