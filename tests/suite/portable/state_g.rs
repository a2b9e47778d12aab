//! State G of golden/digests.json with its values, and helpers that the tests of containers share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use tabtune::Error;
use tabtune::bundle::FileStream;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::state::{
    Bytes, Identity, ImportedState, ModelStateGroupAssignment, ModelStateTensorManifest,
    OpenedState, PortableModelImportRequest, PortableModelStateDict, SourceWord, Tensor,
};
use tabtune_tests::block_on;

pub fn vectors() -> Value {
    let path = format!("{}/golden/digests.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Returns state G. Its head has the path `decoder/head`.
pub fn state_g() -> PortableModelStateDict {
    let vector = &vectors()["vector2"];
    let mut tensors = BTreeMap::new();
    for list in ["parameters", "state"] {
        for entry in vector[list].as_array().unwrap() {
            let shape: Vec<u64> = serde_json::from_value(entry["shape"].clone()).unwrap();
            let name = entry["name"].as_str().unwrap();
            let mut manifest =
                ModelStateTensorManifest::of_name(name, entry["dtype"].as_str().unwrap(), &shape);
            let word = manifest.model_tree_path.get(2).cloned();
            manifest.model_tree_path = if name.starts_with("head") {
                vec!["decoder".into(), "head".into()]
            } else {
                vec!["embedding".into()]
            };
            manifest.model_tree_path.extend(word);
            let bytes = Bytes::host(hex(&entry["bytes_hex"]));
            tensors.insert(name.to_string(), Tensor::new(manifest, bytes));
        }
    }
    let groups: Vec<ModelStateGroupAssignment> =
        serde_json::from_value(vector["groups"].clone()).unwrap();
    let identity = Identity {
        model_family: "small".into(),
        revision: "r1".into(),
        checkpoint_family: "tabtune.train".into(),
        checkpoint_ref: Some("step-7".into()),
    };
    PortableModelStateDict::new(identity, SourceWord::Tabtune, tensors, groups).unwrap()
}

/// Makes a state of parameters without groups.
pub fn plain(tensors: &[(&str, &str, &[u64], Vec<u8>)]) -> PortableModelStateDict {
    let entry = |(key, dtype, shape, bytes): &(&str, &str, &[u64], Vec<u8>)| {
        let bytes = Bytes::host(bytes.clone());
        (key.to_string(), Tensor::parameter(key, dtype, shape, bytes))
    };
    let tensors = tensors.iter().map(entry).collect();
    PortableModelStateDict::new(
        Identity::default(),
        SourceWord::Tabtune,
        tensors,
        Vec::new(),
    )
    .unwrap()
}

/// Returns name and bytes of each file of a stream.
pub fn written(mut stream: FileStream) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    let sizes: Vec<u64> = stream.files().iter().map(|file| file.bytes).collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        files[chunk.file].1.extend(chunk.bytes);
    }
    assert_eq!(
        files
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .collect::<Vec<_>>(),
        sizes
    );
    files
}

pub fn sources(files: &[(String, Vec<u8>)]) -> Vec<Rc<dyn ByteSource>> {
    files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(name.clone(), bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect()
}

pub fn import(opened: &OpenedState) -> ImportedState {
    block_on(opened.import(&PortableModelImportRequest::default())).unwrap()
}

/// Asserts that tensors, groups and values of two states are equal, whatever they were read from.
#[track_caller]
pub fn assert_same(a: &PortableModelStateDict, b: &PortableModelStateDict) {
    assert_eq!(a.identity, b.identity);
    assert_eq!(
        a.traversal_records().collect::<Vec<_>>(),
        b.traversal_records().collect::<Vec<_>>()
    );
    assert_eq!(a.groups(), b.groups());
    for key in a.tensors().keys() {
        assert_eq!(
            block_on(a.tensor(key)).unwrap(),
            block_on(b.tensor(key)).unwrap(),
            "{key}"
        );
    }
    assert_eq!(
        block_on(a.digests()).unwrap(),
        block_on(b.digests()).unwrap()
    );
}

/// Returns code and subject of each refusal.
#[track_caller]
pub fn told<T>(answer: Result<T, Error>) -> Vec<(&'static str, String)> {
    match answer {
        Err(Error::Refused(list)) => list
            .into_iter()
            .map(|one| (one.code, one.subject.unwrap_or_default()))
            .collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("nothing was refused"),
    }
}

/// A file that records which bytes were read.
pub struct Counting {
    pub inner: MemorySource,
    pub reads: RefCell<Vec<(u64, u64)>>,
}

impl Counting {
    pub fn new(name: &str, bytes: Vec<u8>) -> Rc<Self> {
        Rc::new(Self {
            inner: MemorySource::new(name, bytes),
            reads: RefCell::default(),
        })
    }

    /// Returns begin and end of each read since the last call.
    pub fn take(&self) -> Vec<(u64, u64)> {
        self.reads.take()
    }
}

impl ByteSource for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        self.reads
            .borrow_mut()
            .push((offset, offset + buf.len() as u64));
        self.inner.read_at(offset, buf)
    }
}
