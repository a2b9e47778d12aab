//! Files written by gguf-py and Python's safetensors: every payload has their bytes, and every decoded value has their bits.
//!
//! `torture/generated.py` makes such files in a folder with `expected.json`, which `TABTUNE_GENERATED` names; 100 small ones of each format are
//! in golden/generated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Deserialize;
use tabtune::bundle::dequantise;
use tabtune::formats::{ByteSource, Digest, GgufFile, MemorySource};
use tabtune::portable::open_safetensors;
use tabtune::state::PortableModelImportRequest;
use tabtune_tests::block_on;

/// Values of a tensor as another program reports them.
#[derive(Deserialize)]
struct Expected {
    dtype: String,
    /// SHA-256 of the tensor's bytes in the file.
    stored: String,
    /// SHA-256 of the tensor's values as F32, with every NaN written as 0x7fc00000, if the program decodes them.
    values: Option<String>,
}

/// Numbers of tensors and of compared values of a dtype.
#[derive(Default)]
struct Tally {
    tensors: u64,
    decoded: u64,
    values: u64,
}

fn sum_of_values(values: &[f32]) -> String {
    let bits = |value: &f32| {
        if value.is_nan() {
            0x7fc0_0000
        } else {
            value.to_bits()
        }
    };
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| bits(value).to_le_bytes())
        .collect();
    Digest::of(&bytes).to_string()
}

struct Judge<'a> {
    file: &'a str,
    expected: &'a BTreeMap<String, Expected>,
    tallies: &'a mut BTreeMap<String, Tally>,
}

impl Judge<'_> {
    fn compare(
        &mut self,
        name: &str,
        dtype: &str,
        stored: &[u8],
        values: impl Fn() -> tabtune::Result<Vec<f32>>,
    ) {
        let (file, expected) = (self.file, &self.expected[name]);
        assert_eq!(dtype, expected.dtype, "{file}: {name:?}");
        assert_eq!(
            Digest::of(stored).to_string(),
            expected.stored,
            "{file}: bytes of {name:?}, {dtype}"
        );
        let tally = self.tallies.entry(dtype.to_string()).or_default();
        tally.tensors += 1;
        if let Some(sum) = &expected.values {
            let values =
                values().unwrap_or_else(|error| panic!("{file}: {name:?}, {dtype}: {error}"));
            assert_eq!(
                &sum_of_values(&values),
                sum,
                "{file}: values of {name:?}, {dtype}"
            );
            tally.decoded += 1;
            tally.values += values.len() as u64;
        }
    }
}

fn judge(folder: &Path, tallies: &mut BTreeMap<String, Tally>) {
    let read = |name: &str| {
        std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let files: BTreeMap<String, BTreeMap<String, Expected>> =
        serde_json::from_slice(&read("expected.json")).unwrap();
    for (name, expected) in &files {
        let mut judge = Judge {
            file: name,
            expected,
            tallies,
        };
        let bytes = read(name);
        let source = MemorySource::new(name.clone(), bytes.clone());
        let count = if name.ends_with(".gguf") {
            let file = GgufFile::open(&source).unwrap();
            for tensor in &file.tensors {
                let stored = &bytes[tensor.begin as usize..][..tensor.bytes.unwrap() as usize];
                judge.compare(&tensor.name, &tensor.dtype, stored, || {
                    dequantise(&source, tensor)
                });
            }
            file.tensors.len()
        } else if expected.is_empty() {
            0
        } else {
            let opened = open_safetensors(vec![Rc::new(source) as Rc<dyn ByteSource>]).unwrap();
            let state = block_on(opened.import(&PortableModelImportRequest::default()))
                .unwrap()
                .state_dict;
            for key in state.tensors().keys() {
                let (tensor, stored) = block_on(state.tensor(key)).unwrap();
                judge.compare(key, &tensor.dtype, &stored, || {
                    block_on(state.dense_f32(key))
                });
            }
            state.tensors().len()
        };
        assert_eq!(count, expected.len(), "{name}");
    }
}

/// Line 36 of tests/suite/portable/README.md, on files of many tensors: the golden ones, and those of a folder that the environment names.
#[test]
fn generated_files_have_the_bytes_and_values_of_their_writers() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/generated");
    let mut tallies = BTreeMap::new();
    judge(
        &std::env::var_os("TABTUNE_GENERATED").map_or(golden, PathBuf::from),
        &mut tallies,
    );
    for (
        dtype,
        Tally {
            tensors,
            decoded,
            values,
        },
    ) in &tallies
    {
        println!("compared {dtype} {tensors} {decoded} {values}");
    }
    assert!(!tallies.is_empty());
}
