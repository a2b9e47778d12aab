//! Broken and hostile files: each has exactly one right answer. The cases and their files are in `golden/hostile`.

pub mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use proptest::prelude::*;
use serde_json::Value;
use tabtune::bundle::{FileFormat, InspectReport, inspect, open_bundle};
use tabtune::formats::{ByteSource, MemorySource, safetensors_header};

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/golden/hostile/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub fn cases() -> Vec<Value> {
    let document: Value = serde_json::from_slice(&golden("expected.json")).unwrap();
    document["cases"].as_array().unwrap().clone()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Returns the bytes of a case: a file, or parts that are put together.
pub fn bytes_of(case: &Value) -> Vec<u8> {
    if let Some(file) = case["file"].as_str() {
        return golden(file);
    }
    let mut bytes = Vec::new();
    for part in case["build"].as_array().unwrap() {
        if let Some(text) = part["text"].as_str() {
            bytes.extend(text.as_bytes());
        } else if let Some(text) = part["hex"].as_str() {
            bytes.extend(hex(text));
        } else if let Some(text) = part["u64le"].as_str() {
            bytes.extend(text.parse::<u64>().unwrap().to_le_bytes());
        } else {
            bytes.extend(
                part["repeat"]
                    .as_str()
                    .unwrap()
                    .repeat(part["count"].as_u64().unwrap() as usize)
                    .as_bytes(),
            );
        }
    }
    bytes
}

/// Makes a shard of F32 [1] tensors.
pub fn shard(name: &str, tensors: &Value) -> MemorySource {
    let entries: Vec<_> = tensors
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t.as_str().unwrap().to_string(), "F32", vec![1]))
        .collect();
    let (mut bytes, _) = safetensors_header(&entries, &BTreeMap::new()).unwrap();
    bytes.extend(vec![0; 4 * entries.len()]);
    MemorySource::new(name, bytes)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_string)
}

/// Returns the differences between the answer and the expectation.
fn differences(case: &Value, report: &InspectReport) -> Vec<String> {
    let mut out = Vec::new();
    let mut same = |what: &str, expected: String, found: String| {
        if expected != found {
            out.push(format!("{what}: expected {expected}, found {found}"));
        }
    };
    same(
        "code",
        text_of(&case["answer_code"]).unwrap(),
        report.code.unwrap_or("ok").to_string(),
    );
    same(
        "stage",
        text_of(&case["stage"]).unwrap(),
        report.stage.to_string(),
    );
    for (key, found) in [("subject", &report.subject), ("found", &report.found)] {
        if let Some(expected) = text_of(&case[key]) {
            same(
                key,
                expected,
                found.clone().unwrap_or_else(|| "nothing".into()),
            );
        }
    }
    if report.ok {
        let expected: BTreeSet<&str> = case["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let found: BTreeSet<&str> = report.warnings.iter().map(|warning| warning.code).collect();
        same("warnings", format!("{expected:?}"), format!("{found:?}"));
    }
    if let Some(tensors) = case["tensors"].as_array() {
        let key = |t: &Value| {
            (
                t["name"].to_string(),
                t["dtype"].to_string(),
                t["shape"].to_string(),
            )
        };
        let expected: BTreeSet<_> = tensors.iter().map(key).collect();
        let found: BTreeSet<_> = serde_json::to_value(&report.inventory)
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(key)
            .collect();
        same("tensors", format!("{expected:?}"), format!("{found:?}"));
        same(
            "count",
            tensors.len().to_string(),
            report.tensors.to_string(),
        );
    }
    let expected: BTreeMap<String, u64> =
        serde_json::from_value(case["non_finite"].clone()).unwrap_or_default();
    same(
        "non_finite",
        format!("{expected:?}"),
        format!("{:?}", report.non_finite),
    );
    out
}

#[test]
fn every_hostile_file_gets_its_answer() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let bytes = bytes_of(case);
        assert_eq!(
            bytes.len() as u64,
            case["bytes"].as_u64().unwrap(),
            "{id}: size of the file"
        );
        let source = MemorySource::new(case["file"].as_str().unwrap_or(id), bytes);
        let shards = case["shards"].as_object().into_iter().flatten();
        let siblings = || {
            Ok(shards
                .map(|(name, tensors)| Rc::new(shard(name, tensors)) as Rc<dyn ByteSource>)
                .collect())
        };
        let report = inspect(
            &source,
            FileFormat::from_word(case["format"].as_str().unwrap()),
            siblings,
            true,
        );
        wrong.extend(
            differences(case, &report)
                .into_iter()
                .map(|text| format!("{id}: {text}")),
        );
    }
    println!("{} cases", cases.len());
    assert!(cases.len() >= 128, "{} cases", cases.len());
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Returns small files that open, in both formats with every kind of metadata.
fn sound() -> Vec<(String, FileFormat, Vec<u8>)> {
    let opened = |case: &Value| {
        case["stage"] == "ok" && matches!(case["format"].as_str(), Some("safetensors" | "gguf"))
    };
    let sound = |case: &Value| {
        let format = FileFormat::from_word(case["format"].as_str().unwrap()).unwrap();
        (
            case["id"].as_str().unwrap().to_string(),
            format,
            bytes_of(case),
        )
    };
    cases()
        .iter()
        .filter(|case| opened(case))
        .map(sound)
        .collect()
}

/// Reads a file in both ways that the crate offers: as a report, and as a model.
fn answer(name: &str, format: FileFormat, bytes: &[u8]) -> InspectReport {
    let source = MemorySource::new(name, bytes);
    let config = br#"{"model_type":"llama","vocab_size":4,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":1,"max_position_embeddings":8}"#;
    let files: Vec<Rc<dyn ByteSource>> = match format {
        FileFormat::Gguf => vec![Rc::new(source.clone())],
        _ => vec![
            Rc::new(source.clone()),
            Rc::new(MemorySource::new("config.json", *config)),
        ],
    };
    if let Ok(bundle) = open_bundle(files) {
        bundle
            .names()
            .iter()
            .for_each(|name| drop(bundle.read_f32(name)));
    }
    inspect(&source, Some(format), || Ok(vec![]), true)
}

#[test]
fn cut_files_are_refused_at_every_length() {
    for (id, format, bytes) in sound() {
        let lenient = answer("f", format, &bytes)
            .warnings
            .iter()
            .any(|warning| warning.code == "gguf.padding.final-absent");
        for len in 0..bytes.len() {
            let report = answer("f", format, &bytes[..len]);
            let code = report.code.unwrap_or("ok");
            // A cut in the padding between two tensors leaves the second one outside.
            let cut = [".truncated", ".past-end", ".json", ".start", ".out-of-file"]
                .iter()
                .any(|end| code.ends_with(end));
            // Only missing zero bytes after the last tensor, or a tensor without bytes, cannot be noticed.
            let padding = format == FileFormat::Gguf && bytes[len..].iter().all(|&byte| byte == 0);
            assert!(
                cut || padding && report.ok || lenient && report.ok,
                "{id} cut to {len}: {code}"
            );
        }
    }
}

#[test]
fn flipped_bits_end_in_an_answer() {
    for (_, format, bytes) in sound()
        .into_iter()
        .filter(|(_, _, bytes)| bytes.len() < 300)
    {
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let report = answer("f", format, &flipped);
            assert_eq!(report.ok, report.code.is_none());
            assert!(report.code.is_none_or(|code| code.contains('.')));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_end_in_an_answer(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        tail in prop::collection::vec(any::<u8>(), 0..16),
    ) {
        let files = sound();
        let (_, format, mut bytes) = files[which.index(files.len())].clone();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        bytes.extend(tail);
        let report = answer("f", format, &bytes);
        prop_assert_eq!(report.ok, report.code.is_none());
    }

    #[test]
    fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for word in ["safetensors", "gguf", "index", "peft", "json"] {
            answer("f", FileFormat::from_word(word).unwrap(), &bytes);
        }
    }

    /// Every header that the crate writes is accepted by the reference implementation, with the same tensors.
    #[test]
    fn written_safetensors_open_in_the_reference(
        shapes in prop::collection::btree_map("[a-z.]{1,12}", prop::collection::vec(0usize..4, 0..4), 0..6)
    ) {
        let entries: Vec<_> = shapes.into_iter().map(|(name, shape)| (name, "F32", shape)).collect();
        let (mut bytes, spans) = safetensors_header(&entries, &BTreeMap::from([("format".into(), "pt".into())])).unwrap();
        let data = spans.iter().map(|span| span.1).max().unwrap_or(0);
        bytes.extend(vec![0; data as usize]);
        let reference = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let report = answer("model.safetensors", FileFormat::Safetensors, &bytes);
        prop_assert!(report.ok, "{:?}", report.code);
        prop_assert_eq!(report.tensors, entries.len());
        for (name, _, shape) in entries {
            prop_assert_eq!(reference.tensor(&name).unwrap().shape().to_vec(), shape);
        }
    }
}
