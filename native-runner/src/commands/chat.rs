//! `tabtune chat`: a conversation with a model, formatted by its chat template.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use serde_json::{Value, json};
use tabtune::error::escaped;
use tabtune::generate::{End, GenerateConfig, Generator, Prefix};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::{Conversation, TextWarning, Tokenizer};

use super::{Outcome, load_apart, log_warnings, open_apart, open_device, tokenizer_of};
use crate::args::ChatArgs;
use crate::error::{Result, RunError, unreadable};
use crate::files::read_json;
use crate::output::Output;
use crate::settings;
use crate::waits::block_on;

/// A model that answers, with its own copy of the conversation.
struct Speaker<'a> {
    model: Model,
    tokenizer: &'a Tokenizer,
    /// Name of the speaker: `model`, `adapter` or `base`.
    name: &'static str,
    conversation: Conversation,
    prefix: Prefix,
    /// Warnings about the conversation so far.
    warned: Vec<TextWarning>,
}

/// Answers each message, and prints each token as it is generated.
///
/// # Errors
/// Errors of the model, its tokenizer and its chat template, `cli.json` for `--tools`, `source.read` for stdin.
pub fn run(args: &ChatArgs, output: &Output) -> Result<Outcome> {
    let config = GenerateConfig::from(&args.sampling);
    for option in args.sampling.idle() {
        log::warn!(
            "{option} has no effect with --temperature 0, which takes the most likely token"
        );
    }
    config.validate()?;
    let mut conversation = begun(args)?;
    let bundle = open_apart(&args.model, &args.apart)?;
    let tokenizer = tokenizer_of(&bundle, &args.model)?;
    if tokenizer.chat_template().is_none() && tokenizer.named_templates().is_empty() {
        let reason = format!(
            "{}: the model has no chat template: `generate` continues a text",
            args.model.display()
        );
        return Err(tabtune::Error::Template { reason }.into());
    }
    conversation.date = settings::today(Some(tokenizer));
    let model = load_apart(&bundle, &args.apart, &open_device(args.device)?)?;
    let base = if args.base {
        Some(block_on(
            model.without_adapter(&bundle, &Interrupt::none()),
        )?)
    } else {
        None
    };
    let speaker = |model, name| Speaker {
        model,
        tokenizer,
        name,
        conversation: conversation.clone(),
        prefix: Prefix::default(),
        warned: Vec::new(),
    };
    let mut speakers = vec![speaker(
        model,
        if args.apart.adapter.is_some() {
            "adapter"
        } else {
            "model"
        },
    )];
    speakers.extend(base.map(|model| speaker(model, "base")));
    let mut answer_all = |message: &str| -> Result<()> {
        let several = speakers.len() > 1;
        for speaker in &mut speakers {
            if several {
                output.fragment(&format!("[{}] ", speaker.name))?;
            }
            speaker.answer(message, &config, output)?;
        }
        Ok(())
    };
    for message in &args.message {
        output.fragment(&format!("> {}\n", escaped(message)))?;
        answer_all(message)?;
    }
    if args.message.is_empty() {
        let input = std::io::stdin();
        let asks = input.is_terminal();
        let mut lines = input.lock().lines();
        loop {
            output.fragment(if asks { "> " } else { "" })?;
            let Some(line) = lines.next() else { break };
            let line = line.map_err(|error| unreadable("stdin", error))?;
            if !line.trim().is_empty() {
                answer_all(&line)?;
            }
        }
    }
    Ok(Outcome::Good)
}

/// Returns the conversation before its first user message.
fn begun(args: &ChatArgs) -> Result<Conversation> {
    let system = args
        .system
        .iter()
        .map(|text| json!({"role": "system", "content": text}))
        .collect();
    let mut conversation = Conversation::new(system);
    if let Some(path) = &args.tools {
        conversation.set_tools(&tools(path)?)?;
    }
    Ok(conversation)
}

fn tools(path: &Path) -> Result<Value> {
    let wrong = |reason: String| RunError::Json {
        name: path.display().to_string(),
        reason,
    };
    match read_json(path)? {
        list @ Value::Array(_) => Ok(list),
        other => Err(wrong(format!(
            "expected a list of tools, found {}",
            tabtune::error::shown(&other.to_string())
        ))),
    }
}

impl Speaker<'_> {
    /// Answers `message`. Both the message and the answer become part of the conversation.
    fn answer(&mut self, message: &str, config: &GenerateConfig, output: &Output) -> Result<()> {
        self.conversation
            .messages
            .push(json!({"role": "user", "content": message}));
        let prefix = std::mem::take(&mut self.prefix);
        let mut generator = Generator::answer(
            &self.model,
            self.tokenizer,
            &self.conversation,
            config.clone(),
            prefix,
        )?;
        let warnings = generator.warnings();
        // Each turn repeats those of the turns before, and the base those of the adapter.
        if self.name != "base" && warnings != self.warned {
            log_warnings(&warnings);
            self.warned = warnings;
        }
        let (cached, computed) = generator.progress();
        let (mut text, mut tokens) = (String::new(), 0);
        while let Some(token) = block_on(generator.next(&self.model, self.tokenizer))? {
            output.json_line(&json!({ "by": self.name, "token": token }))?;
            output.fragment(&token.text)?;
            if config.top_logprobs > 0 {
                let top: Vec<String> = token
                    .top
                    .iter()
                    .map(|t| format!("{:?} {:.4}", t.text, t.prob))
                    .collect();
                output.fragment(&format!("    [{}]\n", top.join(", ")))?;
            }
            text.push_str(&token.text);
            tokens += 1;
        }
        output.fragment("\n")?;
        let end = generator.ended();
        let of_prompt = json!({ "cached": cached, "computed": computed });
        output.json_line(&json!({ "by": self.name, "answer": text, "end": end, "tokens": tokens, "prompt_tokens": of_prompt }))?;
        if end == Some(End::Context) {
            let context = self.model.config().max_position_embeddings;
            log::warn!("the answer ends where the model's context of {context} tokens is full");
        }
        self.conversation
            .messages
            .push(json!({"role": "assistant", "content": text}));
        self.prefix = generator.into_prefix();
        Ok(())
    }
}
