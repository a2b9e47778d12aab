//! Selecting a part of state G, and renaming it.

use serde_json::{Value, json};
use tabtune::Error;
use tabtune::formats::Digest;
use tabtune::state::{
    ModelStateTensorManifest, PortableModelImportRequest, Selected, check_groups, leaf, select,
    weights_digest,
};

use super::vectors::{Tensors, refusals, state_g, told};

pub fn request(given: Value) -> PortableModelImportRequest {
    PortableModelImportRequest::read(&given.to_string()).unwrap()
}

fn of_g(given: Value) -> Result<Selected, Error> {
    let (tensors, groups) = state_g();
    select(&tensors, &groups, &request(given), "state")
}

/// Makes parameters of these names.
fn named(names: &[&str]) -> Tensors {
    names
        .iter()
        .map(|name| {
            (
                name.to_string(),
                ModelStateTensorManifest::parameter(name, "F32", &[2]),
            )
        })
        .collect()
}

pub fn of(names: &[&str], given: Value) -> Result<Selected, Error> {
    select(&named(names), &[], &request(given), "state")
}

fn warnings(selected: &Selected) -> Vec<(&str, &str)> {
    selected
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect()
}

fn finding(code: &'static str, subject: &str) -> (&'static str, String) {
    (code, subject.to_string())
}

const HEAD: [&str; 4] = [
    "head.weight",
    "head.weight:m",
    "head.weight:step",
    "head.weight:v",
];

#[test]
fn portable_selection_of_everything_changes_nothing() {
    let (tensors, groups) = state_g();
    let all = of_g(json!({})).unwrap();
    assert_eq!(
        all.entries
            .iter()
            .map(|entry| entry.tensor.clone())
            .collect::<Vec<_>>(),
        tensors.values().cloned().collect::<Vec<_>>()
    );
    assert!(
        all.entries
            .iter()
            .all(|entry| entry.source_key == entry.tensor.state_key)
    );
    assert_eq!((all.groups, all.warnings), (groups, vec![]));
    let keys: Vec<String> = tensors.into_keys().collect();
    assert_eq!(
        (all.report.admitted, all.report.dropped, all.report.renamed),
        (keys, vec![], vec![])
    );
    assert_eq!(
        (all.report.groups_admitted, all.report.groups_dropped),
        (vec!["embedding".into(), "decoder.head".into()], vec![])
    );
}

/// Lines 6 and 11 of ./README.md: the head's four tensors under other names are a group as before.
#[test]
fn portable_selection_takes_and_renames_a_group() {
    let by_hand: Value = HEAD
        .iter()
        .map(|key| (key.to_string(), json!(key.replace("head", "output"))))
        .collect();
    let requests = [
        json!({"selection": {"include_state_keys": HEAD}, "key_remap": {"source_to_target": by_hand}}),
        json!({"selection": {"include_patterns": ["head.*"]}, "key_remap": {"source_to_target": {"head.weight": "output.weight"}, "rename_state": true}}),
        json!({"selection": {"exclude_patterns": ["embed*"]}, "key_remap": {"source_to_target": {"head.weight": "output.weight"}, "rename_state": true}}),
    ];
    for given in requests {
        let part = of_g(given).unwrap();
        let names = HEAD.map(|key| key.replace("head", "output"));
        assert_eq!(part.report.admitted, names);
        assert_eq!(
            part.report.dropped,
            ["embed.weight", "embed.weight:momentum", "embed.weight:step"]
        );
        assert_eq!(
            part.report.renamed,
            HEAD.map(|key| (key.to_string(), key.replace("head", "output")))
        );
        assert_eq!(
            (part.report.groups_admitted, part.report.groups_dropped),
            (vec!["decoder.head".into()], vec!["embedding".into()])
        );
        assert_eq!(part.warnings, []);
        let (_, groups) = state_g();
        let group = &part.groups[0];
        assert_eq!(
            (part.groups.len(), group.group_id.as_str()),
            (1, "decoder.head")
        );
        assert_eq!(group.model_tree_path, groups[1].model_tree_path);
        assert_eq!(group.members[0].keys().collect::<Vec<_>>(), names);
        // The renamed groups rebuild on the renamed tensors.
        let tensors: Tensors = part
            .entries
            .iter()
            .map(|entry| (entry.tensor.state_key.clone(), entry.tensor.clone()))
            .collect();
        check_groups(&tensors, &part.groups, &|_| Some(7), "state").unwrap();
        assert_eq!(part.entries[1].source_key, "head.weight:m");
        assert_eq!(
            part.entries[1].tensor.model_tree_path,
            ["head", "weight", "m"]
        );
    }
    // Without rename_state the state keeps its name.
    let part =
        of_g(json!({"selection": {"include_patterns": ["head*"]}, "key_remap": {"source_to_target": {"head.weight": "z"}}})).unwrap();
    assert_eq!(
        part.report.admitted,
        ["head.weight:m", "head.weight:step", "head.weight:v", "z"]
    );
    assert_eq!(
        part.groups[0].members[0].keys().collect::<Vec<_>>(),
        ["z", "head.weight:m", "head.weight:step", "head.weight:v"]
    );
    // A name given to a state tensor overrides its parameter's.
    let remap = json!({"source_to_target": {"head.weight": "z", "head.weight:v": "other"}, "rename_state": true});
    assert_eq!(
        of_g(json!({"key_remap": remap})).unwrap().groups[1].members[0]
            .keys()
            .collect::<Vec<_>>(),
        ["z", "z:m", "z:step", "other"]
    );
}

/// Lines 6 and 12 of ./README.md.
#[test]
fn portable_selection_takes_no_group_apart() {
    let refusal = refusals(of_g(
        json!({"selection": {"include_state_keys": ["embed.weight"]}}),
    ));
    assert_eq!(refusal.len(), 1);
    assert_eq!(
        (refusal[0].code, refusal[0].subject.as_deref()),
        ("select.group.incomplete", Some("embedding"))
    );
    assert_eq!(
        refusal[0].found.as_deref(),
        Some("embed.weight:momentum, embed.weight:step")
    );
    // The parameter first, then state words in ascending order, none left out.
    let refusal = refusals(of_g(
        json!({"selection": {"include_state_keys": ["head.weight:step"]}}),
    ));
    assert_eq!(
        refusal[0].found.as_deref(),
        Some("head.weight, head.weight:m, head.weight:v")
    );
    // Long lists are complete, and each name is cut.
    let (mut tensors, mut groups) = state_g();
    let members: Vec<Value> = (0..40)
        .map(|n| json!({"parameter": format!("{n:02}{}", "x".repeat(80)), "state": {}}))
        .collect();
    groups[0].members = serde_json::from_value(Value::Array(members)).unwrap();
    for member in &groups[0].members {
        tensors.insert(
            member.parameter.clone(),
            ModelStateTensorManifest::parameter(&member.parameter, "F32", &[]),
        );
    }
    let include =
        request(json!({"selection": {"include_state_keys": [groups[0].members[0].parameter]}}));
    let found = refusals(select(&tensors, &groups, &include, "state"))[0]
        .found
        .clone()
        .unwrap();
    assert_eq!(
        found
            .split(", ")
            .map(|name| name.chars().count())
            .collect::<Vec<_>>(),
        [65; 39]
    );
}

/// Lines 7 and 13 of ./README.md.
#[test]
fn portable_selection_refuses_two_sources_of_one_name() {
    let given = json!({"key_remap": {"source_to_target": {"head.weight:m": "shared", "head.weight": "shared"}}});
    let refusal = refusals(of_g(given));
    assert_eq!(
        (
            refusal.len(),
            refusal[0].code,
            refusal[0].subject.as_deref()
        ),
        (1, "remap.target.collision", Some("shared"))
    );
    assert_eq!(
        refusal[0].found.as_deref(),
        Some("head.weight, head.weight:m")
    );
    // A new name that another tensor keeps is refused; not one of a tensor that is left out.
    let remap = json!({"source_to_target": {"a": "b"}});
    let refusal = refusals(of(&["a", "b"], json!({"key_remap": remap})));
    assert_eq!(
        (refusal[0].code, refusal[0].found.as_deref()),
        ("remap.target.collision", Some("a, b"))
    );
    assert_eq!(
        of(
            &["a", "b"],
            json!({"key_remap": remap, "selection": {"exclude_state_keys": ["b"]}})
        )
        .unwrap()
        .report
        .admitted,
        ["b"]
    );
    // Invalid names.
    let long = "x".repeat(1_025);
    let remap = json!({"source_to_target": {"a": "", "b": long, "c": "c\u{7}", "d": "x".repeat(1_024), "e": "é b"}});
    let code = "remap.target.invalid";
    let answer = of(&["a", "b", "c", "d", "e"], json!({"key_remap": remap}));
    assert_eq!(
        told(answer),
        [
            finding(code, ""),
            finding(code, "c\\u{7}"),
            finding(code, &("x".repeat(64) + "…"))
        ]
    );
    // A name that the source has already is not checked.
    assert!(of(&["c\u{7}"], json!({})).is_ok());
}

/// Line 7 of ./README.md: the order of a request does not matter.
#[test]
fn portable_selection_is_the_same_in_every_order() {
    let keys = ["m1", "a0", "z9", "embed.weight", "head.weight"];
    let patterns = ["{", "", "nothing*", "embed*"];
    let remap = [
        ("z1", "x"),
        ("a1", "y"),
        ("embed.weight", "shared"),
        ("head.weight", "shared"),
    ];
    let text = |reversed: bool| {
        let (mut keys, mut patterns, mut remap) =
            (keys.to_vec(), patterns.to_vec(), remap.to_vec());
        if reversed {
            keys.reverse();
            patterns.reverse();
            remap.reverse();
        }
        let remap = remap
            .iter()
            .map(|(old, new)| format!("\"{old}\":\"{new}\""))
            .collect::<Vec<_>>()
            .join(",");
        format!(
            r#"{{"selection":{{"include_state_keys":{keys:?},"include_patterns":{patterns:?}}},"key_remap":{{"source_to_target":{{{remap}}}}}}}"#
        )
    };
    let (tensors, groups) = state_g();
    let answers = [false, true].map(|reversed| {
        let request = PortableModelImportRequest::read(&text(reversed)).unwrap();
        (
            refusals(select(&tensors, &groups, &request, "state")),
            request.in_order(),
        )
    });
    assert_eq!(answers[0], answers[1]);
    let codes: Vec<_> = answers[0]
        .0
        .iter()
        .map(|one| (one.code, one.subject.as_deref().unwrap()))
        .collect();
    let expected = [
        ("select.pattern.invalid", ""),
        ("select.include.missing", "a0"),
        ("select.include.missing", "m1"),
        ("select.include.missing", "z9"),
        ("remap.source.missing", "a1"),
        ("remap.source.missing", "z1"),
        ("remap.target.collision", "shared"),
        ("select.group.incomplete", "decoder.head"),
    ];
    assert_eq!(codes, expected);
}

/// Line 21 of ./README.md.
#[test]
fn portable_selection_lists_every_absent_key() {
    let given = json!({"selection": {"include_state_keys": ["a", "gone", "absent"]},
        "key_remap": {"source_to_target": {"nowhere": "x", "a": "c", "b": "c"}}});
    // b is not selected, so nothing collides.
    let expected = [
        finding("select.include.missing", "absent"),
        finding("select.include.missing", "gone"),
        finding("remap.source.missing", "nowhere"),
    ];
    assert_eq!(told(of(&["a", "b"], given)), expected);
    let given = json!({"selection": {"include_state_keys": ["a", "b", "gone"]},
        "key_remap": {"source_to_target": {"nowhere": "x", "a": "c", "b": "c"}}});
    let expected = [
        finding("select.include.missing", "gone"),
        finding("remap.source.missing", "nowhere"),
        finding("remap.target.collision", "c"),
    ];
    assert_eq!(told(of(&["a", "b"], given)), expected);
    // Excludes that do not exist.
    let exclude = json!(["nowhere", "b", "absent"]);
    let answer = of(
        &["a", "b"],
        json!({"selection": {"exclude_state_keys": exclude}}),
    );
    assert_eq!(
        told(answer),
        [
            finding("select.exclude.unknown", "absent"),
            finding("select.exclude.unknown", "nowhere")
        ]
    );
    let part = of(
        &["a", "b"],
        json!({"selection": {"exclude_state_keys": exclude, "allow_unknown_excludes": true}}),
    )
    .unwrap();
    assert_eq!(
        warnings(&part),
        [
            ("select.exclude.unknown", "absent"),
            ("select.exclude.unknown", "nowhere")
        ]
    );
    assert_eq!(
        (part.report.admitted, part.report.dropped),
        (vec!["a".to_string()], vec!["b".to_string()])
    );
    // Warnings.
    let given = json!({"selection": {"include_state_keys": ["a"], "include_patterns": ["n*"], "exclude_patterns": ["a", "o*"]},
        "key_remap": {"source_to_target": {"b": "c"}}});
    let part = of(&["a", "b"], given).unwrap();
    let expected = [
        ("select.pattern.unmatched", "n*"),
        ("select.pattern.unmatched", "o*"),
        ("remap.source.unselected", "b"),
        ("select.result.empty", "state"),
    ];
    assert_eq!(warnings(&part), expected);
    assert_eq!(part.entries, []);
}

/// Line 22 of ./README.md: a swap exchanges payloads, and a chain moves each by one.
#[test]
fn portable_selection_renames_all_at_once() {
    let payload = |key: &str| Digest::of(key.as_bytes());
    let digest = |part: &Selected| {
        let leaves = part.entries.iter().map(|entry| {
            let key = &entry.tensor.state_key;
            (
                key.clone(),
                leaf(
                    key,
                    &entry.tensor.dtype,
                    &entry.tensor.shape,
                    payload(&entry.source_key),
                ),
            )
        });
        weights_digest(&leaves.collect())
    };
    for (remap, moved) in [
        (
            json!({"a": "b", "b": "a"}),
            [("a", "b"), ("b", "a"), ("c", "c")],
        ),
        (
            json!({"a": "b", "b": "d"}),
            [("b", "a"), ("c", "c"), ("d", "b")],
        ),
        (
            json!({"a": "b", "b": "c", "c": "a"}),
            [("a", "c"), ("b", "a"), ("c", "b")],
        ),
    ] {
        let part = of(
            &["a", "b", "c"],
            json!({"key_remap": {"source_to_target": remap}}),
        )
        .unwrap();
        let found: Vec<_> = part
            .entries
            .iter()
            .map(|entry| (entry.tensor.state_key.as_str(), entry.source_key.as_str()))
            .collect();
        assert_eq!(found, moved);
        let by_hand =
            moved.map(|(new, old)| (new.to_string(), leaf(new, "F32", &[2], payload(old))));
        assert_eq!(digest(&part), weights_digest(&by_hand.into()));
        assert_ne!(
            digest(&part),
            digest(&of(&["a", "b", "c"], json!({})).unwrap())
        );
    }
}

/// Line 23 of ./README.md.
#[test]
fn portable_selection_of_weights_only_lists_what_it_leaves() {
    let given = json!({"selection": {"include_patterns": ["head*"]}, "group_policy": "weights_only",
        "key_remap": {"source_to_target": {"head.weight": "output.weight", "head.weight:m": "output.weight"}, "rename_state": true}});
    let part = of_g(given).unwrap();
    assert_eq!(
        (part.report.admitted, part.groups),
        (vec!["output.weight".to_string()], vec![])
    );
    let (tensors, _) = state_g();
    assert_eq!(
        part.report.dropped,
        tensors
            .into_keys()
            .filter(|key| key != "head.weight")
            .collect::<Vec<_>>()
    );
    assert_eq!(part.report.groups_dropped, ["embedding", "decoder.head"]);
    let codes: Vec<_> = part
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect();
    assert_eq!(codes, [("remap.source.unselected", "head.weight:m")]);
    // The same for a selection of everything.
    let all = of_g(json!({"group_policy": "weights_only"})).unwrap();
    assert_eq!(
        (all.report.admitted, all.groups.len()),
        (vec!["embed.weight".into(), "head.weight".into()], 0)
    );
}

/// Line 24 of ./README.md: nine findings in the order of the steps.
#[test]
fn portable_selection_tells_every_finding_at_once() {
    let given = json!({
        "selection": {"include_state_keys": ["x1", "x3", "x2", "embed.weight", "embed.weight:step", "head.weight", "head.weight:m"]},
        "key_remap": {"source_to_target": {"y2": "a", "y1": "b", "embed.weight": "s", "embed.weight:step": "s", "head.weight": "r", "head.weight:m": "r"}},
    });
    let list = refusals(of_g(given));
    let found: Vec<_> = list
        .iter()
        .map(|one| {
            (
                one.code,
                one.subject.as_deref().unwrap(),
                one.found.as_deref().unwrap_or(""),
            )
        })
        .collect();
    let expected = [
        ("select.include.missing", "x1", ""),
        ("select.include.missing", "x2", ""),
        ("select.include.missing", "x3", ""),
        ("remap.source.missing", "y1", ""),
        ("remap.source.missing", "y2", ""),
        ("remap.target.collision", "r", "head.weight, head.weight:m"),
        (
            "remap.target.collision",
            "s",
            "embed.weight, embed.weight:step",
        ),
        (
            "select.group.incomplete",
            "decoder.head",
            "head.weight:step, head.weight:v",
        ),
        (
            "select.group.incomplete",
            "embedding",
            "embed.weight:momentum",
        ),
    ];
    assert_eq!(found, expected);
    assert!(list.iter().all(|one| one.artifact == "state"));
}
