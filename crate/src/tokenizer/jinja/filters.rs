//! Jinja's filters, tests and functions that minijinja lacks or implements differently.

use std::borrow::Cow;
use std::cmp::Ordering;

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error as JinjaError, State, filters as builtin, functions};

use super::objects::{Generator, View};
use super::representation::printed;
use super::values::{Arguments, dict, is_namespace, items_of, pair, pairs_of, wrong};
use super::{format, globals, json, text};

/// Maximum width of an indentation and of a centred text.
const WIDTH: i64 = 1 << 10;

type Filter = fn(&Value, &mut Arguments<'_>) -> Result<Value, JinjaError>;

const FILTERS: [(&str, Filter); 33] = [
    ("batch", |value, given| Ok(Generator::of(batches(items_of(value)?, given)?))),
    ("capitalize", |value, _| Ok(Value::from(text::capitalized(&printed(value))))),
    ("center", |value, given| centred(&printed(value), given)),
    ("count", |value, _| length(value)),
    ("d", |value, given| default(value, given)),
    ("default", |value, given| default(value, given)),
    ("dictsort", dictsort),
    ("e", |value, _| Ok(if value.is_safe() { value.clone() } else { escaped(value) })),
    ("escape", |value, _| Ok(if value.is_safe() { value.clone() } else { escaped(value) })),
    ("first", |value, _| Ok(items_of(value)?.first().cloned().unwrap_or(Value::UNDEFINED))),
    ("float", float),
    ("forceescape", |value, _| Ok(escaped(value))),
    ("format", |value, given| Ok(Value::from(format::percent(&printed(value), &given.rest()?)?))),
    ("indent", indent),
    ("int", int),
    ("items", |value, _| {
        let pairs = if value.is_undefined() { Vec::new() } else { pairs_of(value)? };
        Ok(Generator::of(pairs.into_iter().map(pair).collect()))
    }),
    ("iterated", |value, _| if is_iterable(value) { Ok(value.clone()) } else { Err(wrong(format!("{} is not iterable", printed(value)))) }),
    ("join", join),
    ("last", |value, _| Ok(items_of(value)?.last().cloned().unwrap_or(Value::UNDEFINED))),
    ("length", |value, _| length(value)),
    ("list", |value, _| Ok(Value::from(items_of(value)?))),
    ("lower", |value, _| Ok(Value::from(printed(value).to_lowercase()))),
    ("max", |value, given| extreme(value, given, Ordering::Greater)),
    ("min", |value, given| extreme(value, given, Ordering::Less)),
    ("replace", replace),
    ("round", round),
    ("string", |value, _| Ok(if value.as_str().is_some() { value.clone() } else { Value::from(printed(value)) })),
    ("title", |value, _| Ok(Value::from(builtin::title(printed(value).into())))),
    ("tojson", |value, given| Ok(Value::from(json::to_json(value, given)?))),
    ("trim", |value, given| {
        let text = printed(value);
        Ok(Value::from(given.text("chars")?.map_or_else(|| text.trim(), |chars| text.trim_matches(|c| chars.contains(c)))))
    }),
    ("truncate", truncate),
    ("upper", |value, _| Ok(Value::from(printed(value).to_uppercase()))),
    ("wordcount", |value, _| {
        Ok(Value::from(printed(value).split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).count()))
    }),
];

/// Adds all of them to an environment.
pub(crate) fn add(env: &mut Environment<'_>) {
    for (name, filter) in FILTERS {
        env.add_filter(name, move |value: &Value, given: Rest<ValueOrKwargs>| -> Result<Value, JinjaError> {
            let given = given.into_values();
            let mut given = Arguments::new(&given)?;
            let result = filter(value, &mut given)?;
            given.end()?;
            Ok(result)
        });
    }
    type Given = Rest<ValueOrKwargs>;
    env.add_filter("map", |state: &mut State, value: Value, given: Given| builtin::map(state, value, given).map(Generator::of));
    env.add_filter("select", |state: &mut State, value: Value, test: Option<Cow<'_, str>>, given: Given| {
        builtin::select(state, value, test, given).map(Generator::of)
    });
    env.add_filter("reject", |state: &mut State, value: Value, test: Option<Cow<'_, str>>, given: Given| {
        builtin::reject(state, value, test, given).map(Generator::of)
    });
    env.add_filter("selectattr", |state: &mut State, value: Value, key: Cow<'_, str>, test: Option<Cow<'_, str>>, given: Given| {
        builtin::selectattr(state, value, key, test, given).map(Generator::of)
    });
    env.add_filter("rejectattr", |state: &mut State, value: Value, key: Cow<'_, str>, test: Option<Cow<'_, str>>, given: Given| {
        builtin::rejectattr(state, value, key, test, given).map(Generator::of)
    });
    env.add_filter("reverse", |value: &Value| -> Result<Value, JinjaError> {
        let reversed = builtin::reverse(value)?;
        if reversed.kind() == ValueKind::String { Ok(reversed) } else { items_of(&reversed).map(Generator::of) }
    });
    // minijinja's filter does not write Python's layout; without it, templates that use it are refused.
    env.remove_filter("pprint");
    env.add_test("mapping", |value: &Value| value.kind() == ValueKind::Map && !is_namespace(value));
    env.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", |value: &Value| match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.downcast_object_ref::<Generator>().is_none() && value.downcast_object_ref::<View>().is_none(),
        _ => false,
    });
    env.add_test("odd", |value: Value| f64::try_from(value).map(|number| number.rem_euclid(2.0) == 1.0));
    env.add_test("even", |value: Value| f64::try_from(value).map(|number| number.rem_euclid(2.0) == 0.0));
    env.add_function("cycler", |items: Rest<Value>| globals::cycler(items.to_vec()));
    env.add_function("joiner", globals::joiner);
    env.add_function("dict", |given: Given| dict(&given.into_values()));
    env.add_function("namespace", |given: Given| functions::namespace(Some(dict(&given.into_values())?.into())));
}

/// Implements the filter `join(value, d="", attribute=None)`.
fn join(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let between = given.next("d")?.map_or_else(String::new, |between| printed(&between));
    let path = given.next("attribute")?.filter(|path| !path.is_none()).map(|path| printed(&path));
    let item = |item: &Value| match &path {
        None => Ok(printed(item)),
        Some(path) => path
            .split('.')
            .try_fold(item.clone(), |item, key| match key.parse::<usize>() {
                Ok(index) => item.get_item(&Value::from(index)),
                Err(_) => item.get_attr(key),
            })
            .map(|item| printed(&item)),
    };
    Ok(Value::from(items_of(value)?.iter().map(item).collect::<Result<Vec<_>, _>>()?.join(&between)))
}

fn is_iterable(value: &Value) -> bool {
    !matches!(value.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::Plain)
}

/// Replaces characters that have a meaning in HTML by references.
fn escaped(value: &Value) -> Value {
    let text = printed(value).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;").replace('"', "&#34;");
    Value::from_safe_string(text)
}

fn round(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let value = if value.kind() == ValueKind::Bool { Value::from(i64::from(value.is_true())) } else { value.clone() };
    let precision =
        given.integer("precision")?.map(|precision| precision.clamp(-400, 400)).and_then(|precision| i32::try_from(precision).ok());
    builtin::round(value, precision, given.text("method")?.as_deref(), Kwargs::from_iter([] as [(String, Value); 0]))
}

fn length(value: &Value) -> Result<Value, JinjaError> {
    if value.is_undefined() {
        return Ok(Value::from(0));
    }
    value.len().map(Value::from).ok_or_else(|| wrong(format!("a value of the kind {} has no length", value.kind())))
}

fn default(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given.next("default_value")?.unwrap_or_else(|| Value::from(""));
    let boolean = given.flag("boolean", false)?;
    Ok(if value.is_undefined() || boolean && !value.is_true() { otherwise } else { value.clone() })
}

fn dictsort(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let by_value = match given.text("by")?.as_deref() {
        None | Some("key") => false,
        Some("value") => true,
        Some(other) => return Err(wrong(format!("dictsort: expected by key or by value, found {other}"))),
    };
    let reverse = given.flag("reverse", false)?;
    let mut pairs = pairs_of(value)?;
    let key = |(key, item): &(Value, Value)| folded(if by_value { item } else { key }, case_sensitive);
    pairs.sort_by(|a, b| if reverse { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) });
    Ok(Value::from(pairs.into_iter().map(pair).collect::<Vec<_>>()))
}

/// Returns the value that a sort compares.
fn folded(value: &Value, case_sensitive: bool) -> Value {
    value.as_str().filter(|_| !case_sensitive).map_or_else(|| value.clone(), |text| Value::from(text.to_lowercase()))
}

/// Returns the first of the smallest items, or of the largest.
fn extreme(value: &Value, given: &mut Arguments<'_>, wanted: Ordering) -> Result<Value, JinjaError> {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let attribute = given.next("attribute")?.filter(|attribute| !attribute.is_none());
    let mut best: Option<(Value, Value)> = None;
    for item in items_of(value)? {
        let key = attribute.as_ref().map_or_else(|| Ok(item.clone()), |attribute| item.get_item(attribute))?;
        let key = folded(&key, case_sensitive);
        if best.as_ref().is_none_or(|(other, _)| key.cmp(other) == wanted) {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

fn batches(items: Vec<Value>, given: &mut Arguments<'_>) -> Result<Vec<Value>, JinjaError> {
    let size = given.integer("linecount")?.and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    let size = size.ok_or_else(|| wrong("batch: expected a number of items above 0"))?;
    let fill = given.next("fill_with")?.filter(|fill| !fill.is_none());
    let filled = |chunk: &[Value]| {
        let missing = fill.as_ref().map_or(0, |_| size.min(items.len().max(size)) - chunk.len());
        chunk.iter().cloned().chain(fill.iter().cycle().take(missing).cloned()).collect::<Vec<_>>()
    };
    Ok(items.chunks(size).map(|chunk| Value::from(filled(chunk))).collect())
}

/// Parses a decimal number as Python's `float` does.
fn parsed_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(text::is_space);
    let digits = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let fits = text.match_indices('_').all(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        digits(before.chars().next_back()) && digits(after.chars().next())
    });
    text.replace('_', "").parse().ok().filter(|_| fits)
}

fn float(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given.next("default")?.unwrap_or_else(|| Value::from(0.0));
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(wrong("an undefined value is no number")),
        ValueKind::Number | ValueKind::Bool => Value::from(f64::try_from(value.clone())?),
        _ => value.as_str().and_then(parsed_float).map_or(otherwise, Value::from),
    })
}

fn int(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given.next("default")?.unwrap_or_else(|| Value::from(0));
    let base = given.integer("base")?.unwrap_or(10);
    let whole = |float: f64| if float.is_finite() { format!("{:.0}", float.trunc()).parse::<i128>().ok() } else { None };
    let found = match value.kind() {
        ValueKind::Undefined => return Err(wrong("an undefined value is no number")),
        ValueKind::Number if !value.is_integer() => whole(f64::try_from(value.clone())?),
        ValueKind::Number | ValueKind::Bool => Some(i128::try_from(value.clone())?),
        _ => value.as_str().and_then(|text| parsed_int(text, base).or_else(|| parsed_float(text).and_then(whole))),
    };
    Ok(found.map_or(otherwise, |found| i64::try_from(found).map_or_else(|_| Value::from(found), Value::from)))
}

/// Parses an integer as Python's `int` does.
fn parsed_int(text: &str, base: i64) -> Option<i128> {
    let text = text.trim_matches(text::is_space).to_lowercase();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.strip_prefix('+').unwrap_or(&text)), |digits| (true, digits));
    let prefixed =
        [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, of)| digits.starts_with(prefix) && [0, *of].contains(&base));
    let (digits, base) = prefixed.map_or((digits, if base == 0 { 10 } else { base }), |(_, of)| (digits.get(2..).unwrap_or_default(), of));
    let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base))?;
    if digits.split('_').any(str::is_empty) || digits.starts_with(['-', '+']) {
        return None;
    }
    let size = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -size } else { size })
}

fn replace(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let (old, new) = (given.need("old")?, given.need("new")?);
    let most = given.integer("count")?.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    Ok(Value::from(printed(value).replacen(&printed(&old), &printed(&new), most)))
}

fn indent(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let width = given.next("width")?.unwrap_or_else(|| Value::from(4));
    let (first, blank) = (given.flag("first", false)?, given.flag("blank", false)?);
    let indentation = match width.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(limited("indent", i64::try_from(width)?)?),
    };
    let text = printed(value) + "\n";
    let lines = text::lines(&text).enumerate().map(|(index, (line, _))| {
        let indented = if index == 0 { first } else { blank || !line.is_empty() };
        if indented { indentation.clone() + line } else { line.to_owned() }
    });
    Ok(Value::from(lines.collect::<Vec<_>>().join("\n")))
}

/// Checks that a width is not too large.
fn limited(filter: &str, width: i64) -> Result<usize, JinjaError> {
    let width = width.max(0);
    usize::try_from(width).ok().filter(|_| width <= WIDTH).ok_or_else(|| wrong(format!("{filter}: a width of {width}: at most {WIDTH}")))
}

fn centred(text: &str, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let width = limited("center", given.integer("width")?.unwrap_or(80))?;
    Ok(Value::from(text::centred(text, width, " ")))
}

fn truncate(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let text = printed(value);
    let count = |number: Option<i64>, otherwise| {
        number.map_or(Ok(otherwise), |number| usize::try_from(number).map_err(|_| wrong("truncate: a length below 0")))
    };
    let length = count(given.integer("length")?, 255)?;
    let killwords = given.flag("killwords", false)?;
    let end = given.text("end")?.unwrap_or_else(|| "...".to_owned());
    let leeway = count(given.integer("leeway")?, 5)?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(Value::from(text));
    }
    let kept = length.checked_sub(end.chars().count()).ok_or_else(|| wrong("truncate: the length is below that of the end"))?;
    let kept: String = text.chars().take(kept).collect();
    let words = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    Ok(Value::from(format!("{}{end}", if killwords { &kept } else { words })))
}
