//! The chat templates in `tokenizer_config.json`.

use serde_json::Value;

/// Returns the templates of a list of `{name, template}` other than `default`, sorted by name; the first one of each name counts.
pub(super) fn named_of(config: &Value) -> Vec<(String, String)> {
    let list = config.get("chat_template").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let pair = |entry: &Value| Some((entry.get("name")?.as_str()?.to_owned(), entry.get("template")?.as_str()?.to_owned()));
    let mut named: Vec<(String, String)> = list.iter().filter_map(pair).filter(|(name, _)| name != "default").collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named.dedup_by(|later, first| later.0 == first.0);
    named
}

/// Returns the main template: `chat_template` is a text, or a list of `{name, template}` of which `default` is used.
pub(super) fn template_of(config: &Value) -> Option<String> {
    let value = config.get("chat_template")?;
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let named = value.as_array()?.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"))?;
    named.get("template")?.as_str().map(str::to_owned)
}

/// Returns the text of a special token, which is written as a text or as `{"content": text, …}`.
pub(super) fn special_text(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
}
