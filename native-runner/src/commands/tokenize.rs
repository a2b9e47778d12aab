//! `tabtune tokenize`: token ids of a text.

use serde_json::json;

use super::{Outcome, tokenizer_of};
use crate::args::TokenizeArgs;
use crate::error::Result;
use crate::files::open_model;
use crate::output::Output;

/// Prints the ids. Special tokens are recognised in the text, none are added.
pub fn run(args: &TokenizeArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_model(&args.model)?;
    let ids = tokenizer_of(&bundle, &args.model)?.encode(&args.text)?;
    output.line(&json!({ "ids": ids }), || ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))?;
    Ok(Outcome::Good)
}
