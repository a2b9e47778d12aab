//! Jinja's filters, tests and functions that minijinja lacks or implements differently.

mod lists;
mod numbers;
mod strings;

use std::borrow::Cow;
use std::cmp::Ordering;

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, State, filters as builtin, functions};

use self::lists::{batches, dictsort, extreme, join};
use self::numbers::{float, int, round};
use self::strings::{centred, escaped, indent, replace, truncate};
use super::objects::{Generator, is_lazy};
use super::representation::printed;
use super::tokens::is_word;
use super::values::{Arguments, Result, dict, is_namespace, items_of, pair, pairs_of, wrong};
use super::{format, globals, json, text};

type Filter = fn(&Value, &mut Arguments<'_>) -> Result;

const FILTERS: [(&str, Filter); 33] = [
    ("batch", |value, given| {
        Ok(Generator::of(batches(items_of(value)?, given)?))
    }),
    ("capitalize", |value, _| {
        Ok(text::capitalized(&printed(value)).into())
    }),
    ("center", |value, given| centred(&printed(value), given)),
    ("count", |value, _| length(value)),
    ("d", default),
    ("default", default),
    ("dictsort", dictsort),
    ("e", |value, _| Ok(escaped_once(value))),
    ("escape", |value, _| Ok(escaped_once(value))),
    ("first", |value, _| {
        Ok(items_of(value)?.first().cloned().unwrap_or_default())
    }),
    ("float", float),
    ("forceescape", |value, _| Ok(escaped(value))),
    ("format", |value, given| {
        Ok(format::percent(&printed(value), &given.rest()?)?.into())
    }),
    ("indent", indent),
    ("int", int),
    ("items", |value, _| {
        let pairs = match value.is_undefined() {
            true => Vec::new(),
            false => pairs_of(value)?,
        };
        Ok(Generator::of(pairs.into_iter().map(pair).collect()))
    }),
    ("iterated", |value, _| {
        let refused = || wrong(format!("{} is not iterable", printed(value)));
        is_iterable(value)
            .then(|| value.clone())
            .ok_or_else(refused)
    }),
    ("join", join),
    ("last", |value, _| {
        Ok(items_of(value)?.last().cloned().unwrap_or_default())
    }),
    ("length", |value, _| length(value)),
    ("list", |value, _| Ok(items_of(value)?.into())),
    ("lower", |value, _| Ok(printed(value).to_lowercase().into())),
    ("max", |value, given| {
        extreme(value, given, Ordering::Greater)
    }),
    ("min", |value, given| extreme(value, given, Ordering::Less)),
    ("replace", replace),
    ("round", round),
    ("string", |value, _| {
        Ok(match value.as_str() {
            Some(_) => value.clone(),
            None => printed(value).into(),
        })
    }),
    ("title", |value, _| {
        Ok(builtin::title(printed(value).into()).into())
    }),
    ("tojson", |value, given| {
        Ok(json::to_json(value, given)?.into())
    }),
    ("trim", |value, given| {
        let text = printed(value);
        Ok(Value::from(given.text("chars")?.map_or_else(
            || text.trim(),
            |chars| text.trim_matches(|c| chars.contains(c)),
        )))
    }),
    ("truncate", truncate),
    ("upper", |value, _| Ok(printed(value).to_uppercase().into())),
    ("wordcount", |value, _| {
        let text = printed(value);
        let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        Ok(words.count().into())
    }),
];

/// Adds all of them to an environment.
pub(crate) fn add(env: &mut Environment<'_>) {
    for (name, filter) in FILTERS {
        env.add_filter(
            name,
            move |value: &Value, given: Rest<ValueOrKwargs>| -> Result {
                let given = given.into_values();
                let mut given = Arguments::new(&given)?;
                let result = filter(value, &mut given)?;
                given.end()?;
                Ok(result)
            },
        );
    }
    type Given = Rest<ValueOrKwargs>;
    // Filters of minijinja whose results are consumed once they were read, with the types of their arguments.
    macro_rules! lazy {
        ($($filter:ident($($given:ident: $type:ty),*);)*) => {$(
            env.add_filter(
                stringify!($filter),
                |state: &mut State, value: Value, $($given: $type),*| {
                    builtin::$filter(state, value, $($given),*).map(Generator::of)
                },
            );
        )*};
    }
    lazy! {
        map(given: Given);
        select(test: Option<Cow<'_, str>>, given: Given);
        reject(test: Option<Cow<'_, str>>, given: Given);
        selectattr(key: Cow<'_, str>, test: Option<Cow<'_, str>>, given: Given);
        rejectattr(key: Cow<'_, str>, test: Option<Cow<'_, str>>, given: Given);
    }
    env.add_filter("reverse", |value: &Value| -> Result {
        let reversed = builtin::reverse(value)?;
        match reversed.kind() {
            ValueKind::String => Ok(reversed),
            _ => items_of(&reversed).map(Generator::of),
        }
    });
    // minijinja's filter does not write Python's layout; without it, templates that use it are refused.
    env.remove_filter("pprint");
    env.add_test("mapping", |value: &Value| {
        value.kind() == ValueKind::Map && !is_namespace(value)
    });
    env.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", |value: &Value| match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => !is_lazy(value),
        _ => false,
    });
    env.add_test("odd", |value: Value| {
        f64::try_from(value).map(|number| number.rem_euclid(2.0) == 1.0)
    });
    env.add_test("even", |value: Value| {
        f64::try_from(value).map(|number| number.rem_euclid(2.0) == 0.0)
    });
    env.add_function("cycler", |items: Rest<Value>| {
        globals::cycler(items.to_vec())
    });
    env.add_function("joiner", globals::joiner);
    env.add_function("dict", |given: Given| dict(&given.into_values()));
    env.add_function("namespace", |given: Given| {
        functions::namespace(Some(dict(&given.into_values())?.into()))
    });
}

/// Escapes a text for HTML, unless it was escaped already.
fn escaped_once(value: &Value) -> Value {
    match value.is_safe() {
        true => value.clone(),
        false => escaped(value),
    }
}

fn is_iterable(value: &Value) -> bool {
    !matches!(
        value.kind(),
        ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::Plain
    )
}

fn length(value: &Value) -> Result {
    if value.is_undefined() {
        return Ok(Value::from(0));
    }
    let none = || {
        wrong(format!(
            "a value of the kind {} has no length",
            value.kind()
        ))
    };
    value.len().map(Value::from).ok_or_else(none)
}

fn default(value: &Value, given: &mut Arguments<'_>) -> Result {
    let otherwise = given.next("default_value")?.unwrap_or_else(|| "".into());
    let boolean = given.flag("boolean", false)?;
    let absent = value.is_undefined() || boolean && !value.is_true();
    Ok(if absent { otherwise } else { value.clone() })
}
