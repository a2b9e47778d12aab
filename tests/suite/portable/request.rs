//! Requests as JSON, and their patterns.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::DType;
use proptest::prelude::*;
use serde_json::{Value, json};
use tabtune::config::{TrainConfig, check_glob, glob_matches};
use tabtune::error::Refusal;
use tabtune::export::JsonEncoding;
use tabtune::optim::{Optim, ParamInfo};
use tabtune::portable::inspection;
use tabtune::state::{ModelStateTensorManifest, PortableModelImportRequest, select};
use tabtune_tests::block_on;

use super::selection::{of, request};
use super::state_g::{plain, sources, written};

#[test]
fn portable_selection_reads_requests_strictly() {
    let whole = json!({
        "selection": {"include_state_keys": ["a"], "exclude_state_keys": [], "include_patterns": ["b*"], "exclude_patterns": [], "allow_unknown_excludes": true},
        "key_remap": {"source_to_target": {"a": "b"}, "rename_state": true}, "materialization_policy": "deferred",
        "group_policy": "weights_only", "non_finite": "refuse", "verify": "header", "names": "hf",
    });
    let read = request(whole.clone());
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    assert_eq!(
        PortableModelImportRequest::default(),
        request(
            json!({"materialization_policy": "eager", "group_policy": "require_complete",
        "non_finite": "warn", "verify": "full", "names": "source"})
        )
    );
    for wrong in [
        r#"{"unknown": 1}"#,
        r#"{"selection": {"include": []}}"#,
        r#"{"key_remap": {"source_to_target": {"a": "b", "a": "c"}}}"#,
        r#"{"verify": "none"}"#,
        r#"{"key_remap": {"rename_state": 1}}"#,
        "[]",
        r#"{"key_remap": [{"a": "b"}, true]}"#,
        r#"{"verify": {"full": null}}"#,
        "{",
        "",
    ] {
        assert_eq!(
            PortableModelImportRequest::read(wrong).unwrap_err().code(),
            "config.invalid",
            "{wrong}"
        );
    }
}

#[test]
fn portable_selection_bounds_patterns() {
    let three = "{a,b,c}";
    for (pattern, good) in [
        (String::new(), false),
        ("x".repeat(1_024), true),
        ("x".repeat(1_025), false),
        ("é".repeat(512), true),
        ("é".repeat(513), false),
        // 2¹⁰ alternatives, and 3⁷.
        ("{a,b}".repeat(10), true),
        ("{a,b}".repeat(11), false),
        (three.repeat(6), true),
        (three.repeat(7), false),
        (format!("{{{}}}", ",".repeat(1_021)), true),
        ("{a".repeat(500), true),
    ] {
        assert_eq!(check_glob(&pattern), good, "{} bytes", pattern.len());
        let given = json!({"selection": {"exclude_patterns": [pattern]}});
        let codes = of(&["a"], given).map_or_else(|error| error.code(), |_| "");
        assert_eq!(codes, if good { "" } else { "select.pattern.invalid" });
    }
    // Patterns for which a matcher that tries every way would take forever.
    let started = std::time::Instant::now();
    let name = "a".repeat(1_000);
    assert!(!glob_matches(&("*a".repeat(500) + "b"), &name));
    assert!(!glob_matches(&("{*,a}".repeat(200) + "b"), &name));
    assert!(glob_matches(&"{a,b}".repeat(1_000), &name));
    assert!(started.elapsed().as_secs() < 5);
}

/// Matches a pattern by trying every way.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return name.is_empty();
    };
    match first {
        '*' => (0..=name.len()).any(|taken| matches(rest, &name[taken..])),
        '?' => !name.is_empty() && matches(rest, &name[1..]),
        '{' if rest.contains(&'}') => {
            let end = rest.iter().position(|&c| c == '}').unwrap();
            rest[..end]
                .split(|&c| c == ',')
                .any(|one| matches(&[one, &rest[end + 1..]].concat(), name))
        }
        c => name.first() == Some(c) && matches(rest, &name[1..]),
    }
}

/// Returns all names of one to five of four characters: 1,364 of them, from which every test takes 1,000.
fn names() -> Vec<String> {
    let mut longest = vec![String::new()];
    let mut all = Vec::new();
    for _ in 0..5 {
        longest = longest
            .iter()
            .flat_map(|name| ["a", "b", ".", "é"].map(|c| name.clone() + c))
            .collect();
        all.extend(longest.iter().cloned());
    }
    all
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => "[ab.é]", 2 => Just("*".to_string()), 1 => Just("?".to_string()), 1 => r"\{[ab.é*?]{0,2}(,[ab.é*?]{0,2}){0,2}\}"];
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Line 22 of ./README.md: the same matches in selections, in the groups of an optimizer and in a matcher that tries every way, on 1,000 names.
    #[test]
    fn portable_selection_has_the_patterns_of_optimizer_groups(pattern in pattern(), from in 0usize..364) {
        let names = &names()[from..from + 1_000];
        let chars: Vec<char> = pattern.chars().collect();
        let expected: BTreeSet<&String> = names.iter().filter(|name| matches(&chars, &name.chars().collect::<Vec<_>>())).collect();
        let by_glob: BTreeSet<&String> = names.iter().filter(|name| glob_matches(&pattern, name)).collect();
        prop_assert_eq!(&by_glob, &expected);
        let tensors: BTreeMap<_, _> = names.iter().map(|name| (name.clone(), ModelStateTensorManifest::parameter(name, "F32", &[]))).collect();
        let given = request(json!({"selection": {"include_patterns": [&pattern]}}));
        let part = select(&tensors, &[], &given, "state").unwrap();
        prop_assert_eq!(part.report.admitted.iter().collect::<BTreeSet<_>>(), expected.clone());
        // A group that matches nothing, and one that leaves nothing to the last group, are refused.
        let params: Vec<ParamInfo> = names.iter().map(|name| ParamInfo { name: name.clone(), shape: vec![1], dtype: DType::F32, outside_blocks: false }).collect();
        let config: TrainConfig = serde_json::from_value(json!({"groups": [{"pattern": &pattern, "frozen": true}, {"pattern": "*"}]})).unwrap();
        match Optim::new(&config, &params) {
            Ok(optim) => {
                let frozen: BTreeSet<&String> = names.iter().filter(|name| optim.frozen(name)).collect();
                prop_assert_eq!(frozen, expected);
            }
            Err(_) => prop_assert!(expected.is_empty() || expected.len() == names.len()),
        }
    }
}

/// Refused are only tensors that the request takes, under their new names.
#[test]
fn inspection_refuses_values_that_are_not_finite_if_it_is_asked_to() {
    let values = [1.0f32, f32::NAN, f32::INFINITY];
    let state = plain(&[
        ("a", "F32", &[3], values.map(f32::to_le_bytes).concat()),
        ("b", "BF16", &[1], vec![0x80, 0x3f]),
    ]);
    let json = state.export_json("g.state_dict.json", None, JsonEncoding::Base64, true);
    let manifest = state.manifest();
    let safetensors = state.export_safetensors(&manifest);
    for stream in [block_on(json).unwrap(), block_on(safetensors).unwrap()] {
        let files = sources(&written(stream));
        let refused = |asked: Value| {
            let inspection = inspection(&files, Some(request(asked)), None);
            let told = |one: Refusal| (one.code, one.subject.unwrap(), one.found.unwrap());
            Vec::from_iter(inspection.refusals.into_iter().map(told))
        };
        let renamed =
            json!({"non_finite": "refuse", "key_remap": {"source_to_target": {"a": "c"}}});
        let found = "2 NaN or infinite".to_string();
        assert_eq!(refused(renamed), [("model.non-finite", "c".into(), found)]);
        let part = json!({"non_finite": "refuse", "selection": {"include_patterns": ["b"]}});
        for taken in [json!({"non_finite": "warn"}), part] {
            assert_eq!(refused(taken), []);
        }
    }
}
