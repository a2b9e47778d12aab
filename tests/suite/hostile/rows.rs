//! Rows of the table of broken files that have no file in the repository: they are made here.

use tabtune::bundle::{FileFormat, InspectReport, inspect};
use tabtune::formats::MemorySource;

fn read(name: &str, format: FileFormat, bytes: Vec<u8>) -> InspectReport {
    inspect(
        &MemorySource::new(name, bytes),
        Some(format),
        || Ok(vec![]),
        true,
    )
}

/// Makes a safetensors file of this header text and data.
fn st(header: &str, data: &[u8]) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        data,
    ]
    .concat()
}

fn record(dtype: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

#[test]
fn safetensors_rows() {
    let f32x4 = record("F32", "[4]", 0, 16);
    let one = |record: &str| st(&format!(r#"{{"a":{record}}}"#), &[0; 16]);
    let sound = one(&f32x4);
    let header = sound.len() as u64 - 24;
    let long_length = [&((1u64 << 32) + header).to_le_bytes(), &sound[8..]].concat();
    let million = format!(
        r#"{{"dtype":"F32","shape":[{}],"data_offsets":[0,16]}}"#,
        "9".repeat(1_000_000)
    );
    let ten: Vec<String> = (0..10).map(|n| format!(r#""t{n}":{f32x4}"#)).collect();
    let zipped = [sound.clone(), b"PK\x05\x06".to_vec(), vec![0; 18]].concat();
    let rows: Vec<(&str, Vec<u8>, &str, Option<&str>)> = vec![
        ("S07", long_length, "safetensors.header.too-large", None),
        ("S11", st("null", &[]), "safetensors.header.start", None),
        (
            "S15",
            st(
                &format!(r#"{{"a":{f32x4},"a":{}}}"#, record("F32", "[2,2]", 0, 16)),
                &[0; 16],
            ),
            "safetensors.key.duplicate",
            Some("a"),
        ),
        (
            "S15 escaped",
            st(&format!(r#"{{"a":{f32x4},"\u0061":{f32x4}}}"#), &[0; 16]),
            "safetensors.key.duplicate",
            Some("a"),
        ),
        (
            "S16",
            st(r#"{"__metadata__":{},"__metadata__":{}}"#, &[]),
            "safetensors.key.duplicate",
            Some("__metadata__"),
        ),
        (
            "S16 inner",
            st(r#"{"__metadata__":{"k":"1","k":"2"}}"#, &[]),
            "safetensors.key.duplicate",
            Some("__metadata__/k"),
        ),
        (
            "S19",
            one(r#"{"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]}"#),
            "safetensors.key.duplicate",
            Some("a/dtype"),
        ),
        (
            "S25",
            one(&record("f32", "[4]", 0, 16)),
            "safetensors.dtype.unknown",
            Some("a"),
        ),
        (
            "S30",
            one(&record("F32", "[4611686018427387904]", 0, 0)),
            "safetensors.shape.overflow",
            Some("a"),
        ),
        (
            "S31",
            one(&record("F32", "[1000000000000000000000000000000]", 0, 16)),
            "safetensors.number.invalid",
            Some("a"),
        ),
        (
            "S34",
            one(r#"{"dtype":"F32","shape":[4],"data_offsets":[-1,16]}"#),
            "safetensors.number.invalid",
            Some("a"),
        ),
        (
            "S36",
            st(
                &format!(
                    r#"{{"a":{},"b":{}}}"#,
                    record("U8", "[4]", 0, 4),
                    record("U8", "[4]", 5, 9)
                ),
                &[0; 9],
            ),
            "safetensors.offset.gap",
            Some("b"),
        ),
        (
            "S38",
            st(&format!("{{{}}}", ten.join(",")), &[0; 16]),
            "safetensors.offset.overlap",
            Some("t1"),
        ),
        ("S40", zipped, "safetensors.data.trailing", None),
        (
            "S43",
            st(&format!("{{\"a\":{f32x4}}}\0"), &[0; 16]),
            "safetensors.header.json",
            None,
        ),
        (
            "S44",
            one(&record("F4", "[3]", 0, 1)),
            "safetensors.dtype.sub-byte",
            Some("a"),
        ),
        (
            "S47",
            one(&record("F32", "[0,4294967296,4294967296]", 0, 0)),
            "safetensors.shape.overflow",
            Some("a"),
        ),
        (
            "S51",
            st(&format!(r#"{{"__proto__":{f32x4}}}"#), &[0; 16]),
            "ok",
            None,
        ),
        (
            "S53",
            st(&format!(r#"{{"\ud800":{f32x4}}}"#), &[0; 16]),
            "safetensors.header.json",
            None,
        ),
        (
            "S54",
            st(&format!("\u{feff}{{\"a\":{f32x4}}}"), &[0; 16]),
            "safetensors.header.start",
            None,
        ),
        (
            "S56",
            st(
                &format!(r#"{{"a":{}}}"#, record("BOOL", "[3]", 0, 3)),
                &[2, 1, 0xff],
            ),
            "safetensors.payload.bool",
            Some("a"),
        ),
        (
            "S60",
            [b"\x1f\x8b\x08".to_vec(), vec![0xff; 40]].concat(),
            "format.mismatch",
            None,
        ),
        (
            "S62",
            one(&million),
            "safetensors.number.invalid",
            Some("a"),
        ),
        (
            "rank 8",
            st(
                &format!(r#"{{"a":{}}}"#, record("U8", "[1,1,1,1,1,1,1,1]", 0, 1)),
                &[0],
            ),
            "ok",
            None,
        ),
        (
            "rank 9",
            st(
                &format!(r#"{{"a":{}}}"#, record("U8", "[1,1,1,1,1,1,1,1,1]", 0, 1)),
                &[0],
            ),
            "safetensors.shape.rank",
            Some("a"),
        ),
        (
            "name of 1,024",
            st(&format!(r#"{{"{}":{f32x4}}}"#, "n".repeat(1024)), &[0; 16]),
            "ok",
            None,
        ),
        (
            "name of 1,025",
            st(&format!(r#"{{"{}":{f32x4}}}"#, "n".repeat(1025)), &[0; 16]),
            "safetensors.name.invalid",
            None,
        ),
    ];
    for (id, bytes, code, subject) in rows {
        let report = read("f.safetensors", FileFormat::Safetensors, bytes);
        assert_eq!(report.code.unwrap_or("ok"), code, "{id}: {report:?}");
        assert_eq!(
            report.stage,
            if id == "S56" {
                "read"
            } else if code == "ok" {
                "ok"
            } else {
                "open"
            },
            "{id}"
        );
        if subject.is_some() {
            assert_eq!(report.subject.as_deref(), subject, "{id}");
        }
    }
    let many: Vec<String> = (0..=100_000)
        .map(|n| format!(r#""{n}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#))
        .collect();
    let report = read(
        "f",
        FileFormat::Safetensors,
        st(&format!("{{{}}}", many.join(",")), &[]),
    );
    assert_eq!(report.code, Some("safetensors.count.limit"));
    let report = read(
        "f",
        FileFormat::Safetensors,
        st(&format!("{{{}}}", many[1..].join(",")), &[]),
    );
    assert_eq!((report.ok, report.tensors), (true, 100_000));
}

pub fn u32s(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

/// Makes a GGUF file: keys and tensor records as bytes, zero bytes up to the data, data.
pub fn gg(keys: &[Vec<u8>], tensors: &[Vec<u8>], data: usize) -> Vec<u8> {
    let mut out = [b"GGUF".to_vec(), u32s(&[3])].concat();
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((keys.len() as u64).to_le_bytes());
    out.extend(keys.concat());
    out.extend(tensors.concat());
    out.resize(out.len().next_multiple_of(32) + data, 0);
    out
}

pub fn tensor(name: &str, dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let dims_bytes: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    [
        text(name.as_bytes()),
        u32s(&[dims.len() as u32]),
        dims_bytes,
        u32s(&[kind]),
        offset.to_le_bytes().to_vec(),
    ]
    .concat()
}

pub fn key(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [text(name.as_bytes()), u32s(&[kind]), value.to_vec()].concat()
}

pub fn array(item: u32, count: u64, items: &[u8]) -> Vec<u8> {
    [u32s(&[item]), count.to_le_bytes().to_vec(), items.to_vec()].concat()
}

#[test]
fn gguf_rows() {
    let alignment = |kind: u32, value: u32| {
        gg(
            &[key("general.alignment", kind, &u32s(&[value]))],
            &[tensor("t", &[4], 0, 0)],
            32,
        )
    };
    let sound = || tensor("t", &[4], 0, 0);
    let claimed = |count: u64| [text(b"k"), u32s(&[8]), count.to_le_bytes().to_vec()].concat();
    let nested: Vec<u8> = (0..256).flat_map(|_| array(9, 1, &[])).collect();
    let mut no_data = gg(&[], &[sound()], 0);
    no_data.pop();
    let mut trailing = gg(&[], &[sound()], 32);
    trailing.push(0);
    let mut dirty = gg(&[], &[sound()], 32);
    *dirty.last_mut().unwrap() = 1;
    let rows: Vec<(&str, Vec<u8>, &str, Option<&str>)> = vec![
        (
            "G04",
            [b"tjgg".to_vec(), u32s(&[1, 0, 0])].concat(),
            "format.mismatch",
            None,
        ),
        (
            "G08",
            [b"GGUF".to_vec(), vec![0, 0, 0, 3], vec![0; 16]].concat(),
            "gguf.version.big-endian",
            None,
        ),
        (
            "G14",
            gg(&[60_000u64.to_le_bytes().to_vec()], &[], 0),
            "gguf.header.truncated",
            None,
        ),
        (
            "G17",
            gg(&[key("k", u32::MAX, &[0; 8])], &[], 0),
            "gguf.value.type",
            Some("k"),
        ),
        (
            "G21",
            gg(&[claimed((1 << 30) + 1)], &[], 0),
            "gguf.string.limit",
            Some("k"),
        ),
        (
            "text of 64 MiB + 1",
            gg(&[claimed((64 << 20) + 1)], &[], 0),
            "gguf.string.limit",
            Some("k"),
        ),
        (
            "text of 64 MiB",
            gg(&[claimed(64 << 20)], &[], 0),
            "gguf.header.truncated",
            None,
        ),
        (
            "G22",
            gg(&[key("k", 8, &text(b"\xff\xfe"))], &[sound()], 32),
            "ok",
            None,
        ),
        (
            "G24",
            gg(&[key("k", 9, &nested)], &[], 0),
            "gguf.value.nested-array",
            Some("k"),
        ),
        (
            "G25",
            gg(&[key("k", 9, &array(10, 1 << 61, &[]))], &[], 0),
            "gguf.array.limit",
            Some("k"),
        ),
        (
            "array of 2^24",
            gg(&[key("k", 9, &array(10, 1 << 24, &[]))], &[], 0),
            "gguf.header.truncated",
            None,
        ),
        (
            "bool 2 in an array",
            gg(&[key("k", 9, &array(7, 2, &[1, 2]))], &[], 0),
            "gguf.value.bool",
            Some("k"),
        ),
        ("G28", alignment(4, 0), "gguf.alignment.invalid", None),
        ("G31", alignment(4, 1 << 31), "gguf.alignment.invalid", None),
        (
            "alignment 2^21",
            alignment(4, 1 << 21),
            "gguf.alignment.invalid",
            None,
        ),
        ("alignment 32", alignment(4, 32), "ok", None),
        (
            "G34",
            gg(&[], &[u64::MAX.to_le_bytes().to_vec()], 0),
            "gguf.name.length",
            None,
        ),
        (
            "name of 63 bytes",
            gg(&[], &[tensor(&"n".repeat(63), &[4], 0, 0)], 32),
            "ok",
            None,
        ),
        (
            "G37",
            gg(&[], &[[text(b"t"), u32s(&[u32::MAX])].concat()], 0),
            "gguf.tensor.rank",
            Some("t"),
        ),
        (
            "G39",
            gg(&[], &[tensor("t", &[1 << 33, 1 << 33], 0, 0)], 32),
            "gguf.tensor.size-overflow",
            Some("t"),
        ),
        (
            "G40",
            gg(&[], &[tensor("t", &[0, (1 << 63) - 1], 0, 0)], 32),
            "gguf.tensor.size-overflow",
            Some("t"),
        ),
        (
            "G43",
            gg(
                &[],
                &[
                    tensor("a", &[(1 << 63) - 64], 24, 0),
                    tensor("b", &[(1 << 63) - 64], 24, 0),
                ],
                32,
            ),
            "gguf.tensor.size-overflow",
            Some("b"),
        ),
        (
            "G46",
            gg(&[], &[tensor("t", &[32], u32::MAX, 0)], 32),
            "gguf.tensor.type-unknown",
            Some("t"),
        ),
        (
            "type of work buffers",
            gg(&[], &[tensor("t", &[256], 15, 0)], 96),
            "gguf.tensor.type-unsupported",
            Some("t"),
        ),
        (
            "G48",
            gg(&[], &[tensor("t", &[32], 12, 0)], 32),
            "gguf.tensor.block-row",
            Some("t"),
        ),
        (
            "G49",
            gg(&[], &[tensor("t", &[4], 0, u64::MAX)], 32),
            "gguf.offset.out-of-file",
            Some("t"),
        ),
        (
            "G53",
            gg(
                &[],
                &[tensor("a", &[4], 0, 32), tensor("b", &[4], 0, 0)],
                64,
            ),
            "gguf.offset.order",
            Some("a"),
        ),
        ("G54", no_data, "gguf.data.truncated", Some("t")),
        (
            "G57",
            gg(&[], &[tensor("t", &[(1 << 32) + 4], 0, 0)], 32),
            "gguf.data.truncated",
            Some("t"),
        ),
        ("G58", trailing, "gguf.data.trailing", None),
        (
            "padding that is not zero",
            dirty,
            "gguf.data.trailing",
            None,
        ),
        (
            "G61",
            gg(&[key("split.count", 2, &[3, 0])], &[sound()], 32),
            "gguf.split.incomplete",
            None,
        ),
        (
            "two opaque tensors on one place",
            gg(
                &[],
                &[tensor("x", &[4], 99, 0), tensor("y", &[4], 99, 0)],
                32,
            ),
            "gguf.offset.overlap",
            Some("y"),
        ),
        ("rank 0", gg(&[], &[tensor("t", &[], 0, 0)], 32), "ok", None),
    ];
    for (id, bytes, code, subject) in rows {
        let report = read("m-00001-of-00003.gguf", FileFormat::Gguf, bytes);
        assert_eq!(report.code.unwrap_or("ok"), code, "{id}: {report:?}");
        if subject.is_some() {
            assert_eq!(report.subject.as_deref(), subject, "{id}");
        }
        if code == "gguf.split.incomplete" {
            assert!(report.message.unwrap().contains("m-00002-of-00003.gguf"));
        }
        if id == "G22" {
            assert_eq!(report.warnings[0].code, "gguf.value.not-utf8");
        }
    }
}

#[test]
fn peft_rows() {
    let with = |change: &str| {
        let mut value: serde_json::Value = serde_json::from_str(
            r#"{"peft_type":"LORA","r":4,"lora_alpha":8,"target_modules":["q_proj"]}"#,
        )
        .unwrap();
        let change: serde_json::Value = serde_json::from_str(change).unwrap();
        value
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        read(
            "adapter_config.json",
            FileFormat::Peft,
            value.to_string().into_bytes(),
        )
        .code
        .unwrap_or("ok")
    };
    assert_eq!(with("{}"), "ok");
    assert_eq!(with(r#"{"r":65536}"#), "ok");
    assert_eq!(with(r#"{"r":65537}"#), "adapter.rank");
    assert_eq!(with(r#"{"r":4.0}"#), "adapter.rank");
    assert_eq!(with(r#"{"rank_pattern":{"q":0}}"#), "adapter.rank");
    assert_eq!(with(r#"{"lora_alpha":0}"#), "adapter.alpha");
    assert_eq!(with(r#"{"alpha_pattern":{"q":-1}}"#), "adapter.alpha");
    assert_eq!(with(r#"{"bias":"all"}"#), "adapter.feature.unsupported");
    assert_eq!(
        with(r#"{"layer_replication":[[0,1]]}"#),
        "adapter.feature.unsupported"
    );
    for key in [
        "use_bdlora",
        "trainable_token_indices",
        "alora_invocation_tokens",
        "arrow_config",
        "target_parameters",
    ] {
        assert_eq!(
            with(&format!(r#"{{"{key}":{{"a":1}}}}"#)),
            "adapter.feature.unsupported",
            "{key}"
        );
        assert_eq!(with(&format!(r#"{{"{key}":null}}"#)), "ok", "{key}");
    }
    assert_eq!(with(r#"{"trainable_token_indices":[]}"#), "ok");
    for (start, code) in [
        ("pissa", "adapter.feature.unsupported"),
        ("pissa_niter_16", "adapter.feature.unsupported"),
        ("gaussian", "ok"),
    ] {
        assert_eq!(
            with(&format!(r#"{{"init_lora_weights":"{start}"}}"#)),
            code,
            "{start}"
        );
    }
    assert_eq!(with(r#"{"target_modules":[]}"#), "adapter.target.none");
    assert_eq!(
        with(&format!(r#"{{"target_modules":"{}"}}"#, "x".repeat(1025))),
        "adapter.pattern.length"
    );
}

/// Shards that cannot be opened are a refusal of their index; a file of another format does not ask for them.
#[test]
fn shards_that_cannot_be_opened_refuse_the_index_alone() {
    let closed = || {
        Err(tabtune::Error::SourceRead {
            name: "a.safetensors".into(),
            reason: "no permission".into(),
        })
    };
    let index = MemorySource::new(
        "model.safetensors.index.json",
        br#"{"weight_map":{"a":"a.safetensors"}}"#.to_vec(),
    );
    let report = inspect(&index, None, closed, true);
    assert_eq!(
        (report.ok, report.code, report.stage),
        (false, Some("source.read"), "open")
    );
    let report = inspect(
        &MemorySource::new("a.safetensors", st("{}", &[])),
        None,
        closed,
        true,
    );
    assert!(report.ok, "{report:?}");
}
