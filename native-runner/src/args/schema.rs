//! Settings that have an option, read from the schema of `TrainConfig`.

mod definitions;
mod help;

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use tabtune::config::TrainConfig;

use self::definitions::Schema;
use self::help::Options;

/// A setting that holds further ones.
struct Group {
    name: &'static str,
    /// Option that chooses it.
    option: &'static str,
    /// Beginning of the options of its settings.
    prefix: &'static str,
    /// Heading of its options in the help.
    heading: &'static str,
}

const GROUPS: [Group; 4] = [
    Group {
        name: "optimizer",
        option: "optimizer",
        prefix: "optimizer",
        heading: "Settings of the optimizer",
    },
    Group {
        name: "schedule",
        option: "schedule",
        prefix: "schedule",
        heading: "Settings of the schedule",
    },
    Group {
        name: "adapter",
        option: "lora",
        prefix: "lora",
        heading: "Settings of a LoRA adapter",
    },
    Group {
        name: "block_coordinate",
        option: "block-coordinate",
        prefix: "block",
        heading: "Settings of training by blocks",
    },
];

/// Heading of the other settings in the help.
const HEADING: &str = "Settings";

/// Settings with a shorter option than the one that follows from their place.
const SHORT: [([&str; 2], &str); 7] = [
    (["optimizer", "type"], "optimizer"),
    (["schedule", "type"], "schedule"),
    (["schedule", "warmup_steps"], "warmup-steps"),
    (["schedule", "min_learning_rate"], "min-learning-rate"),
    (["adapter", "target_modules"], "lora-targets"),
    (["adapter", "rslora"], "rslora"),
    (["block_coordinate", "blocks"], "block-coordinate"),
];

/// Form of the value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// None: the option sets the opposite of the default.
    Flag { value: bool },
    /// A number of steps, or `+N`.
    Steps,
    /// An integer of at least 0.
    Integer,
    /// An integer that may be negative.
    Signed,
    /// A finite number.
    Number,
    /// Finite numbers separated by commas.
    Numbers,
    /// A word or a text.
    Text,
    /// Names separated by commas, or a regular expression.
    Names,
    /// JSON.
    Json,
    /// JSON, or a word.
    Word,
}

/// A setting with an option.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Keys that lead to the setting.
    pub path: Vec<String>,
    /// Name of the option, without the dashes.
    pub option: String,
    /// Form of its value.
    pub kind: Kind,
    /// Placeholder of the value in the help.
    pub placeholder: &'static str,
    /// Description.
    pub help: String,
    /// Allowed words and default, as clap shows them after a description.
    pub notes: String,
    /// Heading in the help.
    pub heading: &'static str,
    /// Option without which this one has no meaning.
    pub requires: Option<&'static str>,
}

/// Returns true if the setting called `key` holds further ones.
pub fn has_settings(key: &str) -> bool {
    GROUPS.iter().any(|group| group.name == key)
}

/// Returns all settings that have an option, in the order of `TrainConfig`.
pub(super) fn settings() -> &'static [Setting] {
    static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
        let schema = SchemaSettings::default()
            .for_deserialize()
            .into_generator()
            .into_root_schema_for::<TrainConfig>()
            .to_value();
        let mut settings = Schema {
            definitions: &schema["$defs"],
        }
        .of_run(&schema["properties"]);
        let options = Options::of(&settings);
        settings.iter_mut().for_each(|setting| {
            setting.help = options.in_terminal(&setting.help, &setting.path[0]) + &setting.notes
        });
        settings
    });
    &SETTINGS
}

/// Returns the option by which this process was given the setting `key`; `None` if it was not given by one.
pub fn given_option(key: &str) -> Option<String> {
    let setting = settings()
        .iter()
        .find(|setting| setting.path.join(".") == key)?;
    let option = format!("--{}", setting.option);
    let is_given = |argument: String| argument.split('=').next() == Some(option.as_str());
    std::env::args_os()
        .filter_map(|argument| argument.into_string().ok())
        .any(is_given)
        .then_some(option)
}
