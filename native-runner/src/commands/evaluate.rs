//! `tabtune evaluate`: mean loss and accuracy on a text, in windows that do not overlap, or on rows.

use serde_json::json;
use tabtune::Error;
use tabtune::data::{Batch, Dataset, no_document_ends};
use tabtune::interrupt::Interrupt;

use super::{Outcome, load_apart, open_apart, open_device, tokenizer_of};
use crate::args::EvaluateArgs;
use crate::data::{DataFiles, unused_on};
use crate::error::Result;
use crate::output::{Output, warning_line};
use crate::settings;
use crate::waits::block_on;

/// Maximum window length in tokens of a text by default.
const DEFAULT_WINDOW: usize = 512;

/// Prints mean loss, perplexity, accuracy and the number of counted tokens.
///
/// # Errors
/// Errors of opening the model and reading the data; windows beyond the model's context; texts of fewer than two tokens.
pub fn run(args: &EvaluateArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_apart(&args.model, &args.apart)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    let settings = settings::dated(
        settings::resolve(args.reading.given.clone(), None)?,
        Some(tokenizer),
    )
    .data_settings();
    let mut dataset = DataFiles::of(&args.data.data)?.read(Ok(tokenizer), &settings)?;
    let document_ends = args.document_mask.then(|| tokenizer.eos());
    if document_ends.is_some_and(<[u32]>::is_empty) {
        return Err(Error::InvalidConfig(vec![no_document_ends()]).into());
    }
    dataset.mask_documents(args.document_mask)?;
    let context = bundle.config.max_position_embeddings;
    // Rows are read as by a run with this `seq_len`, and the token after the last one read is predicted too.
    let next = usize::from(dataset.has_examples());
    let given = args.seq_len.map(|n| {
        usize::try_from(n)
            .unwrap_or(usize::MAX)
            .saturating_add(next)
    });
    let most = args
        .max_tokens
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let default = if dataset.has_examples() {
        context + 1
    } else {
        context.min(DEFAULT_WINDOW)
    };
    let window = given.unwrap_or(default);
    // The window's first token is not predicted, and its last token is not read.
    if window - 1 > context {
        return Err(Error::ContextExceeded {
            found: window - 1,
            max: context,
        }
        .into());
    }
    for warning in dataset.evaluation_warnings(window.saturating_sub(1)) {
        output.line(&json!({ "warning": warning }), || {
            warning_line(&warning.sentence(dataset.files()), warning.code)
        })?;
    }
    if let Some(unused) = unused_on(&dataset, &args.reading.given) {
        output.line(&json!({ "warning": unused }), || {
            warning_line(&unused.message, unused.code)
        })?;
    }
    let batches: Box<dyn Iterator<Item = tabtune::Result<Batch>>> = match dataset.stream_len() {
        Some(ids) => {
            let ids = ids.min(most.unwrap_or(ids));
            if ids < 2 {
                return Err(Error::DataTooShort { need: 2, have: ids }.into());
            }
            Box::new(windows(&dataset, ids, window, document_ends))
        }
        None => Box::new(dataset.evaluation_batches(
            usize::try_from(args.batch_size).unwrap_or(usize::MAX),
            window,
            most,
        )),
    };
    let model = load_apart(&bundle, &args.apart, &open_device(args.device)?)?;
    let report = block_on(tabtune::train::evaluate(
        &model,
        batches,
        &Interrupt::none(),
    ))?;
    output.line(&report, || {
        let perplexity = report.perplexity.map_or_else(
            || "beyond the numbers of f64".to_string(),
            |perplexity| format!("{perplexity:.3}"),
        );
        let accuracy = 100.0 * report.accuracy;
        format!(
            "loss {:.5} nats, perplexity {perplexity}, accuracy {accuracy:.2} %, over {} tokens",
            report.loss, report.tokens
        )
    })?;
    Ok(Outcome::Good)
}

/// Makes one batch per window of `window` tokens. The last may be shorter, but a single token has nothing to predict.
fn windows(
    data: &Dataset,
    ids: usize,
    window: usize,
    ends: Option<&[u32]>,
) -> impl Iterator<Item = tabtune::Result<Batch>> {
    (0..ids - 1).step_by(window).map(move |start| {
        let ids = data.ids(start..ids.min(start + window))?;
        let as_i32 = |ids: &[u32]| ids.iter().map(|&id| id as i32).collect::<Vec<_>>();
        let seq_len = ids.len() - 1;
        let (inputs, targets) = (as_i32(&ids[..seq_len]), as_i32(&ids[1..]));
        let mut batch = Batch {
            inputs,
            targets,
            batch_size: 1,
            seq_len,
            document_starts: None,
        };
        if let Some(ends) = ends {
            batch.mask_documents(ends);
        }
        Ok(batch)
    })
}
