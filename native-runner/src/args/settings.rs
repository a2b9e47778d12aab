//! Options for the settings of a run. They are derived from the schema of `TrainConfig`: a setting that is added there has its option, with
//! its description, type and default.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value, json};
use tabtune::config::overlay;

use super::schema::{Kind, Setting, settings};

/// Settings that control how data is read, which commands without a run take too.
const READING: [&str; 5] = ["form", "columns", "on_bad_row", "loss_on", "chat_date"];

/// Settings that control how data is read, as a JSON object with keys of `TrainConfig`; those that no option gave are absent.
#[derive(Debug, Clone, Default)]
pub struct ReadingArgs {
    /// Settings that were given.
    pub given: Map<String, Value>,
}

/// Settings of a training run.
#[derive(Debug, Clone, Default)]
pub struct SettingsArgs {
    /// JSON file of settings, which the options override.
    pub train_config: Option<PathBuf>,
    /// True for `--steps +N`: N steps after those that the run has already made.
    pub more_steps: bool,
    /// Settings that options gave, without the file's.
    pub given: Map<String, Value>,
}

impl Args for ReadingArgs {
    fn augment_args(command: Command) -> Command {
        reading().fold(command, |command, setting| command.arg(option(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ReadingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            given: collect(reading(), matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("train_config").long("train-config").value_name("FILE").value_parser(value_parser!(PathBuf)).help(
            "JSON file of settings, such as those in recipes/, with the keys of TrainConfig (crate/SETTINGS.md). Options override it; a \
             setting in neither has its default or, with --resume, the value in the checkpoint",
        );
        let lora = Arg::new("lora")
            .long("lora")
            .action(ArgAction::SetTrue)
            .help("Train a LoRA adapter, by default with the settings below, and leave the model unchanged");
        settings()
            .iter()
            .fold(command.arg(file).arg(lora), |command, setting| {
                command.arg(option(setting))
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = collect(settings().iter(), matches);
        if matches.get_flag("lora") {
            given.entry("adapter").or_insert_with(|| json!({}));
        }
        let steps = matches
            .get_raw("steps")
            .and_then(|mut values| values.next());
        let more_steps = steps.is_some_and(|text| text.to_string_lossy().starts_with('+'));
        Ok(Self {
            train_config: matches.get_one("train_config").cloned(),
            more_steps,
            given,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn reading() -> impl Iterator<Item = &'static Setting> {
    settings()
        .iter()
        .filter(|setting| READING.contains(&setting.path[0].as_str()))
}

/// Makes the option of a setting. Its identifier is its name.
fn option(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.option.as_str())
        .long(setting.option.as_str())
        .help(setting.help.as_str())
        .help_heading(setting.heading);
    let arg = match setting.kind {
        Kind::Flag { .. } => arg.action(ArgAction::SetTrue),
        kind => arg
            .value_name(setting.placeholder)
            .value_parser(parser(kind)),
    };
    let arg = match setting.kind {
        Kind::Number | Kind::Signed => arg.allow_negative_numbers(true),
        Kind::Numbers => arg.value_delimiter(','),
        _ => arg,
    };
    let arg = setting
        .requires
        .iter()
        .fold(arg, |arg, other| arg.requires(*other));
    if setting.option == "epochs" {
        arg.conflicts_with("steps")
    } else {
        arg
    }
}

/// Returns the parser of an option's value, which is a value of JSON.
fn parser(kind: Kind) -> ValueParser {
    ValueParser::from(move |text: &str| -> Result<Value, String> {
        let integer = |text: &str| {
            text.parse::<u64>()
                .map(Value::from)
                .map_err(|error| error.to_string())
        };
        match kind {
            Kind::Steps => integer(text.strip_prefix('+').unwrap_or(text)),
            Kind::Integer => integer(text),
            Kind::Signed => text
                .parse::<i64>()
                .map(Value::from)
                .map_err(|error| error.to_string()),
            // JSON has neither NaN nor infinity, so they would become null in silence.
            Kind::Number if text == "null" => Ok(Value::Null),
            Kind::Number | Kind::Numbers => match text.parse::<f64>() {
                Ok(x) if x.is_finite() => Ok(json!(x)),
                Ok(x) => Err(format!("expected a finite number, found {x}")),
                Err(error) => Err(error.to_string()),
            },
            Kind::Names => Ok(module_names(text)),
            Kind::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
            Kind::Word => Ok(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
            Kind::Text | Kind::Flag { .. } => Ok(json!(text)),
        }
    })
}

/// Parses names: a list, or one text if it is `all-linear` or has a sign of a regular expression.
pub fn module_names(text: &str) -> Value {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ',');
    if text == "all-linear" || !text.chars().all(plain) {
        json!(text)
    } else {
        json!(text.split(',').collect::<Vec<_>>())
    }
}

/// Returns the values of the options that were given, each at the place of its setting.
fn collect(
    settings: impl Iterator<Item = &'static Setting>,
    matches: &ArgMatches,
) -> Map<String, Value> {
    let mut given = Map::new();
    for setting in settings {
        let option = setting.option.as_str();
        let value = match setting.kind {
            Kind::Flag { value } => matches.get_flag(option).then_some(Value::Bool(value)),
            Kind::Numbers => matches
                .get_many::<Value>(option)
                .map(|all| all.cloned().collect()),
            _ => matches.get_one::<Value>(option).cloned(),
        };
        let Some(value) = value else { continue };
        let (first, inner) = setting.path.split_first().expect("a setting has a key");
        let value = inner
            .iter()
            .rev()
            .fold(value, |value, key| json!({ key.as_str(): value }));
        let under = given.remove(first).unwrap_or(Value::Null);
        given.insert(first.clone(), overlay(under, value));
    }
    given
}
