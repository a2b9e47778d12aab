//! Texts of the help, made of the descriptions of settings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{GROUPS, Setting};

/// Joins words as a sentence does: `a, b or c`.
pub(super) fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Begins a sentence with a small letter.
pub(super) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// Returns the default as clap shows those that it knows. A flag and a list have none, nor has a number that means an absent value.
pub(super) fn default_text(default: &Value, help: &str) -> String {
    match default {
        _ if help.contains("f absent") => String::new(),
        Value::String(word) => format!(" [default: {word}]"),
        Value::Number(number) => {
            format!(" [default: {}]", number.to_string().trim_end_matches(".0"))
        }
        _ => String::new(),
    }
}

/// Options by the places of their settings.
pub(super) struct Options(BTreeMap<String, String>);

impl Options {
    pub(super) fn of(settings: &[Setting]) -> Self {
        let own = settings
            .iter()
            .map(|setting| (setting.path.join("."), setting.option.clone()));
        let groups = GROUPS
            .iter()
            .map(|group| (group.name.to_string(), group.option.to_string()));
        Self(own.chain(groups).collect())
    }

    /// Writes the description of a setting of `group` for the terminal: settings that have an option are named by it, and there is no full
    /// stop at the end.
    pub(super) fn in_terminal(&self, text: &str, group: &str) -> String {
        let text = text.replace('\n', " ");
        let named = |key: &str| {
            self.0
                .get(&format!("{group}.{key}"))
                .or_else(|| self.0.get(key))
        };
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
