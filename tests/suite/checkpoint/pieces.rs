use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;
use serde_json::json;
use tabtune::bundle::FileStream;
use tabtune::checkpoint::{Checkpoint, MANIFEST, pieces_of, sha256};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::state::{Bytes, Tensor as StateTensor};
use tabtune::{Error, Result};
use tabtune_tests::{block_on, cpu, gpu};

use super::{edited, file};
use crate::resume::{config, go, save, start};

const PIECE: usize = 8 << 20;

/// A source of zeros, as many as `bytes`, which are not in memory.
struct Zeros {
    bytes: u64,
    last: Cell<u64>,
}

impl ByteSource for Zeros {
    fn name(&self) -> &str {
        "zeros.bin"
    }
    fn len(&self) -> u64 {
        self.bytes
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        assert!(!buf.is_empty() && offset + buf.len() as u64 <= self.bytes && buf.len() <= PIECE);
        buf.fill(0);
        self.last.set(offset + buf.len() as u64);
        Ok(())
    }
}

#[test]
fn file_above_4_gib_verifies_to_its_last_byte_and_ends() {
    let bytes = (1u64 << 32) + 8;
    let (whole, rest) = (sha256(&vec![0; PIECE]), sha256(&[0; 8]));
    let pieces = |last: String| {
        json!(
            std::iter::repeat_n(whole.clone(), 512)
                .chain([last])
                .collect::<Vec<_>>()
        )
    };
    let mut run = start(
        config(&json!({"type": "sgd"}), "f32", &json!({"type": "constant"})),
        &cpu().inner(),
    );
    go(&mut run, 1);
    let refused = |last: String| {
        let record = json!({"name": "zeros.bin", "bytes": bytes, "pieces": pieces(last)});
        let files = edited(save(&run), |json| json["files"] = json!([record]));
        let zeros = Rc::new(Zeros {
            bytes,
            last: Cell::new(0),
        });
        let manifest = files.into_iter().filter(|(name, _)| name == MANIFEST);
        let manifest = manifest
            .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>);
        Checkpoint::open(
            manifest.chain([zeros as Rc<dyn ByteSource>]).collect(),
            None,
        )
        .map(|_| ())
        .unwrap_err()
    };
    // The piece beyond 2³² is checked.
    assert!(
        matches!(refused(whole.clone()), Error::CheckpointHash { piece: 512, found, .. } if found == rest)
    );
}

#[test]
fn pieces_of_a_file_are_counted_in_64_bits() {
    let all = |bytes| pieces_of(bytes).collect::<Vec<_>>();
    assert_eq!(all(0), []);
    assert_eq!(all(1), [(0, 1)]);
    assert_eq!(all(8 << 20), [(0, 8 << 20)]);
    assert_eq!(all((8 << 20) + 1), [(0, 8 << 20), (8 << 20, 1)]);
    for bytes in [(1u64 << 32) - 1, 1 << 32, (1 << 32) + 8, (1 << 33) + 5] {
        let pieces = all(bytes);
        assert_eq!(pieces.iter().map(|(_, len)| len).sum::<u64>(), bytes);
        let mut at = 0;
        for (offset, len) in pieces {
            // Only the length of a piece fits the 32 bits of a browser; the remaining length would be truncated.
            assert_eq!(offset, at);
            assert!(
                u32::try_from(len).is_ok_and(|len| len > 0),
                "{bytes}: {len} at {offset}"
            );
            at += len;
        }
    }
    assert_eq!(
        ((1u64 << 32) + 8 - 8) as u32,
        0,
        "what is left of such a file at offset 8, as a browser's usize would have it"
    );
}

#[test]
fn checkpoint_counts_no_file_in_the_machines_width() {
    let folder = tabtune_tests_root().join("crate/src");
    let inside = std::fs::read_dir(folder.join("checkpoint"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in inside
        .chain([folder.join("checkpoint.rs")])
        .filter(|path| !path.ends_with("settings.rs"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let casts: Vec<&str> = code
            .filter(|line| {
                [" as u", " as i", " as f"]
                    .iter()
                    .any(|cast| line.contains(cast))
            })
            .collect();
        assert!(casts.is_empty(), "{}: {casts:?}", path.display());
    }
}

fn tabtune_tests_root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// Makes tensors whose ends lie before, on and behind those of pieces, including an odd number of two-byte values.
fn tensors(device: &Device) -> (Vec<StateTensor>, Vec<u8>) {
    let sizes = [
        ("a", 5),
        ("b", (PIECE / 4) - 9),
        ("c", 2 * (PIECE / 2) + 3),
        ("d", 1),
        ("e", 3 * PIECE / 4 + 1),
        ("f", 0),
        ("g", 7),
    ];
    let mut bytes = Vec::new();
    let tensor = |(index, (name, n)): (usize, (&str, usize))| {
        let values = (0..n).map(|i| ((i * 2_654_435_761 + index) % 65_521) as f32 - 32_000.0);
        let packed = matches!(name, "c" | "d");
        let tensor: Tensor<1> = if packed {
            let values: Vec<bf16> = values.map(bf16::from_f32).collect();
            bytes.extend_from_slice(bytemuck::cast_slice(&values));
            Tensor::from_data(TensorData::new(values, [n]), (device, DType::BF16))
        } else {
            let values: Vec<f32> = values.collect();
            bytes.extend_from_slice(bytemuck::cast_slice(&values));
            Tensor::from_data(TensorData::new(values, [n]), device)
        };
        let dtype = if packed { "BF16" } else { "F32" };
        StateTensor::parameter(name, dtype, &[n as u64], Bytes::device(tensor))
    };
    let mut tensors: Vec<_> = sizes.into_iter().enumerate().map(tensor).collect();
    let last = Bytes::host(77u64.to_le_bytes());
    tensors.push(StateTensor::parameter("h", "U64", &[], last));
    bytes.extend(77u64.to_le_bytes());
    (tensors, bytes)
}

fn gives_whole_pieces(device: &Device) {
    let (tensors, expected) = tensors(device);
    let mut stream = FileStream::new();
    stream.push_bytes("empty.txt", Vec::new());
    stream
        .push_safetensors("model.safetensors", tensors, &BTreeMap::new())
        .unwrap();
    stream.push_bytes("notes.txt", b"notes".to_vec());
    let seal = |digests: &[Vec<String>]| {
        Ok(digests
            .iter()
            .flatten()
            .map(|digest| digest[..64].to_string())
            .collect::<Vec<_>>()
            .join(" ")
            .into_bytes())
    };
    stream.push_sealed("sealed.txt", seal).unwrap();
    let (mut files, mut digests) = (vec![Vec::new(); 4], Vec::new());
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        let file = &mut files[chunk.file];
        let left = stream.files()[chunk.file].bytes as usize - file.len();
        assert_eq!(
            chunk.bytes.len(),
            left.min(PIECE),
            "a piece of file {}",
            chunk.file
        );
        // Digests arrive late, but before the document that contains them.
        digests.push(sha256(&chunk.bytes));
        if chunk.file == 2 {
            let error = block_on(stream.next_chunk()).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("hashed"), "{error}");
            digests
                .iter()
                .for_each(|digest| stream.hashed(digest).unwrap());
        }
        file.extend(chunk.bytes);
    }
    let header = files[1].len() - expected.len();
    assert!(
        files[1][header..] == expected[..],
        "other bytes than the tensors'"
    );
    assert_eq!((files[0].len(), files[2].as_slice()), (0, &b"notes"[..]));
    digests.pop();
    assert_eq!(
        String::from_utf8(files[3].clone()).unwrap(),
        digests.join(" ")
    );
    assert_eq!(stream.hashed("abc").unwrap_err().code(), "config.invalid");
}

#[test]
fn stream_gives_whole_pieces_of_one_file_on_the_cpu() {
    gives_whole_pieces(&cpu().inner());
}

#[test]
fn stream_gives_whole_pieces_of_one_file_on_the_gpu() {
    if let Some(device) = gpu() {
        gives_whole_pieces(&device.inner());
    }
}

#[test]
fn manifest_names_each_piece() {
    let mut run = start(
        config(&json!({"type": "sgd"}), "f32", &json!({"type": "constant"})),
        &cpu().inner(),
    );
    go(&mut run, 1);
    let mut files = save(&run);
    let json: serde_json::Value = serde_json::from_slice(file(&mut files, MANIFEST)).unwrap();
    assert_eq!(json["version"], 1);
    for record in json["files"].as_array().unwrap() {
        let bytes = file(&mut files, record["name"].as_str().unwrap());
        assert_eq!(record["pieces"], json!([sha256(bytes)]));
    }
    assert_eq!(json["base"], json!(null));
    assert_eq!(json["environment"]["adapter"], "test");
    let with_state = json["groups"][0]["members"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|member| member["state"]["step"].is_string())
        .count();
    assert_eq!(with_state, run.model().parameters().len());
}
