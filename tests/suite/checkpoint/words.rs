use serde_json::{Value, json};
use tabtune::Error;
use tabtune::checkpoint::{FORMAT_VERSION, MANIFEST};
use tabtune::formats::safetensors_header;
use tabtune_tests::{block_on, cpu};

use super::{edited, file, opened, replaced};
use crate::resume::{Files, config, dataset, go, save, start};

fn saved() -> Files {
    let mut run = start(
        config(
            &json!({"type": "adamw"}),
            "f32",
            &json!({"type": "constant"}),
        ),
        &cpu().inner(),
    );
    go(&mut run, 2);
    save(&run)
}

fn refused(files: Files) -> Error {
    opened(files).map(|_| ()).unwrap_err()
}

/// Returns the code of a refusal and the path that it names.
fn path(files: Files) -> (&'static str, String) {
    match refused(files) {
        Error::CheckpointCorrupt { what, .. } => ("checkpoint.corrupt", what),
        other => panic!("{other}"),
    }
}

#[test]
fn manifest_that_is_cut_or_of_another_shape_is_corrupt_and_its_path_is_named() {
    opened(saved()).unwrap();
    let mut cut = saved();
    file(&mut cut, MANIFEST).truncate(99);
    assert_eq!(path(cut), ("checkpoint.corrupt", MANIFEST.to_string()));
    let cases = [
        ("progress.completed_steps", json!(-1)),
        ("progress.tokens", json!(1u64 << 53)),
        ("progress.schedule_start", json!(1.5)),
        ("loader.epoch", json!(u64::MAX)),
        ("loader.cursor", json!(-3)),
        ("tensors", json!([])),
        ("groups", json!("all")),
        ("identity.revision", json!(7)),
        ("tokenizer.record", json!("none")),
        ("environment", json!(null)),
        ("train", json!(7)),
        ("files", json!({})),
        ("unknown", json!(1)),
    ];
    for (key, value) in cases {
        let files = edited(saved(), |json| {
            *json
                .pointer_mut(&format!("/{}", key.replace('.', "/")))
                .unwrap_or(&mut json!(0)) = value.clone()
        });
        let files = if key == "unknown" {
            edited(files, |json| json[key] = value)
        } else {
            files
        };
        // For counters of a run's progress the whole path is reported.
        let told = if key.starts_with("progress.") || key.starts_with("loader.") {
            key
        } else {
            key.split('.').next().unwrap()
        };
        assert_eq!(path(files), ("checkpoint.corrupt", told.to_string()));
    }
    let without = |key: &'static str| {
        edited(saved(), |json| {
            drop(json.as_object_mut().unwrap().remove(key))
        })
    };
    for key in [
        "identity",
        "tensors",
        "groups",
        "tokenizer",
        "base",
        "environment",
        "model",
        "data_digest",
    ] {
        assert_eq!(path(without(key)).1, key);
    }
    // A duplicate key.
    let mut twice = saved();
    let text = String::from_utf8(file(&mut twice, MANIFEST).clone())
        .unwrap()
        .replacen('{', "{\"precision\": \"f32\",", 1);
    *file(&mut twice, MANIFEST) = text.into_bytes();
    assert_eq!(path(twice).1, "precision");
    // Another number of digests, and a key that no file has.
    assert_eq!(
        path(edited(saved(), |json| json["files"][0]["pieces"] = json!([]))).1,
        "files[0].pieces"
    );
    assert_eq!(
        path(edited(saved(), |json| json["files"][1]["sha256"] =
            json!("0".repeat(64))))
        .1,
        "files"
    );
}

#[test]
fn data_cursor_past_the_data_is_corrupt() {
    let checkpoint = opened(edited(saved(), |json| json["loader"]["cursor"] = json!(67))).unwrap();
    let resumed = block_on(checkpoint.resume(
        dataset(),
        None,
        &[],
        &cpu().inner(),
        &tabtune::interrupt::Interrupt::none(),
    ));
    let error = resumed.map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::CheckpointCorrupt { what, .. } if what == "loader.cursor"),
        "{error}"
    );
}

#[test]
fn another_format_is_a_version_and_no_damage() {
    for version in [0, FORMAT_VERSION + 1] {
        let error = refused(edited(saved(), |json| json["version"] = json!(version)));
        assert_eq!(
            (error.code(), error.kind()),
            ("checkpoint.version", "CHECKPOINT_VERSION")
        );
    }
}

#[test]
fn file_of_another_length_and_piece_of_other_bytes_have_words_of_their_own() {
    let mut longer = saved();
    file(&mut longer, "model.safetensors").push(0);
    let error = refused(longer);
    assert_eq!(
        (error.code(), error.kind()),
        ("checkpoint.file.length", "CHECKPOINT_CORRUPT")
    );
    for name in ["model.safetensors", "optimizer.safetensors", "config.json"] {
        let mut flipped = saved();
        *file(&mut flipped, name).last_mut().unwrap() ^= 1;
        let error = refused(flipped);
        assert_eq!(
            (error.code(), error.kind()),
            ("checkpoint.chunk.hash", "CHECKPOINT_CORRUPT")
        );
        assert!(matches!(error, Error::CheckpointHash { file, piece: 0, .. } if file == name));
    }
    let mut absent = saved();
    absent.retain(|(name, _)| name != "config.json");
    assert_eq!(path(absent).1, "config.json");
}

/// Makes an optimizer file of these entries: name, dtype, shape, bytes.
fn optimizer(entries: &[(&str, &'static str, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let heads: Vec<_> = entries
        .iter()
        .map(|(name, dtype, shape, _)| (name.to_string(), *dtype, shape.clone()))
        .collect();
    let (mut file, spans) = safetensors_header(&heads, &Default::default()).unwrap();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&at| spans[at].0);
    order.into_iter().for_each(|at| file.extend(&entries[at].3));
    file
}

#[test]
fn optimizer_state_that_does_not_fit_is_refused_with_all_names() {
    let step = |n: u64| n.to_le_bytes().to_vec();
    let entries = [
        ("model.norm.weight:m", "F32", vec![8], vec![0; 32]),
        ("model.norm.weight:step", "U64", vec![], step(1 << 53)),
        ("model.norm.weight:v", "BF16", vec![8], vec![0; 16]),
        (
            "model.embed_tokens.weight:m",
            "F32",
            vec![8, 13],
            vec![0; 416],
        ),
        ("nobody:step", "U64", vec![], step(1)),
    ];
    let files = replaced(saved(), "optimizer.safetensors", optimizer(&entries));
    // The manifest's groups and tensors contradict each other: all contradictions are reported.
    let Error::Refused(list) = refused(files.clone()) else {
        panic!("opened")
    };
    let found: Vec<(&str, &str)> = list
        .iter()
        .map(|refusal| (refusal.code, refusal.subject.as_deref().unwrap()))
        .collect();
    for expected in [
        (
            "state.group.member-missing",
            "model.layers.0.mlp.up_proj.weight:step",
        ),
        ("state.group.state-shape", "model.embed_tokens.weight:m"),
        ("state.tensor.orphan", "nobody:step"),
        ("state.step.range", "model.norm.weight:step"),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
}

/// Iterates over the members of every group.
fn members(json: &mut Value) -> impl Iterator<Item = &mut Value> {
    json["groups"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|group| group["members"].as_array_mut().unwrap())
}

#[test]
fn state_that_is_absent_though_a_parameter_should_have_it_is_refused() {
    // A parameter without state begins a new one.
    let none = edited(
        replaced(saved(), "optimizer.safetensors", optimizer(&[])),
        |json| {
            members(json).for_each(|member| member["state"] = json!({}));
            json["groups"][0]["applied_steps"] = json!(0);
        },
    );
    block_on(opened(none).unwrap().resume(
        dataset(),
        None,
        &[],
        &cpu().inner(),
        &Default::default(),
    ))
    .unwrap();
    // A parameter with state in the file although the checkpoint lists none.
    let unsaid = edited(saved(), |json| {
        members(json)
            .filter(|member| member["parameter"] == "model.norm.weight")
            .for_each(|member| member["state"] = json!({}));
    });
    let Error::Refused(list) = refused(unsaid) else {
        panic!("opened")
    };
    let orphans =
        ["m", "step", "v"].map(|word| ("state.tensor.orphan", format!("model.norm.weight:{word}")));
    assert_eq!(
        list.iter()
            .map(|refusal| (refusal.code, refusal.subject.clone().unwrap()))
            .collect::<Vec<_>>(),
        orphans
    );
}
