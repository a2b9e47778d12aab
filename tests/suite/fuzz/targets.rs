//! What is fuzzed: how files begin, which words they have, how they are answered.

use std::any::Any;
use std::collections::BTreeSet;

use serde_json::json;
use tabtune::bundle::{ByteSource, FileFormat, GgmlType, GgufFile, InspectReport, MemorySource, dequantise, inspect, open_bundle};
use tabtune::checkpoint::{Checkpoint, MANIFEST as MANIFEST_NAME};

use super::mutation::{Random, mutated, mutated_json, mutated_safetensors};
use crate::bundle::files::{Meta, Tensor, file, gguf, ramp};
use crate::hostile::rows::{array, gg, key, tensor, text};
use crate::hostile::{bytes_of, cases, shard};

/// Makes a file of others and of words.
type Change = fn(&mut Random, &[Vec<u8>], &[&str]) -> Vec<u8>;

/// One reader of files.
pub struct Target {
    pub name: &'static str,
    /// Files to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// What is put into files now and then.
    pub words: &'static [&'static str],
    /// Makes the next file.
    pub change: Change,
    /// Reads a file and says in short what came of it.
    pub answer: fn(&[u8]) -> String,
    /// There are at least so many different answers to 20,000 files: the files reach all parts of the reader.
    pub answers: usize,
}

/// The message of a panic.
pub fn as_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| cause.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The hostile files of a format.
fn hostile(format: &str) -> Vec<Vec<u8>> {
    let files: Vec<_> = cases().iter().filter(|case| case["format"] == format).map(bytes_of).collect();
    files.into_iter().filter(|file| file.len() < 16 << 10).collect()
}

/// Code, stage and warnings.
fn in_short(report: &InspectReport) -> String {
    assert_eq!(report.ok, report.code.is_none());
    let warnings: BTreeSet<&str> = report.warnings.iter().map(|warning| warning.code).collect();
    format!("{} {} {warnings:?}", report.code.unwrap_or("ok"), report.stage)
}

fn inspected(format: FileFormat, file: &[u8]) -> InspectReport {
    inspect(&MemorySource::new("f", file), Some(format), &[], true)
}

const JSON_WORDS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"\"",
    "null",
    "true",
    "-0",
    "1e999",
    "0.5",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "\\uD83D\\uDE00",
    "\"\\n\"",
    "[[[[[[[[",
    "]]]]]]]]",
    " ",
    "\u{202e}",
    "\"a\":{}",
    "\"__proto__\":1,",
    "[0,0,0,0,0,0,0,0,0,0]",
];

// ---- safetensors

const SAFETENSORS_WORDS: [&str; 20] = [
    "\"dtype\":\"F32\",",
    "\"shape\":[0]",
    "\"data_offsets\":[0,0]",
    "\"__metadata__\":{\"a\":\"b\"},",
    "F64",
    "BF16",
    "F8_E4M3",
    "F4",
    "F6_E2M3",
    "C64",
    "BOOL",
    "I8",
    "U64",
    "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
    "[",
    "]",
    ",",
    "{",
    "}",
    "null",
];

fn safetensors_seeds() -> Vec<Vec<u8>> {
    let of = |header: &str, data: usize| [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat();
    let mut seeds = hostile("safetensors");
    let kinds = [
        "BOOL",
        "U8",
        "I8",
        "F8_E4M3",
        "F8_E5M2",
        "F8_E8M0",
        "F8_E4M3FNUZ",
        "F8_E5M2FNUZ",
        "U16",
        "I16",
        "F16",
        "BF16",
        "U32",
        "I32",
        "F32",
        "U64",
        "I64",
        "F64",
        "C64",
    ];
    let widths = [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 8];
    for (kind, width) in kinds.iter().zip(widths) {
        seeds.push(of(&format!(r#"{{"a.b":{{"dtype":"{kind}","shape":[2,3],"data_offsets":[0,{}]}}}}"#, 6 * width), 6 * width));
    }
    let all = kinds.iter().zip(widths).scan(0, |at, (kind, width)| {
        *at += 2 * width;
        Some(format!(r#""{kind}":{{"dtype":"{kind}","shape":[2],"data_offsets":[{},{at}]}}"#, *at - 2 * width))
    });
    let all: Vec<String> = all.collect();
    seeds.push(of(&format!(r#"{{"__metadata__":{{"format":"pt","k":"v"}},{}}}  "#, all.join(",")), 2 * widths.iter().sum::<usize>()));
    seeds
}

/// What is accepted, the reference accepts too, with the same tensors.
fn safetensors_answer(file: &[u8]) -> String {
    let report = inspected(FileFormat::Safetensors, file);
    if report.stage != "open" {
        let reference = safetensors::SafeTensors::deserialize(file).unwrap_or_else(|error| panic!("the reference refuses it: {error}"));
        assert_eq!(reference.len(), report.tensors);
        for own in &report.inventory {
            let other = reference.tensor(&own.name).unwrap_or_else(|error| panic!("the reference: {error}"));
            let shape: Vec<u64> = other.shape().iter().map(|&dim| dim as u64).collect();
            assert_eq!((own.dtype.as_str(), &own.shape), (other.dtype().to_string().as_str(), &shape), "{}", own.name);
        }
    }
    in_short(&report)
}

pub const SAFETENSORS: Target = Target {
    name: "safetensors-header",
    seeds: safetensors_seeds,
    words: &SAFETENSORS_WORDS,
    change: mutated_safetensors,
    answer: safetensors_answer,
    answers: 22,
};

// ---- GGUF

const GGUF_WORDS: [&str; 10] = [
    "GGUF\u{3}\0\0\0",
    "general.alignment",
    "split.count",
    "split.no",
    "general.architecture",
    "\u{8}\0\0\0",
    "\u{9}\0\0\0",
    "\u{1}\0\0\0\0\0\0\0t",
    "\0\0\0\0\0\0\0\0",
    "weight",
];

/// A file with keys of all types and one to three tensors of any types.
fn gguf_made(random: &mut Random) -> Vec<u8> {
    let widths = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
    let mut keys = Vec::new();
    for n in 0..random.below(5) {
        let kind = random.below(13);
        let scalar = |random: &mut Random, kind: usize| match kind {
            7 => vec![random.below(2) as u8],
            8 => text(b"word"),
            _ => random.word().to_le_bytes()[..widths[kind]].to_vec(),
        };
        let value = if kind == 9 {
            let (item, count) = (*random.of(&[0, 4, 6, 7, 8, 10]), random.below(4));
            let items: Vec<u8> = (0..count).flat_map(|_| scalar(random, item)).collect();
            array(item as u32, count as u64, &items)
        } else {
            scalar(random, kind)
        };
        keys.push(key(&format!("k.{n}"), kind as u32, &value));
    }
    let (mut offset, mut tensors) = (0, Vec::new());
    for n in 0..1 + random.below(3) {
        let kind = random.below(43) as u32;
        let Some((elements, bytes)) = GgmlType::from_id(kind).block else { continue };
        let (blocks, rows) = (1 + random.below(2) as u64, 1 + random.below(2) as u64);
        tensors.push(tensor(&format!("blk.{n}.weight"), &[elements * blocks, rows], kind, offset));
        offset += (bytes * blocks * rows).next_multiple_of(32);
    }
    let mut file = gg(&keys, &tensors, offset as usize);
    let start = file.len() - offset as usize;
    // Zero stays between tensors and behind the last one: the last 32 bytes are left alone.
    for at in start..file.len().saturating_sub(32) {
        file[at] = random.word() as u8;
    }
    file
}

fn gguf_seeds() -> Vec<Vec<u8>> {
    let mut random = Random(1);
    let mut seeds = hostile("gguf");
    seeds.extend((0..60).map(|_| gguf_made(&mut random)));
    seeds
}

pub const GGUF: Target = Target {
    name: "gguf-header",
    seeds: gguf_seeds,
    words: &GGUF_WORDS,
    change: mutated,
    answer: |file| in_short(&inspected(FileFormat::Gguf, file)),
    answers: 45,
};

// ---- index

const INDEX_WORDS: [&str; 12] = [
    "\"weight_map\":{",
    "\"metadata\":{\"total_size\":8}",
    "a.safetensors",
    "b.safetensors",
    "c.safetensors",
    ".safetensors",
    "\"a.0\":\"a.safetensors\",",
    "null",
    "{",
    "}",
    "[[[[",
    "\\u0000",
];

/// The shards beside every index: `a.safetensors` and `b.safetensors` with two tensors each, `c.safetensors` with one of `a`.
fn index_answer(file: &[u8]) -> String {
    let shards = ["a", "b"].map(|name| shard(&format!("{name}.safetensors"), &json!([format!("{name}.0"), format!("{name}.1")])));
    let twice = shard("c.safetensors", &json!(["a.0"]));
    let siblings: Vec<&dyn ByteSource> = shards.iter().chain([&twice]).map(|shard| shard as &dyn ByteSource).collect();
    in_short(&inspect(&MemorySource::new("f.index.json", file), Some(FileFormat::Index), &siblings, true))
}

fn index_seeds() -> Vec<Vec<u8>> {
    let whole = json!({"metadata": {"total_size": 16}, "weight_map": {"a.0": "a.safetensors", "a.1": "a.safetensors", "b.0": "b.safetensors", "b.1": "b.safetensors"}});
    let mut seeds = hostile("index");
    seeds.extend([whole.to_string().into_bytes(), serde_json::to_vec_pretty(&whole).unwrap(), b"{\"weight_map\":{}}".to_vec()]);
    seeds
}

pub const INDEX: Target =
    Target { name: "index", seeds: index_seeds, words: &INDEX_WORDS, change: mutated_json, answer: index_answer, answers: 11 };

// ---- manifest

/// `checkpoint.json` alone: its files are absent, which is the answer to a sound one.
fn manifest_answer(file: &[u8]) -> String {
    let source: Box<dyn ByteSource> = Box::new(MemorySource::new(MANIFEST_NAME, file));
    match Checkpoint::open_verified(vec![source]) {
        Ok(_) => "ok".into(),
        // The first words: the path of the field.
        Err(error) => format!("{} {}", error.code(), error.to_string().chars().take(40).collect::<String>()),
    }
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    let old = golden("checkpoints/v1/checkpoint.json");
    let mut new: serde_json::Value = serde_json::from_slice(&old).unwrap();
    new["version"] = 2.into();
    new["with_state"] = json!(["a"]);
    new["base"] = json!({"format": "gguf", "files": [{"name": "m.gguf", "bytes": 9}]});
    new["environment"] = json!({"version": "0.1.0", "adapter": "", "kernels": ""});
    for record in new["files"].as_array_mut().unwrap() {
        let digest = record.as_object_mut().unwrap().remove("sha256").unwrap();
        record["pieces"] = json!([digest]);
    }
    vec![old, serde_json::to_vec(&new).unwrap(), serde_json::to_vec_pretty(&new).unwrap(), b"{}".to_vec()]
}

pub const MANIFEST: Target =
    Target { name: "manifest", seeds: manifest_seeds, words: &JSON_WORDS, change: mutated_json, answer: manifest_answer, answers: 60 };

// ---- JSON state dict

const STATE_WORDS: [&str; 22] = [
    "\"format\":\"tabtune.torch_state_dict_json\",",
    "\"version\":1,",
    "\"encoding\":\"base64\",",
    "\"encoding\":\"numbers\",",
    "\"values\":[1,2]",
    "\"data\":\"AACAPw==\"",
    "\"dtype\":\"F16\",",
    "\"dtype\":\"U64\",",
    "BF16",
    "I8",
    "BOOL",
    "F64",
    "\"shape\":[2],",
    "65504",
    "65520",
    "3.4028235e38",
    "1e-46",
    "-0.0",
    "0.1",
    "null",
    "\"t\":{}",
    "=",
];

fn state_seeds() -> Vec<Vec<u8>> {
    let document = |encoding: &str, tensors: serde_json::Value| {
        json!({"format": "tabtune.torch_state_dict_json", "version": 1, "encoding": encoding, "state_dict": tensors})
            .to_string()
            .into_bytes()
    };
    let mut seeds = hostile("json");
    for (dtype, values) in [
        ("F32", "[0.5,-1]"),
        ("F16", "[0.5,65504]"),
        ("BF16", "[1,2]"),
        ("F64", "[0.1,1e300]"),
        ("I8", "[-128,127]"),
        ("U64", "[0,18446744073709551615]"),
        ("BOOL", "[0,1]"),
    ] {
        let values: serde_json::Value = serde_json::from_str(values).unwrap();
        seeds.push(document("numbers", json!({"t": {"dtype": dtype, "shape": [2], "values": values}})));
    }
    seeds.push(document(
        "base64",
        json!({"a": {"dtype": "F32", "shape": [], "data": "AACAPw=="}, "b": {"dtype": "U8", "shape": [3], "data": "AAEC"}}),
    ));
    seeds
}

pub const STATE_JSON: Target = Target {
    name: "json-state-dict",
    seeds: state_seeds,
    words: &STATE_WORDS,
    change: mutated_json,
    answer: |file| in_short(&inspected(FileFormat::Json, file)),
    answers: 13,
};

// ---- adapter

const ADAPTER_WORDS: [&str; 18] = [
    "\"peft_type\":\"LORA\",",
    "\"r\":8,",
    "\"lora_alpha\":16,",
    "\"target_modules\":[\"q_proj\"],",
    "\"use_dora\":true,",
    "\"bias\":\"all\",",
    "\"rank_pattern\":{\"q\":4},",
    "\"alpha_pattern\":{\"q\":4},",
    "\"init_lora_weights\":\"pissa\",",
    "\"layer_replication\":[[0,1]],",
    "\"modules_to_save\":[\"x\"],",
    "\"layers_to_transform\":[0],",
    "^(.*)+$",
    "(?i)",
    "\\\\d{1,999}",
    "null",
    "{",
    "}",
];

fn adapter_seeds() -> Vec<Vec<u8>> {
    let plain = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]});
    let full = json!({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8.5, "target_modules": "model\\.layers\\.\\d+\\.(q|v)_proj",
        "rank_pattern": {"layers.0.q": 2}, "alpha_pattern": {"layers.1": 3}, "bias": "none", "use_rslora": true, "fan_in_fan_out": false,
        "init_lora_weights": true, "layers_to_transform": [0, 1], "layers_pattern": "layers", "exclude_modules": ["lm_head"], "use_dora": false});
    let mut seeds = hostile("peft");
    seeds.extend([plain, full].map(|value| value.to_string().into_bytes()));
    seeds
}

pub const ADAPTER: Target = Target {
    name: "adapter-config",
    seeds: adapter_seeds,
    words: &ADAPTER_WORDS,
    change: mutated_json,
    answer: |file| in_short(&inspected(FileFormat::Peft, file)),
    answers: 11,
};

// ---- tokenizer

const TOKENIZER_WORDS: [&str; 14] = [
    "tokenizer.ggml.model",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.pre",
    "tokenizer.chat_template",
    "\u{4}\0\0\0\0\0\0\0gpt2",
    "<0x41>",
    "<0xFF>",
    "\u{2581}",
    "Ġ",
];

/// A model with the tokenizer's keys.
fn tokenizer_file(keys: Vec<(&'static str, Meta)>, rows: usize) -> Vec<u8> {
    let counts = [
        ("llama.context_length", 16),
        ("llama.embedding_length", 4),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 4),
        ("llama.attention.head_count", 1),
    ];
    let mut metadata = vec![("general.architecture", Meta::Text("llama")), ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5))];
    metadata.extend(counts.map(|(key, n)| (key, Meta::U32(n))));
    metadata.extend(keys);
    let embedding: Tensor = ("token_embd.weight", vec![rows, 4], ramp(4 * rows, 0.0));
    gguf(&metadata, &[embedding])
}

fn tokenizer_seeds() -> Vec<Vec<u8>> {
    let texts = |list: &[&str]| Meta::Texts(list.iter().map(|text| (*text).to_string()).collect());
    let pieces = || texts(&["<unk>", "<s>", "</s>", "<0x41>", "\u{2581}", "a", "b", "ab", "\u{2581}a"]);
    let sentence = vec![
        ("tokenizer.ggml.model", Meta::Text("llama")),
        ("tokenizer.ggml.tokens", pieces()),
        ("tokenizer.ggml.scores", Meta::F32s((0..9).map(|n| -(n as f32)).collect())),
        ("tokenizer.ggml.token_type", Meta::I32s(vec![2, 3, 3, 6, 1, 1, 1, 1, 1])),
        ("tokenizer.ggml.bos_token_id", Meta::U32(1)),
        ("tokenizer.ggml.eos_token_id", Meta::U32(2)),
        ("tokenizer.ggml.unknown_token_id", Meta::U32(0)),
        ("tokenizer.chat_template", Meta::Text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")),
    ];
    let bytes = vec![
        ("tokenizer.ggml.model", Meta::Text("gpt2")),
        ("tokenizer.ggml.pre", Meta::Text("gpt-2")),
        ("tokenizer.ggml.tokens", texts(&["a", "b", "Ġ", "ab", "Ġa", "<|end|>"])),
        ("tokenizer.ggml.token_type", Meta::I32s(vec![1, 1, 1, 1, 1, 3])),
        ("tokenizer.ggml.merges", texts(&["a b", "Ġ a"])),
        ("tokenizer.ggml.eos_token_id", Meta::U32(5)),
    ];
    let characters = vec![("tokenizer.ggml.model", Meta::Text("rwkv")), ("tokenizer.ggml.tokens", texts(&["a", "b", " ", "\\n", "\\\\"]))];
    let mut seeds: Vec<Vec<u8>> = cases().iter().filter(|case| case["id"].as_str().unwrap().starts_with('T')).map(bytes_of).collect();
    seeds.extend([tokenizer_file(sentence, 9), tokenizer_file(bytes, 6), tokenizer_file(characters, 5)]);
    seeds
}

/// What opens turns a text into ids and back, and renders a chat or refuses to.
fn tokenizer_answer(file_bytes: &[u8]) -> String {
    let report = in_short(&inspected(FileFormat::Gguf, file_bytes));
    let bundle = match open_bundle(vec![file("m.gguf", file_bytes)]) {
        Ok(bundle) => bundle,
        Err(error) => return format!("{report} {}", error.code()),
    };
    let Some(tokenizer) = &bundle.tokenizer else { return format!("{report} {:?}", bundle.tokenizer_refused().map(tabtune::Error::code)) };
    let ids = match tokenizer.encode("ab a\n\u{1f600}b <s>") {
        Ok(ids) => ids,
        Err(error) => return format!("{report} encode {}", error.code()),
    };
    assert!(ids.iter().all(|&id| (id as usize) < bundle.config.vocab_size), "ids beyond the embedding");
    format!("{report} {:?}", tokenizer.decode(&ids).map(|_| ()).map_err(|error| error.code()))
}

pub const TOKENIZER: Target = Target {
    name: "tokenizer-metadata",
    seeds: tokenizer_seeds,
    words: &TOKENIZER_WORDS,
    change: mutated,
    answer: tokenizer_answer,
    answers: 90,
};

// ---- block decoders

/// The types that have blocks.
fn block_types() -> Vec<(u32, u64, u64)> {
    (0..64)
        .filter_map(|id| GgmlType::from_id(id).block.filter(|block| block.0 > 1).map(|(elements, bytes)| (id, elements, bytes)))
        .collect()
}

/// The values of whole blocks of a type, every NaN with the same bits.
fn decoded(id: u32, elements: u64, data: &[u8], count: u64) -> Vec<u32> {
    let mut bytes = gg(&[], &[tensor("t", &[elements * count], id, 0)], data.len().next_multiple_of(32));
    let start = bytes.len() - data.len().next_multiple_of(32);
    bytes[start..start + data.len()].copy_from_slice(data);
    let source = MemorySource::new("f", bytes);
    let values = dequantise(&source, &GgufFile::open(&source).unwrap().tensors[0]).unwrap();
    values.into_iter().map(|value| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }).collect()
}

/// The first byte chooses a type, the others are blocks: as many values as the type says, and each block has its values wherever it is.
fn blocks_answer(file: &[u8]) -> String {
    let types = block_types();
    let Some((choice, data)) = file.split_first() else { return "empty".into() };
    let (id, elements, bytes) = types[usize::from(*choice) % types.len()];
    let count = data.len() as u64 / bytes;
    if count == 0 {
        return format!("{id} none");
    }
    let data = &data[..(count * bytes) as usize];
    let whole = decoded(id, elements, data, count);
    assert_eq!(whole.len() as u64, elements * count);
    let last = decoded(id, elements, &data[data.len() - bytes as usize..], 1);
    assert_eq!(whole[whole.len() - elements as usize..], last);
    let finite = whole.iter().all(|bits| f32::from_bits(*bits).is_finite());
    format!("{id} {count} {finite}")
}

fn block_seeds() -> Vec<Vec<u8>> {
    let mut random = Random(2);
    let of = |choice: usize, bytes: u64, random: &mut Random| {
        let blocks = 1 + random.below(3) as u64;
        [vec![choice as u8], (0..bytes * blocks).map(|_| random.word() as u8).collect()].concat()
    };
    block_types().iter().enumerate().map(|(choice, (_, _, bytes))| of(choice, *bytes, &mut random)).collect()
}

/// New random bytes, mostly: decoders have no grammar.
fn new_blocks(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut file = mutated(random, files, words);
    file.truncate(1 << 10);
    if random.below(2) == 0 {
        file.iter_mut().skip(1).for_each(|byte| *byte = random.word() as u8);
    }
    file
}

pub const BLOCKS: Target = Target {
    name: "block-decoders",
    seeds: block_seeds,
    words: &["\0", "\u{7f}"],
    change: new_blocks,
    answer: blocks_answer,
    answers: 800,
};
