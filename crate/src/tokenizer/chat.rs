//! Chat templates: Jinja as Hugging Face runs it, within a budget of work and output.

use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Kwargs, Object, Serde, Value, ValueKind};
use minijinja::{Environment, Error as JinjaError, ErrorKind, State};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Refusal, Result, shown, word};

/// Instructions that one rendering may execute.
const FUEL: u64 = 2_000_000;
/// Bytes that one rendering may write.
const OUTPUT_BYTES: usize = 8 << 20;
/// Bytes of a template that is still rendered.
const TEMPLATE_BYTES: usize = 1 << 20;
/// Nested macro calls and blocks.
const DEPTH: usize = 64;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or what else the template knows.
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
            // The engine quotes the template, which may also raise a text of its own.
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
    env.set_unknown_method_callback(python_method);
    env.add_filter("tojson", to_json);
    // `strftime_now` is left out: there is no clock here, and templates ask whether it is defined.
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
    // `sort_keys` and `separators` are accepted as Hugging Face's filter accepts them only with their default meaning.
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

/// The methods of Python's strings and dictionaries that chat templates call.
fn python_method(_state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, JinjaError> {
    let unknown = || JinjaError::from(ErrorKind::UnknownMethod);
    let text_arg = |index: usize| args.get(index).and_then(Value::as_str);
    if let Some(text) = value.as_str() {
        let strip: &[char] = &text_arg(0).map_or_else(Vec::new, |set| set.chars().collect());
        let drop = |c: char| if args.is_empty() { c.is_whitespace() } else { strip.contains(&c) };
        return Ok(match (method, args.len()) {
            ("strip", 0 | 1) => Value::from(text.trim_matches(drop)),
            ("lstrip", 0 | 1) => Value::from(text.trim_start_matches(drop)),
            ("rstrip", 0 | 1) => Value::from(text.trim_end_matches(drop)),
            ("upper", 0) => Value::from(text.to_uppercase()),
            ("lower", 0) => Value::from(text.to_lowercase()),
            ("capitalize", 0) => Value::from(capitalized(text)),
            ("title", 0) => Value::from(titled(text)),
            ("isdigit", 0) => Value::from(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
            ("splitlines", 0) => Value::from(text.lines().map(Value::from).collect::<Vec<_>>()),
            ("split", 0) => Value::from(text.split_whitespace().map(Value::from).collect::<Vec<_>>()),
            ("split" | "rsplit", 1 | 2) => split(text, text_arg(0).ok_or_else(unknown)?, args.get(1), method == "rsplit")?,
            ("replace", 2) => Value::from(text.replace(text_arg(0).ok_or_else(unknown)?, text_arg(1).ok_or_else(unknown)?)),
            ("startswith", 1) => Value::from(any_of(args, |prefix| text.starts_with(prefix))?),
            ("endswith", 1) => Value::from(any_of(args, |suffix| text.ends_with(suffix))?),
            ("count", 1) => Value::from(text.matches(text_arg(0).ok_or_else(unknown)?).count()),
            ("find", 1) => {
                let found = text.find(text_arg(0).ok_or_else(unknown)?);
                Value::from(found.map_or(-1, |at| text.get(..at).map_or(0, |head| head.chars().count()) as i64))
            }
            ("join", 1) => {
                let items = args.first().ok_or_else(unknown)?.try_iter()?;
                Value::from(items.map(|item| item.to_string()).collect::<Vec<_>>().join(text))
            }
            _ => return Err(unknown()),
        });
    }
    if value.kind() == ValueKind::Map {
        let entries = || -> Result<Vec<(Value, Value)>, JinjaError> {
            value.try_iter()?.map(|key| value.get_item(&key).map(|item| (key, item))).collect()
        };
        return Ok(match (method, args.len()) {
            ("items", 0) => Value::from(entries()?.into_iter().map(|(k, v)| Value::from(vec![k, v])).collect::<Vec<_>>()),
            ("keys", 0) => Value::from(entries()?.into_iter().map(|(key, _)| key).collect::<Vec<_>>()),
            ("values", 0) => Value::from(entries()?.into_iter().map(|(_, item)| item).collect::<Vec<_>>()),
            ("get", 1 | 2) => {
                let found = value.get_item(args.first().ok_or_else(unknown)?)?;
                if found.is_undefined() { args.get(1).cloned().unwrap_or(Value::from(())) } else { found }
            }
            _ => return Err(unknown()),
        });
    }
    Err(unknown())
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters.as_str().to_lowercase().chars()).collect())
}

/// Upper case for a letter after none, lower case for the others.
fn titled(text: &str) -> String {
    let mut inside = false;
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        if inside {
            result.extend(character.to_lowercase());
        } else {
            result.extend(character.to_uppercase());
        }
        inside = character.is_alphabetic();
    }
    result
}

/// `str.split(separator, maxsplit)`, from the right for `rsplit`.
fn split(text: &str, separator: &str, most: Option<&Value>, from_right: bool) -> Result<Value, JinjaError> {
    if separator.is_empty() {
        return Err(JinjaError::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let most = most.map_or(Ok(-1), |value| i64::try_from(value.clone()))?;
    let pieces = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let mut parts: Vec<Value> = Vec::new();
    if from_right {
        parts.extend(text.rsplitn(pieces, separator).map(Value::from));
        parts.reverse();
    } else {
        parts.extend(text.splitn(pieces, separator).map(Value::from));
    }
    Ok(Value::from(parts))
}

/// `startswith` and `endswith` take a text or several.
fn any_of(args: &[Value], test: impl Fn(&str) -> bool) -> Result<bool, JinjaError> {
    let argument = args.first().ok_or_else(|| JinjaError::from(ErrorKind::MissingArgument))?;
    if let Some(text) = argument.as_str() {
        return Ok(test(text));
    }
    Ok(argument.try_iter()?.any(|item| item.as_str().is_some_and(&test)))
}
