//! crate/SETTINGS.md names every key of a run's settings, with the default that the code has.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::config::{OptimizerConfig, ScheduleConfig, TrainConfig};

use super::source::{root, text};

/// Keys and defaults of the table under `heading`; an object's default is its type.
fn table(document: &str, heading: &str) -> BTreeMap<String, String> {
    let lines = document.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with('#'));
    let rows = lines
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(key, rest)| (key.to_owned(), rest.split(" |").next().unwrap_or_default().to_owned()));
    rows.collect()
}

/// What `table` should find for `settings`.
fn expected(settings: Value) -> BTreeMap<String, String> {
    let Value::Object(keys) = settings else { panic!("settings are an object") };
    let shown = |value: Value| value["type"].as_str().map_or_else(|| value.to_string(), str::to_owned);
    keys.into_iter().filter(|(key, _)| key != "type").map(|(key, value)| (key, shown(value))).collect()
}

/// Numbers may be written in any way.
fn same(found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) -> bool {
    let read = |text: &String| serde_json::from_str::<Value>(text).ok().and_then(|value| value.as_f64());
    found.keys().eq(expected.keys())
        && found.values().zip(expected.values()).all(|(a, b)| a == b || read(a).is_some() && read(a) == read(b))
}

#[test]
fn settings_are_documented_with_their_defaults() {
    let document = text(&root().join("crate/SETTINGS.md"));
    let optimizer = |name: &str| serde_json::to_value(serde_json::from_value::<OptimizerConfig>(json!({"type": name})).unwrap()).unwrap();
    let schedule = |name: &str| serde_json::to_value(serde_json::from_value::<ScheduleConfig>(json!({"type": name})).unwrap()).unwrap();
    let mut tables = vec![
        ("## Run".to_owned(), serde_json::to_value(TrainConfig::default()).unwrap()),
        ("### cosine, linear".to_owned(), schedule("cosine")),
    ];
    tables.extend(["adamw", "adafactor", "apollo", "sgd"].map(|name| (format!("### {name}"), optimizer(name))));
    tables.extend(["constant", "wsd", "infinite"].map(|name| (format!("### {name}"), schedule(name))));
    assert_eq!(schedule("linear").as_object().unwrap().len(), schedule("cosine").as_object().unwrap().len());
    for (heading, settings) in tables {
        let (found, expected) = (table(&document, &heading), expected(settings));
        assert!(same(&found, &expected), "{heading} says\n{found:?}\nand the code has\n{expected:?}");
    }
}
