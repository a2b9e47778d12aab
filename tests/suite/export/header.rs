//! Rules of a GGUF header, each broken once.

use tabtune::formats::{FileTensor, GgmlType, GgufFile, GgufValue, MemorySource, gguf_header};

use tabtune_tests::families;

use super::{golden, rewritten};

fn record(name: &str, kind: &str, shape: &[u64]) -> FileTensor {
    FileTensor::new(name, &GgmlType::from_name(kind).unwrap().dtype(), shape)
}

fn key(key: &str, value: GgufValue) -> (String, GgufValue) {
    (key.to_string(), value)
}

#[test]
fn header_of_a_golden_file_comes_back_byte_for_byte() {
    for family in families().iter().filter(|family| family.gguf.len() == 1) {
        let bytes = golden(family.gguf[0]);
        assert_eq!(rewritten(&bytes, |_, _| {}), bytes, "{}", family.name);
    }
}

#[test]
fn values_are_read_as_they_were_written() {
    let metadata = [
        key("a.text", GgufValue::of_text("é\n")),
        key("a.count", GgufValue::of_u32(u32::MAX)),
        key("a.number", GgufValue::of_f32(1e-5)),
        key("a.flag", GgufValue::of_bool(true)),
        key("a.texts", GgufValue::of_texts(&["", "b c"])),
        key("a.counts", GgufValue::of_i32s(&[-1, 7])),
        key("a.numbers", GgufValue::of_f32s(&[0.5, -2.0])),
    ];
    let header = gguf_header(&metadata, &[]).unwrap();
    assert!(header.bytes.len().is_multiple_of(32) && header.spans.is_empty());
    let file = GgufFile::open(&MemorySource::new("m.gguf", header.bytes)).unwrap();
    assert_eq!(file.metadata, metadata);
    assert_eq!(file.get("a.text").unwrap().text(), Some("é\n"));
    assert_eq!(
        file.get("a.count").unwrap().count(),
        Some(u64::from(u32::MAX))
    );
    assert_eq!(file.get("a.number").unwrap().number(), Some(1e-5));
    assert_eq!(file.get("a.flag").unwrap().bool(), Some(true));
    assert_eq!(
        file.get("a.texts").unwrap().texts(),
        Some(vec![&b""[..], &b"b c"[..]])
    );
    assert_eq!(
        file.get("a.counts").unwrap().counts(),
        Some(vec![u64::MAX, 7])
    );
    assert_eq!(
        file.get("a.numbers").unwrap().floats(),
        Some(vec![0.5, -2.0])
    );
}

#[test]
fn spans_are_the_running_padded_sum() {
    let records = [
        record("a", "F16", &[3]),
        record("b", "Q4_K", &[2, 512]),
        record("c", "F32", &[0, 4]),
        record("d", "F32", &[]),
    ];
    let spans = |alignment: u32| {
        let header = gguf_header(
            &[key("general.alignment", GgufValue::of_u32(alignment))],
            &records,
        )
        .unwrap();
        assert!(header.bytes.len().is_multiple_of(alignment as usize));
        header
            .spans
            .iter()
            .map(|span| (span.begin, span.bytes, span.padding))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        spans(32),
        [(0, 6, 26), (32, 576, 0), (608, 0, 0), (608, 4, 28)]
    );
    assert_eq!(
        spans(1024),
        [
            (0, 6, 1018),
            (1024, 576, 448),
            (2048, 0, 0),
            (2048, 4, 1020)
        ]
    );
}

#[test]
fn each_rule_of_a_header_has_its_word() {
    let none = GgufValue::of_u32(0);
    let keys = |keys: &[(String, GgufValue)]| gguf_header(keys, &[]).unwrap_err().code();
    assert_eq!(keys(&[key("", none.clone())]), "export.gguf.key");
    assert_eq!(
        keys(&[key(&"k".repeat(65_536), none.clone())]),
        "export.gguf.key"
    );
    assert_eq!(
        keys(&[key("a", none.clone()), key("a", GgufValue::of_bool(false))]),
        "export.gguf.key"
    );
    for alignment in [
        GgufValue::of_u32(0),
        GgufValue::of_u32(48),
        GgufValue::of_u32(1 << 21),
        GgufValue::of_i32s(&[32]),
    ] {
        assert_eq!(
            keys(&[key("general.alignment", alignment)]),
            "export.gguf.key"
        );
    }
    assert!(gguf_header(&[key(&"k".repeat(65_535), none)], &[]).is_ok());
    let tensors = |records: &[FileTensor]| {
        gguf_header(&[], records)
            .map(|_| "")
            .unwrap_or_else(|error| error.code())
    };
    assert_eq!(
        tensors(&[record(&"n".repeat(63), "F32", &[1, 1, 1, 1])]),
        ""
    );
    assert_eq!(
        tensors(&[record(&"n".repeat(64), "F32", &[1])]),
        "export.gguf.name"
    );
    assert_eq!(tensors(&[record("", "F32", &[1])]), "export.gguf.name");
    assert_eq!(tensors(&[record("a\0", "F32", &[1])]), "export.gguf.name");
    assert_eq!(
        tensors(&[record("a", "F32", &[1]), record("a", "F16", &[1])]),
        "export.gguf.name"
    );
    assert_eq!(
        tensors(&[record("a", "F32", &[1, 1, 1, 1, 1])]),
        "export.tensor.size"
    );
    assert_eq!(
        tensors(&[record("a", "Q8_0", &[32, 33])]),
        "export.tensor.size"
    );
    assert_eq!(tensors(&[record("a", "Q8_0", &[33, 32])]), "");
    assert_eq!(
        tensors(&[record("a", "F32", &[1 << 61])]),
        "export.tensor.size"
    );
    assert_eq!(
        tensors(&[record("a", "F32", &[0, 1 << 61])]),
        "export.tensor.size"
    );
    assert_eq!(
        tensors(&[
            record("a", "F32", &[1 << 60]),
            record("b", "F32", &[1 << 60])
        ]),
        "export.tensor.size"
    );
    assert_eq!(tensors(&[record("a", "Q8_1", &[32])]), "export.gguf.type");
    let opaque = FileTensor {
        dtype: GgmlType::from_id(99).dtype(),
        ..record("a", "F32", &[1])
    };
    assert_eq!(tensors(&[opaque]), "export.gguf.type");
}
