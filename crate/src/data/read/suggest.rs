//! Suggests columns for a row that cannot be read.

use serde_json::Value;

use super::refused::refused;
use super::row::{Fields, is_plain_message};
use crate::error::{Refusal, shown, word};

/// Shapes that rows may have.
const SHAPES: &str = "rows have messages, conversations, prompt and completion, instruction and output, text, or input_ids";

/// Returns a key as it is shown.
pub(crate) fn named(key: &str) -> String {
    if key.is_empty() {
        "\"\"".to_owned()
    } else {
        shown(key)
    }
}

/// Lists the keys of a row, and says which of them are null.
pub(crate) fn listed(row: &Fields) -> String {
    const SHOWN: usize = 12;
    let key =
        |(key, value): (&String, &Value)| named(key) + if value.is_null() { " (null)" } else { "" };
    let mut keys: Vec<String> = row.iter().take(SHOWN).map(key).collect();
    if row.len() > SHOWN {
        keys.push(format!("{} more", row.len() - SHOWN));
    }
    if keys.is_empty() {
        "no key".to_owned()
    } else {
        keys.join(", ")
    }
}

const QUESTIONS: [&str; 9] = [
    "prompt",
    "question",
    "query",
    "instruction",
    "input",
    "user",
    "source",
    "problem",
    "context",
];
/// Keys of a text that a question is about.
const CONTEXTS: [&str; 3] = ["context", "input", "passage"];

/// Finds the first of the names among the keys that have texts.
fn find(row: &Fields, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| {
        row.iter()
            .find(|(key, value)| key.eq_ignore_ascii_case(name) && value.is_string())
    });
    found.map(|(key, _)| shown(key))
}

/// Returns the refusal of a row without a known shape, with columns that might fit.
pub(crate) fn unknown(row: &Fields) -> Refusal {
    const ANSWERS: [&str; 10] = [
        "completion",
        "answer",
        "response",
        "output",
        "assistant",
        "target",
        "solution",
        "reply",
        "label",
        "chosen",
    ];
    const TEXTS: [&str; 5] = ["content", "body", "document", "story", "sentence"];
    let refusal = refused(word!("data.shape"), "keys that tabtune knows", listed(row));
    let texts = row
        .iter()
        .filter(|(_, value)| value.is_string())
        .map(|(key, _)| shown(key));
    let holds_messages = |(_, value): &(&String, &Value)| {
        let first = &value[0];
        first
            .get("role")
            .or(first.get("from"))
            .is_some_and(Value::is_string)
    };
    if let Some((key, _)) = row.iter().find(holds_messages) {
        return refusal.hint(format!(
            "{SHAPES}; for the messages of another key give columns: {{\"messages\": \"{}\"}}",
            shown(key)
        ));
    }
    if is_plain_message(row) {
        return refused(word!("data.shape"), "a conversation", "one message alone")
            .hint("a row is a whole conversation: {\"messages\": […]}");
    }
    let context = find(row, &CONTEXTS);
    let columns = match (
        find(row, &QUESTIONS),
        find(row, &ANSWERS),
        find(row, &TEXTS).or_else(|| texts.clone().next()),
    ) {
        (Some(prompt), Some(completion), _)
            if context.as_ref().is_some_and(|context| *context != prompt) =>
        {
            format!(
                "{{\"prompt\": \"{{{prompt}}}\\n\\n{{{}}}\", \"completion\": \"{completion}\"}}",
                context.unwrap_or_default()
            )
        }
        (Some(prompt), Some(completion), _) => {
            format!("{{\"prompt\": \"{prompt}\", \"completion\": \"{completion}\"}}")
        }
        // One half of a pair, or a word such as an id, is not what a person wants to be learned.
        (None, None, Some(text)) if texts.count() == 1 && is_prose(row, &text) => {
            format!("{{\"text\": \"{text}\"}}")
        }
        (None, None, Some(text)) if is_prose(row, &text) => {
            format!("{{\"text\": \"{text}\"}}, or {{\"prompt\": …, \"completion\": …}}")
        }
        _ => "{\"text\": …}, or {\"prompt\": …, \"completion\": …}".to_owned(),
    };
    refusal.hint(format!(
        "{SHAPES}; where they have other names, give columns: {columns}"
    ))
}

/// Returns true if the value at a key has several words.
fn is_prose(row: &Fields, key: &str) -> bool {
    let text = row.get(key).and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().nth(1).is_some()
}

/// Returns the refusal of pairs of answers.
pub(crate) fn pairs(row: &Fields) -> Refusal {
    let after = |prompt: &str| format!("{{\"prompt\": \"{prompt}\", \"completion\": \"chosen\"}}");
    let columns = match (&row["chosen"], find(row, &QUESTIONS)) {
        (Value::String(_), Some(prompt)) => after(&prompt),
        (Value::String(_), None) => "{\"text\": \"chosen\"}".to_owned(),
        (Value::Array(_), _) if row.get("prompt").is_some_and(Value::is_array) => after("prompt"),
        _ => "{\"messages\": \"chosen\"}".to_owned(),
    };
    let found = "pairs of chosen and rejected answers";
    refused(word!("data.shape"), "one answer", found).hint(format!(
        "preferences are not trained; to learn the chosen answers give columns: {columns}"
    ))
}
