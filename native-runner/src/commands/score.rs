//! `tabtune score`: the probability of each token of a text.

use std::path::Path;

use serde_json::json;
use tabtune::generate::score::{ScoreConfig, ScoredToken, score};
use tabtune::interrupt::Interrupt;
use tabtune::tokenizer::Conversation;

use super::{Outcome, load_apart, log_warnings, open_apart, open_device, tokenizer_of};
use crate::args::ScoreArgs;
use crate::error::Result;
use crate::files::read_json;
use crate::output::Output;
use crate::settings;
use crate::waits::block_on;

/// Prints a line for each token, and the mean loss at the end.
///
/// # Errors
/// Errors of the model, its tokenizer and its chat template; `cli.json` for `--messages`.
pub fn run(args: &ScoreArgs, output: &Output) -> Result<Outcome> {
    let conversation = args.messages.as_deref().map(conversation).transpose()?;
    let bundle = open_apart(&args.model, &args.apart)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    let dated = |conversation: Conversation| Conversation {
        date: settings::today(Some(tokenizer)),
        ..conversation
    };
    let (ids, findings) = match conversation {
        Some(conversation) => tokenizer.encode_chat(&dated(conversation), args.generation)?,
        None => tokenizer.encode_text(args.text.as_deref().unwrap_or_default())?,
    };
    log_warnings(&findings.warnings());
    let model = load_apart(&bundle, &args.apart, &open_device(args.device)?)?;
    let scored = block_on(score(
        &model,
        tokenizer,
        &ids,
        &ScoreConfig { top: args.top },
        &Interrupt::none(),
    ))?;
    for token in &scored.tokens {
        output.line(token, || line(token))?;
    }
    output.line(
        &json!({ "loss": scored.loss, "tokens": scored.tokens.len() - 1 }),
        || match scored.loss {
            Some(loss) => format!(
                "loss {loss:.5} nats over {} tokens",
                scored.tokens.len() - 1
            ),
            None => "one token, which nothing comes before".to_owned(),
        },
    )?;
    Ok(Outcome::Good)
}

fn conversation(path: &Path) -> Result<Conversation> {
    Ok(Conversation::from_json(&read_json(path)?)?)
}

/// Formats a token for people: id, text, natural logarithm of its probability, rank, alternatives.
fn line(token: &ScoredToken) -> String {
    let (Some(logprob), Some(rank)) = (token.logprob, token.rank) else {
        return format!("{:>7} {:?}", token.id, token.text);
    };
    let top: Vec<String> = token
        .top
        .iter()
        .map(|t| format!("{:?} {:.4}", t.text, t.prob))
        .collect();
    let alternatives = if top.is_empty() {
        String::new()
    } else {
        format!("  [{}]", top.join(", "))
    };
    format!(
        "{:>7} {:?}  {logprob:.5}  rank {rank}{alternatives}",
        token.id, token.text
    )
}
