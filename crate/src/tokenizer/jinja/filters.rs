//! Jinja's filters, tests and functions that minijinja lacks or implements differently.

mod lists;
mod numbers;
mod strings;

use std::borrow::Cow;
use std::cmp::Ordering;

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error as JinjaError, State, filters as builtin, functions};

use self::lists::{batches, dictsort, extreme, join};
use self::numbers::{float, int, round};
use self::strings::{centred, escaped, indent, replace, truncate};
use super::objects::{Generator, View};
use super::representation::printed;
use super::values::{Arguments, dict, is_namespace, items_of, pair, pairs_of, wrong};
use super::{format, globals, json, text};

type Filter = fn(&Value, &mut Arguments<'_>) -> Result<Value, JinjaError>;

const FILTERS: [(&str, Filter); 33] = [
    ("batch", |value, given| {
        Ok(Generator::of(batches(items_of(value)?, given)?))
    }),
    ("capitalize", |value, _| {
        Ok(Value::from(text::capitalized(&printed(value))))
    }),
    ("center", |value, given| centred(&printed(value), given)),
    ("count", |value, _| length(value)),
    ("d", |value, given| default(value, given)),
    ("default", |value, given| default(value, given)),
    ("dictsort", dictsort),
    ("e", |value, _| {
        Ok(if value.is_safe() {
            value.clone()
        } else {
            escaped(value)
        })
    }),
    ("escape", |value, _| {
        Ok(if value.is_safe() {
            value.clone()
        } else {
            escaped(value)
        })
    }),
    ("first", |value, _| {
        Ok(items_of(value)?
            .first()
            .cloned()
            .unwrap_or(Value::UNDEFINED))
    }),
    ("float", float),
    ("forceescape", |value, _| Ok(escaped(value))),
    ("format", |value, given| {
        Ok(Value::from(format::percent(
            &printed(value),
            &given.rest()?,
        )?))
    }),
    ("indent", indent),
    ("int", int),
    ("items", |value, _| {
        let pairs = if value.is_undefined() {
            Vec::new()
        } else {
            pairs_of(value)?
        };
        Ok(Generator::of(pairs.into_iter().map(pair).collect()))
    }),
    ("iterated", |value, _| {
        if is_iterable(value) {
            Ok(value.clone())
        } else {
            Err(wrong(format!("{} is not iterable", printed(value))))
        }
    }),
    ("join", join),
    ("last", |value, _| {
        Ok(items_of(value)?.last().cloned().unwrap_or(Value::UNDEFINED))
    }),
    ("length", |value, _| length(value)),
    ("list", |value, _| Ok(Value::from(items_of(value)?))),
    ("lower", |value, _| {
        Ok(Value::from(printed(value).to_lowercase()))
    }),
    ("max", |value, given| {
        extreme(value, given, Ordering::Greater)
    }),
    ("min", |value, given| extreme(value, given, Ordering::Less)),
    ("replace", replace),
    ("round", round),
    ("string", |value, _| {
        Ok(if value.as_str().is_some() {
            value.clone()
        } else {
            Value::from(printed(value))
        })
    }),
    ("title", |value, _| {
        Ok(Value::from(builtin::title(printed(value).into())))
    }),
    ("tojson", |value, given| {
        Ok(Value::from(json::to_json(value, given)?))
    }),
    ("trim", |value, given| {
        let text = printed(value);
        Ok(Value::from(given.text("chars")?.map_or_else(
            || text.trim(),
            |chars| text.trim_matches(|c| chars.contains(c)),
        )))
    }),
    ("truncate", truncate),
    ("upper", |value, _| {
        Ok(Value::from(printed(value).to_uppercase()))
    }),
    ("wordcount", |value, _| {
        Ok(Value::from(
            printed(value)
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|word| !word.is_empty())
                .count(),
        ))
    }),
];

/// Adds all of them to an environment.
pub(crate) fn add(env: &mut Environment<'_>) {
    for (name, filter) in FILTERS {
        env.add_filter(
            name,
            move |value: &Value, given: Rest<ValueOrKwargs>| -> Result<Value, JinjaError> {
                let given = given.into_values();
                let mut given = Arguments::new(&given)?;
                let result = filter(value, &mut given)?;
                given.end()?;
                Ok(result)
            },
        );
    }
    type Given = Rest<ValueOrKwargs>;
    env.add_filter("map", |state: &mut State, value: Value, given: Given| {
        builtin::map(state, value, given).map(Generator::of)
    });
    env.add_filter(
        "select",
        |state: &mut State, value: Value, test: Option<Cow<'_, str>>, given: Given| {
            builtin::select(state, value, test, given).map(Generator::of)
        },
    );
    env.add_filter(
        "reject",
        |state: &mut State, value: Value, test: Option<Cow<'_, str>>, given: Given| {
            builtin::reject(state, value, test, given).map(Generator::of)
        },
    );
    env.add_filter(
        "selectattr",
        |state: &mut State,
         value: Value,
         key: Cow<'_, str>,
         test: Option<Cow<'_, str>>,
         given: Given| {
            builtin::selectattr(state, value, key, test, given).map(Generator::of)
        },
    );
    env.add_filter(
        "rejectattr",
        |state: &mut State,
         value: Value,
         key: Cow<'_, str>,
         test: Option<Cow<'_, str>>,
         given: Given| {
            builtin::rejectattr(state, value, key, test, given).map(Generator::of)
        },
    );
    env.add_filter("reverse", |value: &Value| -> Result<Value, JinjaError> {
        let reversed = builtin::reverse(value)?;
        if reversed.kind() == ValueKind::String {
            Ok(reversed)
        } else {
            items_of(&reversed).map(Generator::of)
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
        ValueKind::Iterable => {
            value.downcast_object_ref::<Generator>().is_none()
                && value.downcast_object_ref::<View>().is_none()
        }
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

fn is_iterable(value: &Value) -> bool {
    !matches!(
        value.kind(),
        ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::Plain
    )
}

fn length(value: &Value) -> Result<Value, JinjaError> {
    if value.is_undefined() {
        return Ok(Value::from(0));
    }
    value.len().map(Value::from).ok_or_else(|| {
        wrong(format!(
            "a value of the kind {} has no length",
            value.kind()
        ))
    })
}

fn default(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given
        .next("default_value")?
        .unwrap_or_else(|| Value::from(""));
    let boolean = given.flag("boolean", false)?;
    Ok(if value.is_undefined() || boolean && !value.is_true() {
        otherwise
    } else {
        value.clone()
    })
}
