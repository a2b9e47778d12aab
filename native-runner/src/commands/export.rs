//! `tabtune export`: weights of a checkpoint for other programs.

use serde_json::json;

use super::{Outcome, load_model, open_device};
use crate::args::{DeviceName, ExportArgs, ExportFormat};
use crate::error::Result;
use crate::files::{file_name, open_model};
use crate::output::Output;
use crate::writer::{check_place, write_folder};

/// Writes the folder and prints its files.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    check_place(&args.to, None)?;
    todo!()
}
