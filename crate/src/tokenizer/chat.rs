//! Renders chat templates: Jinja as Hugging Face runs it, with limits on work and output.

use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Kwargs, Object, Serde, Value};
use minijinja::{Environment, Error as JinjaError, ErrorKind};
use serde::{Deserialize, Serialize};

use super::python;
use crate::error::{Error, Refusal, Result, shown, word};

/// Maximum number of instructions in one rendering.
const FUEL: u64 = 2_000_000;
/// Maximum output of one rendering, in bytes.
const OUTPUT_BYTES: usize = 8 << 20;
/// Maximum size of a template, in bytes.
const TEMPLATE_BYTES: usize = 1 << 20;
/// Maximum depth of nested macro calls and blocks.
const DEPTH: usize = 64;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or another role that the template knows.
    pub role: String,
    /// The text.
    pub content: String,
    /// Further fields, which the template may read.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Message {
    /// A turn without further fields.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), extra: serde_json::Map::new() }
    }
}

/// Renders `source` over `messages`. `specials` are the special tokens by their names in `tokenizer_config.json`.
pub(super) fn render(source: &str, messages: &[Message], add_generation_prompt: bool, specials: &[(&str, String)]) -> Result<String> {
    if source.len() > TEMPLATE_BYTES {
        return Err(over(format!("at most {TEMPLATE_BYTES} bytes"), source.len()));
    }
    let source = without_generation_tags(source);
    let env = environment().map_err(refuse)?;
    let template = env.template_from_named_str("chat_template", &source).map_err(refuse)?;
    let mut context: std::collections::BTreeMap<&str, Value> =
        specials.iter().map(|(key, text)| (*key, Value::from(text.as_str()))).collect();
    let turns = messages.iter().map(|message| serde_json::to_value(message).map(ordered)).collect::<std::result::Result<Vec<_>, _>>();
    context.insert("messages", Value::from(turns.map_err(|e| Error::Template { reason: e.to_string() })?));
    context.insert("add_generation_prompt", Value::from(add_generation_prompt));
    context.insert("tools", Value::from(()));
    context.insert("documents", Value::from(()));
    let mut output = Bounded(Vec::new());
    template.render_captured_to(Value::from(context), &mut output).map_err(refuse)?;
    String::from_utf8(output.0).map_err(|e| Error::Template { reason: e.to_string() })
}

/// A JSON object whose keys keep their order, as Jinja's dictionaries do; minijinja's own maps are sorted.
#[derive(Debug)]
struct Ordered(Vec<(Value, Value)>);

impl Object for Ordered {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| name.clone()).collect())
    }
}

fn ordered(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Object(fields) => {
            Value::from_object(Ordered(fields.into_iter().map(|(key, value)| (Value::from(key), ordered(value))).collect()))
        }
        serde_json::Value::Array(items) => Value::from(items.into_iter().map(ordered).collect::<Vec<_>>()),
        plain => Value::from(Serde(plain)),
    }
}

fn refuse(error: JinjaError) -> Error {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => over(format!("at most {FUEL} instructions"), "more"),
        ErrorKind::WriteFailure => over(format!("at most {OUTPUT_BYTES} bytes of output"), "more"),
        ErrorKind::InvalidOperation | ErrorKind::SyntaxError if detail.contains("recursion limit") => {
            over(format!("at most {DEPTH} levels of calls and blocks"), "more")
        }
        kind => {
            let at = error.line().map_or_else(String::new, |line| format!(" (line {line})"));
            // The engine's message quotes the template, which may also raise errors with a text of its own.
            let reason = if detail.is_empty() { kind.to_string() } else { format!("{kind}: {}", shown(detail)) };
            Error::Template { reason: format!("{reason}{at}") }
        }
    }
}

/// The refusal of a template that costs too much.
fn over(expected: String, found: impl std::fmt::Display) -> Error {
    Refusal::new(word!("template.budget")).stage("bind").of("chat template").expected(expected).found(found).into()
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES {
            return Err(io::Error::other("too much output"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn environment<'a>() -> Result<Environment<'a>, JinjaError> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(DEPTH);
    env.set_unknown_method_callback(python::method);
    env.add_filter("tojson", to_json);
    // `strftime_now` is not defined: there is no clock here, and templates check whether it is defined.
    env.add_function("raise_exception", |message: String| -> Result<Value, JinjaError> {
        Err(JinjaError::new(ErrorKind::InvalidOperation, message))
    });
    Ok(env)
}

/// `{% generation %}` marks the assistant's tokens for Hugging Face; it prints nothing.
fn without_generation_tags(source: &str) -> String {
    let mut result = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        result.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(end + 2);
        let word = tag.trim_start_matches(['{', '%', '-', '+']).trim_end_matches(['}', '%', '-', '+']).trim();
        match word {
            "generation" => result.push_str(&tag.replace("generation", "if true")),
            "endgeneration" => result.push_str(&tag.replace("endgeneration", "endif")),
            _ => result.push_str(tag),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

/// Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
fn to_json(value: &Value, kwargs: Kwargs) -> Result<String, JinjaError> {
    let indent = kwargs.get::<Option<usize>>("indent")?;
    // `sort_keys` and `separators` are accepted, as in Hugging Face's filter, but only with their default values.
    kwargs.assert_all_used()?;
    let value = serde_json::to_value(value).map_err(|e| JinjaError::new(ErrorKind::BadSerialization, e.to_string()))?;
    let mut out = String::new();
    write_json(&value, indent, 0, &mut out);
    Ok(out)
}

fn write_json(value: &serde_json::Value, indent: Option<usize>, depth: usize, out: &mut String) {
    use serde_json::Value as Json;
    let new_line = |depth: usize, out: &mut String| {
        if let Some(width) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth));
        }
    };
    let separator = if indent.is_some() { "," } else { ", " };
    match value {
        Json::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(separator);
                }
                new_line(depth + 1, out);
                write_json(item, indent, depth + 1, out);
            }
            new_line(depth, out);
            out.push(']');
        }
        Json::Object(fields) if !fields.is_empty() => {
            out.push('{');
            for (index, (key, item)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push_str(separator);
                }
                new_line(depth + 1, out);
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push_str(": ");
                write_json(item, indent, depth + 1, out);
            }
            new_line(depth, out);
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}
