//! Memory while opening files: manifests and other documents of tabtune that need much of it.

use std::rc::Rc;

use tabtune::checkpoint::{Checkpoint, CheckpointBase, MANIFEST};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::portable::{ModelAdapterDelta, open_gguf, open_safetensors};
use tabtune::state::{NamePolicy, PortableModelImportRequest, StateManifest};

use crate::hostile::rows::{gg, tensor};

use super::opening::{MAX_COUNT, Open, check_all, large, list, name, safetensors, same};

const MANIFEST_TEXT: Open =
    |file| drop(StateManifest::read(std::str::from_utf8(file).unwrap(), "f"));
const REQUEST: Open = |file| {
    drop(PortableModelImportRequest::read(
        std::str::from_utf8(file).unwrap(),
    ))
};
const CHECKPOINT: Open = |file| {
    drop(Checkpoint::open_with(
        vec![Rc::new(MemorySource::new(MANIFEST, file)) as Rc<dyn ByteSource>],
        CheckpointBase::Absent,
        true,
    ))
};
const PORTABLE: Open = |file| {
    drop(open_safetensors(vec![
        Rc::new(MemorySource::new("f.safetensors", file)) as Rc<dyn ByteSource>,
    ]))
};
const PORTABLE_GGUF: Open = |file| {
    drop(open_gguf(
        &vec![Rc::new(MemorySource::new("f.gguf", file)) as Rc<dyn ByteSource>],
        NamePolicy::Source,
    ))
};
const DELTA: Open = |file| {
    drop(ModelAdapterDelta::open(Rc::new(MemorySource::new(
        "f.safetensors",
        file,
    ))))
};

/// Line 32 of tests/suite/portable/README.md, for manifests and other documents of tabtune.
#[test]
fn opening_holds_little_memory_of_manifests() {
    let zeros = same("0");
    let base = r#"{"format":"tabtune.manifest","version":1,"identity":{"model_family":"","revision":"","checkpoint_family":""}"#;
    let manifest = |tensors: &str, groups: &str, more: &str| {
        format!(r#"{base},"tensors":{{{tensors}}},"groups":[{groups}]{more}}}"#)
    };
    let record = |name: &str, path: &str| {
        format!(r#""{name}":{{"path":[{path}],"role":"buffer","dtype":"","shape":[],"file":""}}"#)
    };
    let group = |optimizer: &str, more: &str, members: &str| {
        format!(
            r#"{{"group_id":"","class":"mixed","model_tree_path":[],"optimizer":{{"kind":"sgd"{optimizer}}},"parameter_semantics":{{}}{more},"members":[{members}],"applied_steps":0,"residency_policy":{{"step":"host","idle":"host"}},"residency":"host"}}"#
        )
    };
    let member = |name: String| format!(r#"{{"parameter":"{name}","state":{{"m":""}}}}"#);
    let scheduler = format!(r#","scheduler":{{"kind":"a","config":[{zeros}],"start":null}}"#);
    // As many as a path, an optimizer and a manifest may have.
    let names = "\"\",".repeat(32)[..95].to_string();
    let settings = (0..63)
        .map(|n| format!(",\"{}\":0", name(n)))
        .collect::<String>();
    let full = group(&settings, "", "").replace(
        "\"model_tree_path\":[]",
        &format!("\"model_tree_path\":[{names}]"),
    );
    let texts: [(&'static str, &dyn Fn() -> String); 22] = [
        ("zeros", &|| format!("[{zeros}]")),
        ("an unknown field", &|| {
            manifest("", "", &format!(",\"x\":[{zeros}]"))
        }),
        ("many unknown fields", &|| {
            manifest(
                "",
                "",
                &format!(",{}", list(large(), |name| format!("\"{name}\":0"))),
            )
        }),
        ("tensors", &|| {
            manifest(&list(large(), |name| record(&name, "")), "", "")
        }),
        ("tensors of zeros", &|| {
            manifest(&list(large(), |name| format!("\"{name}\":0")), "", "")
        }),
        ("a path", &|| manifest(&record("a", &same("\"\"")), "", "")),
        ("paths", &|| {
            manifest(&list(large(), |name| record(&name, &names)), "", "")
        }),
        ("groups of zeros", &|| manifest("", &zeros, "")),
        ("groups", &|| {
            manifest("", &list(large(), |_| group("", "", "")), "")
        }),
        ("full groups", &|| {
            manifest(
                "",
                &format!("{full},").repeat(10_000)[..10_000 * (full.len() + 1) - 1],
                "",
            )
        }),
        ("members", &|| {
            manifest("", &group("", "", &list(large(), member)), "")
        }),
        ("tensors and members", &|| {
            manifest(
                &list(large() / 2, |name| record(&name, "")),
                &group("", "", &list(large() / 4, member)),
                "",
            )
        }),
        ("members of zeros", &|| {
            manifest("", &group("", "", &zeros), "")
        }),
        ("hyperparameters", &|| {
            manifest(
                "",
                &group(
                    &format!(",{}", list(large(), |name| format!("\"{name}\":0"))),
                    "",
                    "",
                ),
                "",
            )
        }),
        ("an hyperparameter of zeros", &|| {
            manifest("", &group(&format!(",\"x\":[{zeros}]"), "", ""), "")
        }),
        ("a schedule of zeros", &|| {
            manifest("", &group("", &scheduler, ""), "")
        }),
        ("a path of a group", &|| {
            manifest(
                "",
                &group("", &format!(",\"model_tree_path\":[{}]", same("\"\"")), ""),
                "",
            )
            .replace("\"model_tree_path\":[],", "")
        }),
        ("a contract of zeros", &|| {
            manifest("", "", &format!(",\"profile_contract\":[{zeros}]"))
        }),
        ("formats", &|| {
            manifest(
                "",
                "",
                &format!(",\"preferred_formats\":[{}]", same("\"\"")),
            )
        }),
        ("files", &|| {
            manifest(
                "",
                "",
                &format!(
                    ",\"files\":[{}]",
                    same(r#"{"name":"","bytes":0,"pieces":[]}"#)
                ),
            )
        }),
        ("pieces", &|| {
            manifest(
                "",
                "",
                &format!(
                    r#","files":[{{"name":"","bytes":0,"pieces":[{}]}}]"#,
                    same("\"\"")
                ),
            )
        }),
        ("files of a base", &|| {
            manifest(
                "",
                "",
                &format!(
                    r#","base":{{"name":"","format":"","files":[{}]}}"#,
                    same(r#"{"name":"","bytes":0}"#)
                ),
            )
        }),
    ];
    check_all(texts.into_iter().flat_map(|(what, text)| {
        let text = text();
        let checkpoint = text.replace(
            "tabtune.manifest\",\"version\":1",
            "tabtune.checkpoint\",\"version\":3",
        );
        let inside =
            |key: &str| safetensors(&serde_json::json!({"__metadata__": {key: text}}).to_string());
        let mut files: Vec<(&str, Open, Vec<u8>)> =
            vec![("manifest", MANIFEST_TEXT, text.clone().into_bytes())];
        // All go through the same reading.
        if matches!(what, "zeros" | "tensors" | "members" | "pieces") {
            files.push(("checkpoint", CHECKPOINT, checkpoint.into_bytes()));
            files.push((
                "safetensors with a manifest",
                PORTABLE,
                inside("tabtune.manifest"),
            ));
            files.push(("safetensors with a delta", DELTA, inside("tabtune.delta")));
        }
        files
            .into_iter()
            .map(move |(of, open, file)| (&*format!("{of}: {what}").leak(), open, file))
    }));
    let request = |field: &str| format!("{{\"selection\":{{{field}}}}}").into_bytes();
    check_all([
        (
            "request",
            REQUEST,
            request(&format!("\"include_patterns\":[{zeros}]")),
        ),
        ("request", REQUEST, request(&format!("\"x\":[{zeros}]"))),
    ]);
}

/// Line 32 of tests/suite/portable/README.md, for state dicts: as many tensors as a file may have.
#[test]
fn opening_holds_little_memory_of_many_tensors() {
    let record = |n| {
        format!(
            r#""{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            name(n)
        )
    };
    let header = (0..MAX_COUNT).map(record).collect::<Vec<_>>().join(",");
    let records: Vec<_> = (0..MAX_COUNT)
        .map(|n| tensor(&name(n), &[0], 0, 0))
        .collect();
    check_all([
        (
            "safetensors with many tensors",
            PORTABLE,
            safetensors(&format!("{{{header}}}")),
        ),
        (
            "gguf with many tensors",
            PORTABLE_GGUF,
            gg(&[], &records, 0),
        ),
    ]);
}
