//! `tabtune tokenize` and `detokenize`: token ids of a text, and the text of token ids.

use serde_json::json;

use super::{Outcome, log_warnings, tokenizer_of};
use crate::args::{DetokenizeArgs, TokenizeArgs};
use crate::error::Result;
use crate::files::open_model;
use crate::output::Output;

/// Prints the token ids of a text. Special tokens in the text are recognised; none are added.
///
/// # Errors
/// Errors of opening the model, and `cli.usage` if it has no tokenizer.
pub fn run(args: &TokenizeArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_model(&args.model)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    let ids = tokenizer.encode(&args.text)?;
    log_warnings(&tokenizer.findings(&args.text, &ids)?.warnings());
    output.line(&json!({ "ids": ids }), || {
        ids.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    })?;
    Ok(Outcome::Good)
}

/// Prints the text of token ids, including special tokens.
///
/// # Errors
/// As for [`run`], and ids outside the vocabulary.
pub fn back(args: &DetokenizeArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_model(&args.model)?;
    let text = tokenizer_of(&bundle, &args.model)?.detokenize(&args.ids)?;
    output.line(&json!({ "text": text }), || text.clone())?;
    Ok(Outcome::Good)
}
