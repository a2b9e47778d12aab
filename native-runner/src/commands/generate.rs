//! `tabtune generate`: continues a text.

use serde_json::json;
use tabtune::generate::{End, GenerateConfig, Generator};

use super::{Outcome, load_apart, log_warnings, open_apart, open_device, tokenizer_of};
use crate::args::GenerateArgs;
use crate::error::Result;
use crate::output::Output;
use crate::waits::block_on;

/// Prints each token as it is generated.
///
/// # Errors
/// Errors of the model, its tokenizer and the sampling options.
pub fn run(args: &GenerateArgs, output: &Output) -> Result<Outcome> {
    let bundle = open_apart(&args.model, &args.apart)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    let config = GenerateConfig::from(&args.sampling);
    for option in args.sampling.idle() {
        log::warn!(
            "{option} has no effect with --temperature 0, which takes the most likely token"
        );
    }
    config.validate()?;
    let model = load_apart(&bundle, &args.apart, &open_device(args.device)?)?;
    let mut generator = Generator::new(&model, tokenizer, &args.prompt, config)?;
    log_warnings(&generator.warnings());
    output.fragment(&args.prompt)?;
    while let Some(token) = block_on(generator.next(&model, tokenizer))? {
        output.json_line(&token)?;
        output.fragment(&token.text)?;
        if args.sampling.top_logprobs > 0 {
            let top: Vec<String> = token
                .top
                .iter()
                .map(|t| format!("{:?} {:.4}", t.text, t.prob))
                .collect();
            output.fragment(&format!("    [{}]\n", top.join(", ")))?;
        }
    }
    output.fragment("\n")?;
    if let Some(end) = generator.ended() {
        output.json_line(&json!({ "end": end }))?;
        if end == End::Context {
            log::warn!(
                "the text ends where the model's context of {} tokens is full",
                model.config().max_position_embeddings
            );
        }
    }
    Ok(Outcome::Good)
}
