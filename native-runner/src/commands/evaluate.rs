//! `tabtune evaluate`: mean loss of a text in non-overlapping windows.

use futures_lite::future::block_on;
use tabtune::Error;
use tabtune::data::{Batch, no_document_ends};
use tabtune::interrupt::Interrupt;

use super::{Outcome, load_apart, open_apart, open_device, tokenizer_of};
use crate::args::EvaluateArgs;
use crate::error::Result;
use crate::files::read_file;
use crate::output::Output;

/// Maximum window by default.
const DEFAULT_WINDOW: usize = 512;

/// Prints mean loss, perplexity and the number of counted tokens.
pub fn run(args: &EvaluateArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_apart(&args.model, &args.apart)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    let bytes = read_file(&args.data)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| Error::DataNotUtf8 { byte_offset: e.valid_up_to() })?;
    let mut ids = tokenizer.encode(text)?;
    ids.truncate(args.max_tokens.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX)));
    if ids.len() < 2 {
        return Err(Error::DataTooShort { need: 2, have: ids.len() }.into());
    }
    let context = bundle.config.max_position_embeddings;
    let window = args.seq_len.map_or(context.min(DEFAULT_WINDOW), |n| usize::try_from(n).unwrap_or(usize::MAX));
    // The window's first token is not predicted, its last is not read.
    if window - 1 > context {
        return Err(Error::ContextExceeded { found: window - 1, max: context }.into());
    }
    let document_ends = args.document_mask.then(|| tokenizer.eos());
    if document_ends.is_some_and(<[u32]>::is_empty) {
        return Err(Error::InvalidConfig(vec![no_document_ends()]).into());
    }
    let model = load_apart(&bundle, &args.apart, &open_device(args.device)?)?;
    let report = block_on(tabtune::train::evaluate(&model, windows(&ids, window, document_ends), &Interrupt::none()))?;
    output.line(&report, || {
        let perplexity = report.perplexity.map_or_else(|| "beyond the numbers of f64".to_string(), |perplexity| format!("{perplexity:.3}"));
        format!("loss {:.5} nats, perplexity {perplexity}, over {} tokens", report.loss, report.tokens)
    })?;
    Ok(Outcome::Good)
}

/// One batch per window of `window` tokens; the last may be shorter, but a single token has nothing to predict.
fn windows(ids: &[u32], window: usize, document_ends: Option<&[u32]>) -> impl Iterator<Item = Batch> {
    ids.chunks(window).filter(|ids| ids.len() > 1).map(move |ids| {
        let as_i32 = |ids: &[u32]| ids.iter().map(|&id| id as i32).collect::<Vec<_>>();
        let seq_len = ids.len() - 1;
        let (inputs, targets) = (as_i32(&ids[..seq_len]), as_i32(&ids[1..]));
        let mut batch = Batch { inputs, targets, batch_size: 1, seq_len, document_starts: None };
        if let Some(ends) = document_ends {
            batch.mask_documents(ends);
        }
        batch
    })
}
