//! Memory that is held while a GGUF file is written: pieces, whatever the size of a tensor.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::json;
use tabtune::Result;
use tabtune::bundle::open_bundle;
use tabtune::config::{ModelConfig, Precision};
use tabtune::families::config_from_hf;
use tabtune::formats::ByteSource;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune_tests::{block_on, cpu, weights};

use super::{GgufBase, Raise, gguf_patch, gguf_recipe, load, open, written};

const PIECE: usize = 8 << 20;

/// A file whose bytes after `head` are zeros that are not in memory. It counts the bytes that are read.
struct Sparse {
    head: Vec<u8>,
    len: u64,
    read: Rc<Cell<u64>>,
}

impl ByteSource for Sparse {
    fn name(&self) -> &str {
        "m.gguf"
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        assert!(
            buf.len() <= PIECE && offset + buf.len() as u64 <= self.len,
            "{} bytes at {offset}",
            buf.len()
        );
        buf.fill(0);
        let head = self.head.get(offset as usize..).unwrap_or_default();
        let count = head.len().min(buf.len());
        buf[..count].copy_from_slice(&head[..count]);
        self.read.set(self.read.get() + buf.len() as u64);
        Ok(())
    }
}

pub(super) fn config(changes: serde_json::Value) -> ModelConfig {
    let mut json = json!({"num_hidden_layers": 1, "tie_word_embeddings": true});
    json.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    config_from_hf(&json).unwrap()
}

pub(super) fn fresh(config: &ModelConfig, precision: Precision) -> Model {
    block_on(Model::init(
        config,
        2,
        precision,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

#[test]
fn tensors_of_the_base_are_copied_in_pieces() {
    // A table of 1,500,001 rows of 4: 24 MB, none of which is changed, or held by the base.
    let small = config(json!({
        "model_type": "llama", "vocab_size": 1_500_001, "hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 1,
        "max_position_embeddings": 8
    }));
    let (_, mut head) =
        written(gguf_recipe(&fresh(&small, Precision::F32), None, "base", "as-base").unwrap());
    let len = head.len() as u64;
    head.truncate(64 << 10);
    let read = Rc::new(Cell::new(0));
    let file = || {
        Rc::new(Sparse {
            head: head.clone(),
            len,
            read: Rc::clone(&read),
        }) as Rc<dyn ByteSource>
    };
    let model = load(&open_bundle(vec![file()]).unwrap(), Precision::F32)
        .map(&mut Raise(&["model.norm.weight"]));
    read.set(0);
    let mut stream = gguf_patch(
        &model,
        GgufBase {
            files: vec![file()],
            recorded: None,
        },
        "new",
        "as-base",
    )
    .unwrap();
    let compared = read.replace(0);
    assert!(
        compared < 2 * len + (1 << 20),
        "each tensor is read once to be compared, the file once to be summed: {compared} of {len}"
    );
    let mut at = 0;
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        assert!(
            chunk.bytes.len() <= PIECE && read.replace(0) <= PIECE as u64,
            "a piece reads no more of the base than it gives"
        );
        at += if chunk.file == 0 {
            chunk.bytes.len() as u64
        } else {
            0
        };
    }
    assert_eq!(at, len);
}

/// Writes and opens a fresh model, whose tensors are longer than one read.
fn comes_back(config: &ModelConfig) {
    for precision in [Precision::F32, Precision::Bf16] {
        let model = fresh(config, precision);
        let (_, bytes) = written(gguf_recipe(&model, None, "long", "as-base").unwrap());
        assert!(
            weights(&load(&open(&bytes), precision)) == weights(&model),
            "{config:?}"
        );
    }
}

#[test]
fn rows_in_pairs_come_back_from_many_pieces() {
    // Heads of 2 rows of 300,000: longer than one read. Heads of 64 rows of 1,000: eight of them in one.
    let heads = |hidden_size: usize, head_dim: usize, heads: usize| {
        config(json!({
            "model_type": "llama", "vocab_size": 2, "hidden_size": hidden_size, "intermediate_size": 1, "head_dim": head_dim,
            "num_attention_heads": heads, "num_key_value_heads": 1, "max_position_embeddings": 4
        }))
    };
    comes_back(&heads(300_000, 2, 2));
    comes_back(&heads(1_000, 64, 19));
}

#[test]
fn transposed_matrices_come_back_from_many_pieces() {
    // Matrices of 4,200,002 values in rows of 2 and of 2,100,001: longer than what is gathered at once. Then rows that a read cuts.
    let inner = |width: usize, inner: usize| {
        config(json!({
            "model_type": "gpt2", "vocab_size": 2, "n_embd": width, "n_layer": 1, "n_head": 1, "n_positions": 2, "n_inner": inner
        }))
    };
    comes_back(&inner(2, 2_100_001));
    comes_back(&inner(48, 12_000));
}
