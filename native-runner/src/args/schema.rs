//! Settings that have an option, read from the schema of `TrainConfig`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use tabtune::config::TrainConfig;

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
    Group { name: "optimizer", option: "optimizer", prefix: "optimizer", heading: "Settings of the optimizer" },
    Group { name: "schedule", option: "schedule", prefix: "schedule", heading: "Settings of the schedule" },
    Group { name: "adapter", option: "lora", prefix: "lora", heading: "Settings of a LoRA adapter" },
    Group { name: "block_coordinate", option: "block-coordinate", prefix: "block", heading: "Settings of training by blocks" },
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
        let schema = SchemaSettings::default().for_deserialize().into_generator().into_root_schema_for::<TrainConfig>().to_value();
        let mut settings = Schema { definitions: &schema["$defs"] }.of_run(&schema["properties"]);
        let options = Options::of(&settings);
        settings.iter_mut().for_each(|setting| setting.help = options.in_terminal(&setting.help, &setting.path[0]) + &setting.notes);
        settings
    });
    &SETTINGS
}

/// Returns the option by which this process was given the setting `key`; `None` if it was not given by one.
pub fn given_option(key: &str) -> Option<String> {
    let setting = settings().iter().find(|setting| setting.path.join(".") == key)?;
    let option = format!("--{}", setting.option);
    let is_given = |argument: String| argument.split('=').next() == Some(option.as_str());
    std::env::args_os().filter_map(|argument| argument.into_string().ok()).any(is_given).then_some(option)
}

/// Returns the option's name of the setting at `path`.
fn option_name(path: &[&str]) -> String {
    let short = SHORT.iter().find(|(setting, _)| setting[..] == *path);
    let name = match (short, path) {
        (Some((_, name)), _) => (*name).to_string(),
        (None, [group, key]) => {
            let group = GROUPS.iter().find(|known| known.name == *group).expect("a group of settings");
            format!("{}-{key}", group.prefix)
        }
        (None, path) => path.join("-"),
    };
    name.replace('_', "-")
}

/// Definitions of a schema, to which its parts refer.
struct Schema<'a> {
    definitions: &'a Value,
}

impl Schema<'_> {
    /// Follows a reference, and leaves out that a value may be null.
    fn resolved<'b>(&'b self, part: &'b Value) -> &'b Value {
        let part = match part["anyOf"].as_array().map(Vec::as_slice) {
            Some([inner, null]) if null["type"] == "null" => inner,
            _ => part,
        };
        match part["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            Some(name) => &self.definitions[name],
            None => part,
        }
    }

    fn of_run(&self, properties: &Value) -> Vec<Setting> {
        let all = properties.as_object().expect("properties of TrainConfig");
        all.iter()
            .flat_map(|(key, part)| match GROUPS.iter().find(|group| group.name == key) {
                None => vec![self.setting(&[key], part, &part["description"], HEADING)],
                Some(group) => self.of_group(group, part),
            })
            .collect()
    }

    /// Returns the settings inside a setting. If its keys depend on its `type`, a description says for which types it is meant.
    fn of_group(&self, group: &Group, part: &Value) -> Vec<Setting> {
        let Group { name, heading, .. } = *group;
        let resolved = self.resolved(part);
        let Some(variants) = resolved["oneOf"].as_array() else {
            let keys = resolved["properties"].as_object().expect("settings inside a setting");
            let mut settings: Vec<Setting> =
                keys.iter().map(|(key, inner)| self.setting(&[name, key], inner, &inner["description"], heading)).collect();
            // The option that chooses the group has no value by default.
            for setting in settings.iter_mut().filter(|setting| setting.option == group.option) {
                setting.help = part["description"].as_str().expect("a description").to_string() + " Value: " + &lower_first(&setting.help);
                setting.notes.clear();
            }
            return settings;
        };
        let type_of = |variant: &Value| variant["properties"]["type"]["const"].as_str().expect("a type").to_string();
        let types: Vec<String> = variants.iter().map(type_of).collect();
        let choices: Vec<Value> = types.iter().map(|word| json!({ "const": word })).collect();
        let choice = json!({ "oneOf": choices, "default": part["default"]["type"] });
        let mut settings = vec![self.setting(&[name, "type"], &choice, &part["description"], HEADING)];
        let mut keys: Vec<&str> = Vec::new();
        for variant in variants {
            let own = variant["properties"].as_object().expect("settings of a type").keys();
            let fresh: Vec<&str> = own.map(String::as_str).filter(|key| *key != "type" && !keys.contains(key)).collect();
            keys.extend(fresh);
        }
        for key in keys {
            let having: Vec<&Value> = variants.iter().filter(|variant| !variant["properties"][key].is_null()).collect();
            let mut texts: Vec<(String, Vec<String>)> = Vec::new();
            for variant in &having {
                let text = variant["properties"][key]["description"].as_str().expect("a description").to_string();
                match texts.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, types)) => types.push(type_of(variant)),
                    None => texts.push((text, vec![type_of(variant)])),
                }
            }
            let everywhere = having.len() == variants.len() && texts.len() == 1;
            let text =
                |(text, types): &(String, Vec<String>)| if everywhere { text.clone() } else { format!("With {}: {text}", listed(types)) };
            let description = texts.iter().map(text).collect::<Vec<_>>().join(" ");
            let mut inner = having[0]["properties"][key].clone();
            if having.iter().any(|variant| variant["properties"][key]["default"] != inner["default"]) {
                inner["default"] = Value::Null;
            }
            settings.push(self.setting(&[name, key], &inner, &description.into(), heading));
        }
        settings
    }

    fn setting(&self, path: &[&str], part: &Value, description: &Value, heading: &'static str) -> Setting {
        let (kind, placeholder, words) = self.kind(path, part);
        let description = description.as_str().expect("a description");
        let option = option_name(path);
        let (option, help) = match kind {
            Kind::Flag { value: false } => (format!("no-{option}"), format!("Turn this off: {}", lower_first(description))),
            Kind::Steps => (option, format!("{description} +N: N more than the resumed run has made.")),
            _ => (option, description.to_string()),
        };
        let mut notes = if words.is_empty() { String::new() } else { format!(" [possible values: {}]", words.join(", ")) };
        notes += &default_text(&part["default"], &help);
        let requires = match path {
            ["adapter", _] => Some("lora"),
            ["block_coordinate", key] if *key != "blocks" => Some("block-coordinate"),
            _ => None,
        };
        let path = path.iter().map(|key| (*key).to_string()).collect();
        Setting { path, option, kind, placeholder, help, notes, heading, requires }
    }

    /// Returns the form of a setting's value, its placeholder, and its words if only some are allowed.
    fn kind(&self, path: &[&str], part: &Value) -> (Kind, &'static str, Vec<String>) {
        let resolved = self.resolved(part);
        if let Some(choices) = resolved["oneOf"].as_array()
            && choices.iter().all(|choice| choice["const"].is_string())
        {
            return (Kind::Text, "NAME", choices.iter().map(|choice| choice["const"].as_str().unwrap_or_default().to_string()).collect());
        }
        if resolved["anyOf"].as_array().is_some_and(|forms| forms.iter().any(|form| form["type"] == "string")) {
            return (Kind::Names, "NAMES", Vec::new());
        }
        let kind = match resolved["type"].as_array().map_or(&resolved["type"], |types| &types[0]).as_str() {
            Some("integer") if path == ["steps"] => (Kind::Steps, "N"),
            Some("integer") if resolved["minimum"].is_null() => (Kind::Signed, "N"),
            Some("integer") => (Kind::Integer, "N"),
            Some("number") => (Kind::Number, "X"),
            Some("boolean") => (Kind::Flag { value: part["default"] != true }, ""),
            Some("string") => (Kind::Text, "TEXT"),
            Some("array") if resolved["items"]["type"] == "number" => (Kind::Numbers, "X,…"),
            Some("array") if resolved["items"]["type"] == "string" => (Kind::Names, "NAMES"),
            Some("object") => (Kind::Json, "JSON"),
            _ => (Kind::Word, "JSON"),
        };
        (kind.0, kind.1, Vec::new())
    }
}

/// Joins words as a sentence does: `a, b or c`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Begins a sentence with a small letter.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Returns the default as clap shows those that it knows. A flag and a list have none, nor has a number that means an absent value.
fn default_text(default: &Value, help: &str) -> String {
    match default {
        _ if help.contains("f absent") => String::new(),
        Value::String(word) => format!(" [default: {word}]"),
        Value::Number(number) => format!(" [default: {}]", number.to_string().trim_end_matches(".0")),
        _ => String::new(),
    }
}

/// Options by the places of their settings.
struct Options(BTreeMap<String, String>);

impl Options {
    fn of(settings: &[Setting]) -> Self {
        let own = settings.iter().map(|setting| (setting.path.join("."), setting.option.clone()));
        let groups = GROUPS.iter().map(|group| (group.name.to_string(), group.option.to_string()));
        Self(own.chain(groups).collect())
    }

    /// Writes the description of a setting of `group` for the terminal: settings that have an option are named by it, and there is no full
    /// stop at the end.
    fn in_terminal(&self, text: &str, group: &str) -> String {
        let text = text.replace('\n', " ");
        let named = |key: &str| self.0.get(&format!("{group}.{key}")).or_else(|| self.0.get(key));
        let pieces: Vec<String> = text
            .split('`')
            .enumerate()
            .map(|(at, piece)| match named(piece).filter(|_| at % 2 == 1) {
                Some(option) => format!("--{option}"),
                None => piece.to_string(),
            })
            .collect();
        pieces.concat().trim_end_matches('.').to_string()
    }
}
