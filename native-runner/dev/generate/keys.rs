//! Keys of settings, with the kinds of their values that TypeScript checks.

use serde_json::Value;
use tabtune::config::TrainConfig;
use tabtune::generate::GenerateConfig;
use tabtune::generate::score::ScoreConfig;

use super::schema::{given, is_required, properties, reference, without_null, words};
use super::text::{quoted, without_examples, word};

/// Kind of a value.
pub enum Kind {
    /// Values of a kind with this name.
    Named(String),
    /// These words.
    Words(Vec<Value>),
}

impl Kind {
    /// Returns the kind as a constant.
    pub fn constant(&self) -> String {
        match self {
            Self::Named(name) => quoted(name),
            Self::Words(words) => format!("[{}]", all(words, ", ")),
        }
    }

    /// Returns the type in TypeScript.
    pub fn typed(&self) -> String {
        let name = match self {
            Self::Words(words) => return all(words, " | "),
            Self::Named(name) => name.as_str(),
        };
        String::from(match name {
            "count" | "integer" => "number",
            "counts" => "number | number[]",
            "names" => "string | string[]",
            "list" => "string[]",
            "numbers" => "number[]",
            "table" => "Record<string, number>",
            "number or auto" => "number | 'auto'",
            "number or null" => "number | null",
            other => other,
        })
    }
}

fn all(words: &[Value], separator: &str) -> String {
    Vec::from_iter(words.iter().map(word)).join(separator)
}

/// A key of settings.
pub struct Key {
    /// Name in Rust.
    pub key: String,
    /// Kind of its values; `None` if they have keys of their own.
    pub kind: Option<Kind>,
    /// True if there is no default.
    pub required: bool,
    /// Documentation in Rust.
    pub doc: String,
    /// The default; null if there is none.
    pub value: Value,
}

/// Settings of one object.
pub struct Settings {
    /// Their object; it names the constant of their kinds.
    pub of: &'static str,
    /// The `type` by which they are chosen.
    pub tag: Option<String>,
    /// Name of the interface in TypeScript.
    pub name: String,
    /// Documentation in Rust.
    pub doc: String,
    /// Their keys.
    pub keys: Vec<Key>,
}

impl Settings {
    /// Returns the keys that TypeScript checks itself, with the kind of each.
    pub fn plain(&self) -> impl Iterator<Item = (&Key, &Kind)> {
        self.keys
            .iter()
            .filter_map(|key| Some((key, key.kind.as_ref()?)))
    }
}

/// Returns a property merged with the definition that it refers to, and whether it may be null.
fn resolved(property: &Value, definitions: &Value) -> (Value, bool) {
    let (inner, nullable) = match without_null(property) {
        Some(inner) => (inner, true),
        None => (property.clone(), false),
    };
    let Some(name) = reference(&inner) else {
        return (inner, nullable);
    };
    let (target, target_is_nullable) = resolved(&definitions[name], definitions);
    (target, nullable || target_is_nullable)
}

/// Returns the kind of a value that TypeScript checks; `None` for values with keys of their own.
fn kind(property: &Value, definitions: &Value) -> Option<Kind> {
    let (schema, nullable) = resolved(property, definitions);
    let first = &schema["oneOf"][0];
    let named = |name: &str| Some(Kind::Named(name.into()));
    if schema["type"] == "array" {
        return match schema["items"]["type"].as_str() {
            Some("string") => named("list"),
            Some("number") => named("numbers"),
            _ => None,
        };
    }
    if schema.get("properties").is_some() || first.get("properties").is_some() {
        return None;
    }
    if first["type"] == "number" {
        let word = schema["oneOf"][1]["const"].as_str().unwrap_or_default();
        return named(&format!("number or {word}"));
    }
    if let Some(words) = words(&schema) {
        return Some(Kind::Words(words));
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let texts = alternatives[0]["type"] == "string";
        return named(if texts { "names" } else { "counts" });
    }
    if schema["additionalProperties"].is_object() {
        return named("table");
    }
    match schema["type"].as_str()? {
        "integer" if schema["minimum"] == 0 => named("count"),
        // A value whose default is null is left out instead.
        "number" if nullable && !property["default"].is_null() => named("number or null"),
        other => named(other),
    }
}

fn keys(object: &Value, definitions: &Value) -> Vec<Key> {
    let key = |(key, property): (&String, &Value)| Key {
        key: key.clone(),
        kind: kind(property, definitions),
        required: is_required(object, key),
        doc: description(property),
        value: property["default"].clone(),
    };
    properties(object)
        .filter(|(key, _)| *key != "type")
        .map(key)
        .collect()
}

fn description(schema: &Value) -> String {
    without_examples(schema["description"].as_str().unwrap_or_default())
}

/// Returns all objects with settings.
pub fn settings() -> Vec<Settings> {
    let (train, sample, score) = (
        given::<TrainConfig>(),
        given::<GenerateConfig>(),
        given::<ScoreConfig>(),
    );
    let definitions = &train["$defs"];
    let one = |of, name: &str, object: &Value| Settings {
        of,
        tag: None,
        name: name.into(),
        doc: description(object),
        keys: keys(object, object.get("$defs").unwrap_or(definitions)),
    };
    let run = Settings {
        doc: "What a step computes, without what has keys of its own.".into(),
        ..one("run", "RunSettings", &train)
    };
    let mut all = vec![
        run,
        one("adapter", "AdapterSettings", &definitions["AdapterConfig"]),
        one(
            "blockCoordinate",
            "BlockCoordinateSettings",
            &definitions["BlockCoordinateConfig"],
        ),
        one("columns", "ColumnSettings", &definitions["Columns"]),
        one("group", "GroupSettings", &definitions["GroupConfig"]),
        one("sample", "SampleOptions", &sample),
        one("score", "ScoreSettings", &score),
    ];
    for (of, ending, types) in [
        ("optimizer", "Options", &definitions["OptimizerConfig"]),
        ("schedule", "Schedule", &definitions["ScheduleConfig"]),
    ] {
        for variant in types["oneOf"].as_array().into_iter().flatten() {
            let tag = variant["properties"]["type"]["const"]
                .as_str()
                .unwrap_or_default();
            let (first, rest) = tag.split_at(tag.len().min(1));
            all.push(Settings {
                tag: Some(tag.to_owned()),
                ..one(
                    of,
                    &format!("{}{rest}{ending}", first.to_uppercase()),
                    variant,
                )
            });
        }
    }
    all
}
