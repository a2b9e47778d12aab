//! The methods of Python's strings and dictionaries that chat templates call.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error as JinjaError, ErrorKind, State};

/// Calls `method` of `value`.
pub(super) fn method(_state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, JinjaError> {
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

/// The texts that `startswith` and `endswith` compare with: one, or several.
fn any_of(args: &[Value], test: impl Fn(&str) -> bool) -> Result<bool, JinjaError> {
    let argument = args.first().ok_or_else(|| JinjaError::from(ErrorKind::MissingArgument))?;
    if let Some(text) = argument.as_str() {
        return Ok(test(text));
    }
    Ok(argument.try_iter()?.any(|item| item.as_str().is_some_and(&test)))
}
