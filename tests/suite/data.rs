//! Training data: the contents and order of batches, and refused data.

mod arrays;
mod chats;
mod chosen;
mod forms;
mod joints;
mod kinds;
mod large;
mod messages;
mod newlines;
mod packing;
mod shares;
mod tables;
mod text_to_ids;
pub mod words;

use std::collections::BTreeSet;

use proptest::prelude::*;
use tabtune::config::{DataOrder, DataSettings, Form, TrainConfig};
use tabtune::data::{Batch, DataFile, Dataset, IGNORE_INDEX, Loader};
use tabtune::tokenizer::Tokenizer;

use super::tokenizer::byte_level;

/// Returns a tokenizer with the characters "abc…" as ids 0, 1, 2, …
fn letters() -> Tokenizer {
    Tokenizer::characters("abcdefghijklmnopqrstuvwxyz").unwrap()
}

fn stream(tokens: u32, validation_fraction: f64) -> Dataset {
    Dataset::from_tokens((0..tokens).collect(), validation_fraction).unwrap()
}

fn rows(batch: &Batch) -> Vec<(&[i32], &[i32])> {
    assert_eq!(
        (batch.inputs.len(), batch.targets.len()),
        (
            batch.batch_size * batch.seq_len,
            batch.batch_size * batch.seq_len
        )
    );
    batch
        .inputs
        .chunks(batch.seq_len)
        .zip(batch.targets.chunks(batch.seq_len))
        .collect()
}

/// Reads token ids, which need no tokenizer.
pub fn of_ids(bytes: &[u8]) -> tabtune::Result<Dataset> {
    Dataset::read(
        &[&DataFile {
            name: "ids.tokens",
            bytes,
        }],
        Err(tabtune::Error::Aborted),
        &DataSettings::default(),
    )
}

#[test]
fn text_windows_cover_an_epoch_without_overlap() {
    let data = stream(1000, 0.0);
    let mut loader = Loader::new(&data, 4, 16, 7).unwrap();
    for epoch in 0..3 {
        let mut seen = BTreeSet::new();
        let items = loader.items_per_epoch();
        assert!(items >= 1000 / 16 - 1);
        let batch = Loader::new(&data, items, 16, 7).map(|mut one| {
            let mut state = loader.state();
            (state.epoch, state.cursor) = (epoch, 0);
            one.restore(&data, state).unwrap();
            one.next(&data).unwrap()
        });
        for (inputs, targets) in rows(&batch.unwrap()) {
            assert!(
                inputs
                    .iter()
                    .zip(targets)
                    .all(|(input, target)| target - input == 1)
            );
            assert!(
                inputs.iter().all(|&token| seen.insert(token)),
                "token twice in epoch {epoch}"
            );
        }
        assert!(seen.len() >= 1000 - 2 * 16);
        loader = Loader::new(&data, 4, 16, 7).unwrap();
        let mut state = loader.state();
        state.epoch = epoch + 1;
        loader.restore(&data, state).unwrap();
    }
}

#[test]
fn order_depends_on_seed_and_epoch_alone() {
    let data = stream(5000, 0.1);
    let first = |seed: u64| {
        Loader::new(&data, 8, 32, seed)
            .unwrap()
            .next(&data)
            .unwrap()
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    let mut loader = Loader::new(&data, 1, 32, 1).unwrap();
    let epoch: Vec<Batch> = (0..loader.items_per_epoch())
        .map(|_| loader.next(&data).unwrap())
        .collect();
    assert_eq!(loader.state().epoch, 0);
    let next = loader.next(&data).unwrap();
    assert_eq!((loader.state().epoch, loader.state().cursor), (1, 1));
    assert_ne!(next, epoch[0]);
    // Another batch size takes the same windows.
    let mut wide = Loader::new(&data, 5, 32, 1).unwrap();
    let five = wide.next(&data).unwrap();
    for (row, single) in rows(&five).iter().zip(&epoch) {
        assert_eq!(row.0, single.inputs);
    }
}

/// Makes a loader in the data's own order.
fn in_order(
    data: &Dataset,
    batch_size: usize,
    seq_len: usize,
    seed: u64,
) -> tabtune::Result<Loader> {
    let config = TrainConfig {
        batch_size,
        seq_len,
        seed,
        packing: false,
        data_order: DataOrder::Sequential,
        ..TrainConfig::default()
    };
    Loader::for_run(data, &config)
}

#[test]
fn sequential_order_is_that_of_the_data_in_every_epoch() {
    // 10 windows of 8 inputs and the token after the last.
    let data = stream(81, 0.0);
    let mut loader = in_order(&data, 4, 8, 7).unwrap();
    assert_eq!(loader.items_per_epoch(), 10);
    let inputs: Vec<i32> = (0..5)
        .flat_map(|_| loader.next(&data).unwrap().inputs)
        .collect();
    assert_eq!(inputs, (0..80).chain(0..80).collect::<Vec<i32>>());
    let mut resumed = in_order(&data, 4, 8, 7).unwrap();
    resumed.restore(&data, loader.state()).unwrap();
    assert_eq!(loader.next(&data).unwrap(), resumed.next(&data).unwrap());
    // The remainder at the end is a window too, and counts as many targets as it has.
    let data = stream(84, 0.0);
    let mut loader = in_order(&data, 11, 8, 7).unwrap();
    assert_eq!(loader.items_per_epoch(), 11);
    let batch = loader.next(&data).unwrap();
    assert_eq!(
        (
            batch.counted(),
            &batch.targets[80..83],
            &batch.targets[83..88]
        ),
        (83, &[81, 82, 83][..], &[IGNORE_INDEX; 5][..])
    );
    assert_eq!(loader.next(&data).unwrap(), batch);
    // Examples come in the order of their lines too.
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let lines: String = ["a", "b", "c"]
        .map(|word| format!("{{\"prompt\": \"x\", \"completion\": \"{word}\"}}\n"))
        .concat();
    let examples = Dataset::from_bytes(lines.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    let batch = in_order(&examples, 3, 16, 3)
        .unwrap()
        .next(&examples)
        .unwrap();
    assert_eq!(learned(&tokenizer, &batch).replace("<|im_end|>", ""), "abc");
}

#[test]
fn token_files_are_ids_without_a_tokenizer() {
    let ids: [u32; 4] = [3, 0x0102, 70_000, i32::MAX as u32];
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let data = of_ids(&bytes).unwrap();
    assert_eq!(
        data.digest(),
        Dataset::from_tokens(ids.to_vec(), 0.0).unwrap().digest()
    );
    assert_eq!(
        Loader::new(&data, 1, 3, 0)
            .unwrap()
            .next(&data)
            .unwrap()
            .targets,
        [0x0102, 70_000, i32::MAX]
    );
    // The ids do not change if a tokenizer is given.
    assert_eq!(
        Dataset::from_bytes(&bytes, Form::Tokens, &letters(), 0.0)
            .unwrap()
            .digest(),
        data.digest()
    );
    let code = |bytes: &[u8]| of_ids(bytes).unwrap_err().code();
    assert_eq!(code(&bytes[..15]), "data.tokens");
    assert_eq!(code(&[0, 0, 0, 0, 0, 0, 0, 0x80]), "data.tokens");
    assert_eq!(code(&bytes[..4]), "data.too-short");
}

#[test]
fn order_is_fixed_by_the_specification() {
    // Computed by a second program: Philox4x32-10 under "data:" keys, Fisher-Yates from the end (`make_data_order.py`).
    let data = stream(200, 0.0);
    let mut loader = Loader::new(&data, 6, 16, 42).unwrap();
    let starts: Vec<i32> = rows(&loader.next(&data).unwrap())
        .iter()
        .map(|(inputs, _)| inputs[0])
        .collect();
    assert_eq!(starts, ORDER_SEED_42);
}

const ORDER_SEED_42: [i32; 6] = [155, 171, 91, 139, 75, 123];

#[test]
fn restored_loader_continues_bit_for_bit() {
    let data = stream(777, 0.0);
    for stop in [0, 1, 5, 13, 60] {
        let mut straight = Loader::new(&data, 3, 20, 9).unwrap();
        for _ in 0..stop {
            straight.next(&data).unwrap();
        }
        let saved = serde_json::to_string(&straight.state()).unwrap();
        let mut resumed = Loader::new(&data, 3, 20, 9).unwrap();
        resumed
            .restore(&data, serde_json::from_str(&saved).unwrap())
            .unwrap();
        for _ in 0..40 {
            assert_eq!(straight.next(&data).unwrap(), resumed.next(&data).unwrap());
        }
        assert_eq!(straight.state(), resumed.state());
    }
}

#[test]
fn loader_refuses_a_state_of_other_data_and_lists_all_differences() {
    let (data, other) = (stream(500, 0.0), stream(501, 0.0));
    let state = Loader::new(&other, 2, 10, 3).unwrap().state();
    let refused = Loader::new(&data, 2, 11, 4)
        .unwrap()
        .restore(&data, state)
        .unwrap_err();
    assert_eq!(refused.code(), "optim.resume-mismatch");
    let text = refused.to_string();
    assert!(
        ["data.digest", "seq_len", "seed"]
            .iter()
            .all(|key| text.contains(key)),
        "{text}"
    );
    let mut loader = Loader::new(&data, 2, 10, 3).unwrap();
    let mut beyond = loader.state();
    beyond.cursor = 51;
    assert_eq!(
        loader.restore(&data, beyond).unwrap_err().code(),
        "checkpoint.corrupt"
    );
}

#[test]
fn validation_is_the_end_and_is_never_trained_on() {
    let data = stream(1000, 0.25);
    assert_eq!((data.train_tokens(), data.validation_tokens()), (750, 250));
    let mut loader = Loader::new(&data, 7, 24, 0).unwrap();
    for _ in 0..30 {
        assert!(
            loader
                .next(&data)
                .unwrap()
                .targets
                .iter()
                .all(|&target| target < 750)
        );
    }
    let batches: Vec<Batch> = data.validation_batches(3, 24).map(Result::unwrap).collect();
    let predicted: Vec<i32> = batches
        .iter()
        .flat_map(|batch| batch.targets.clone())
        .filter(|&target| target != IGNORE_INDEX)
        .collect();
    assert_eq!(predicted, (751..1000).collect::<Vec<i32>>());
    assert_eq!(batches.iter().map(Batch::counted).sum::<usize>(), 249);
    assert_eq!(stream(1000, 0.0).validation_batches(3, 24).count(), 0);
}

#[test]
fn evaluation_windows_share_no_token() {
    let data = stream(100, 0.0);
    let batches: Vec<Batch> = data
        .evaluation_batches(2, 32, None)
        .map(Result::unwrap)
        .collect();
    assert!(batches.iter().all(|batch| batch.seq_len == 31));
    let predicted: Vec<i32> = batches
        .iter()
        .flat_map(|batch| batch.targets.clone())
        .filter(|&target| target != IGNORE_INDEX)
        .collect();
    assert_eq!(
        predicted,
        (0..100)
            .filter(|token| token % 32 != 0)
            .collect::<Vec<i32>>()
    );
    let first: Vec<Batch> = data
        .evaluation_batches(4, 64, Some(64))
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        (first.len(), first[0].batch_size, first[0].counted()),
        (1, 1, 63)
    );
    // Absurd sizes cost no memory.
    assert_eq!(
        data.evaluation_batches(usize::MAX, usize::MAX, Some(usize::MAX))
            .map(|b| b.unwrap().counted())
            .sum::<usize>(),
        99
    );
}

#[test]
fn text_is_tokenized_and_split_like_nanogpt() {
    let data = Dataset::from_bytes(b"abcdefghij", Form::Text, &letters(), 0.1).unwrap();
    assert_eq!((data.train_tokens(), data.validation_tokens()), (9, 1));
    let batch = Loader::new(&data, 1, 8, 0).unwrap().next(&data).unwrap();
    assert_eq!(
        (batch.inputs, batch.targets),
        ((0..8).collect(), (1..9).collect())
    );
}

const CHAT: &str = r#"{"messages":[{"role":"user","content":"Hi there"},{"role":"assistant","content":"Good day"},{"role":"user","content":"Again"},{"role":"assistant","content":"Well."}]}"#;

/// Returns the text of the counted targets of a one-row batch.
fn learned(tokenizer: &Tokenizer, batch: &Batch) -> String {
    let ids: Vec<u32> = batch
        .targets
        .iter()
        .filter(|&&id| id != IGNORE_INDEX)
        .map(|&id| id as u32)
        .collect();
    tokenizer.decode(&ids).unwrap()
}

#[test]
fn loss_counts_on_the_turns_of_the_assistant() {
    let tokenizer = Tokenizer::from_parts(byte_level("smollm")).unwrap();
    let data = Dataset::from_bytes(CHAT.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    let batch = Loader::new(&data, 1, 256, 0).unwrap().next(&data).unwrap();
    assert_eq!(
        learned(&tokenizer, &batch),
        "Good day<|im_end|>Well.<|im_end|>"
    );
    let ids: Vec<u32> = batch.inputs.iter().map(|&id| id as u32).collect();
    let text = tokenizer.decode(&ids).unwrap();
    let start = "<|im_start|>system\nYou are helpful<|im_end|>\n<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\nGood day<|im_end|>\n";
    assert!(text.starts_with(start), "{text}");
    // Each counted target equals the next input.
    let pairs = batch
        .targets
        .iter()
        .zip(batch.inputs.iter().skip(1))
        .filter(|(target, _)| **target != IGNORE_INDEX);
    assert!(pairs.into_iter().all(|(target, next)| target == next));
}

#[test]
fn loss_counts_on_the_completion_and_the_token_that_ends_it() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let line = r#"{"prompt": "The answer is", "completion": " certain", "id": 7}"#;
    let data = Dataset::from_bytes(line.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    let batch = Loader::new(&data, 2, 64, 0).unwrap().next(&data).unwrap();
    assert_eq!(rows(&batch)[0], rows(&batch)[1]);
    assert_eq!(
        learned(
            &tokenizer,
            &Loader::new(&data, 1, 64, 0).unwrap().next(&data).unwrap()
        ),
        " certain<|im_end|>"
    );
}

#[test]
fn examples_are_cut_filled_and_left_out_when_nothing_is_learned() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let text = format!(
        "{}\n\n{}\r\n",
        r#"{"prompt": "a", "completion": " b"}"#, CHAT
    );
    let data = Dataset::from_bytes(text.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    // Within 4 tokens only the first example has a target.
    let mut short = Loader::new(&data, 2, 4, 0).unwrap();
    assert_eq!(short.items_per_epoch(), 1);
    assert_eq!(short.next(&data).unwrap().counted(), 4);
    assert_eq!(Loader::new(&data, 2, 200, 0).unwrap().items_per_epoch(), 2);
    let chat = Dataset::from_bytes(CHAT.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    assert_eq!(
        Loader::new(&chat, 2, 4, 0).unwrap_err().code(),
        "data.no-targets"
    );
    let split = Dataset::from_bytes(text.as_bytes(), Form::Jsonl, &tokenizer, 0.5).unwrap();
    assert_eq!(
        split
            .validation_batches(4, 256)
            .map(|batch| learned(&tokenizer, &batch.unwrap()))
            .collect::<String>(),
        "Good day<|im_end|>Well.<|im_end|>"
    );
}

#[test]
fn document_mask_starts_again_after_each_end() {
    let mut data = Dataset::from_tokens(vec![5, 9, 5, 5, 8, 9, 9, 5, 5, 5, 9], 0.0).unwrap();
    let batch = |data: &Dataset| in_order(data, 2, 5, 0).unwrap().next(data).unwrap();
    assert_eq!(
        batch(&data).document_starts,
        None,
        "unless asked for, a token sees all that is before it"
    );
    // A text whose documents have no known end is not treated as one document.
    let refused = data.mask_documents(true).unwrap_err();
    assert_eq!(
        (
            refused.code(),
            refused.to_string().contains("document_mask")
        ),
        ("config.invalid", true)
    );
    data = data.with_document_ends(&[9, 8]);
    data.mask_documents(true).unwrap();
    let found = batch(&data);
    assert_eq!(found.inputs, [5, 9, 5, 5, 8, 9, 9, 5, 5, 5]);
    // The end token belongs to its document; each window starts a document, whatever was before it.
    assert_eq!(
        found.document_starts.unwrap(),
        [0, 0, 2, 2, 2, 0, 1, 2, 2, 2]
    );
    let evaluated: Vec<Batch> = data
        .evaluation_batches(1, 6, None)
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        evaluated[0].document_starts.as_deref(),
        Some(&[0, 0, 2, 2, 2][..])
    );
}

#[test]
fn document_mask_takes_the_tokenizers_ends_and_leaves_examples_whole() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let text = "one<|endoftext|>two<|endoftext|>";
    let mut data = Dataset::from_bytes(text.as_bytes(), Form::Text, &tokenizer, 0.0).unwrap();
    data.mask_documents(true).unwrap();
    let batch = data
        .evaluation_batches(1, 64, None)
        .next()
        .unwrap()
        .unwrap();
    let end = tokenizer.encode("one<|endoftext|>").unwrap().len() as i32;
    let starts = batch.document_starts.unwrap();
    assert!(
        starts
            .iter()
            .enumerate()
            .all(|(at, &start)| start == if at < end as usize { 0 } else { end }),
        "{starts:?}"
    );
    // The turns of a conversation end with the same token, but are one document.
    let mut chat = Dataset::from_bytes(CHAT.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    chat.mask_documents(true).unwrap();
    assert_eq!(
        Loader::new(&chat, 1, 64, 0)
            .unwrap()
            .next(&chat)
            .unwrap()
            .document_starts,
        None
    );
}

#[test]
fn bad_data_is_a_typed_error() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let refuse = |bytes: &[u8], format: Form| {
        Dataset::from_bytes(bytes, format, &tokenizer, 0.0).unwrap_err()
    };
    assert_eq!(refuse(b"", Form::Text).code(), "data.empty");
    assert_eq!(refuse(b"a", Form::Text).code(), "data.too-short");
    assert_eq!(refuse(b"\n \n", Form::Jsonl).code(), "data.empty");
    let not_text = refuse(b"ab\xffcd", Form::Text);
    assert_eq!(
        (not_text.code(), not_text.to_string().contains("byte 2 is")),
        ("data.encoding", true)
    );
    let good = r#"{"prompt":"a","completion":"b"}"#;
    for bad in [
        "{",
        "[]",
        "3",
        "{}",
        r#"{"prompt":"a"}"#,
        r#"{"prompt":1,"completion":"b"}"#,
        r#"{"messages":[]}"#,
        r#"{"messages":"hi"}"#,
        r#"{"messages":[{"role":"user","content":"x"}]}"#,
        r#"{"messages":[{"role":"assistant"}]}"#,
        r#"{"messages":[{"role":"assistant","content":null}]}"#,
        r#"{"messages":[{"role":"assistant","content":"x","weight":0.5}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"image"}]},{"role":"assistant","content":"x"}]}"#,
        r#"{"messages":[{"content":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"image","text":"y"}]},{"role":"assistant","content":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"x"}],"chat_template_kwargs":{"messages":[]}}"#,
        r#"{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"x"}],"chat_template_kwargs":3}"#,
    ] {
        let refused = refuse(format!("{good}\n\n{bad}\n{good}").as_bytes(), Form::Jsonl);
        let words = [
            "data.row",
            "data.shape",
            "data.template",
            "data.message.part",
            "data.message.weight",
        ];
        assert!(words.contains(&refused.code()), "{bad}: {refused}");
        assert!(
            refused.to_string().starts_with("jsonl: ") && refused.to_string().contains("line 3"),
            "{bad}: {refused}"
        );
    }
    let short = stream(10, 0.0);
    assert_eq!(
        Loader::new(&short, 1, 10, 0).unwrap_err().code(),
        "data.too-short"
    );
    assert_eq!(Loader::new(&short, 1, 9, 0).unwrap().items_per_epoch(), 1);
    for (batch_size, seq_len) in [(0, 1), (1, 0), (usize::MAX, 2), (1, usize::MAX)] {
        assert_eq!(
            Loader::new(&short, batch_size, seq_len, 0)
                .unwrap_err()
                .code(),
            "config.invalid"
        );
    }
    assert_eq!(refuse(b"x", Form::Jsonl).code(), "data.form.contradicts");
}

#[test]
fn digest_is_of_the_token_stream() {
    // SHA-256 of the ids 0 to 9 as u32, little endian, by Python's hashlib.
    let ten = "10b4796eac59c7d81c33711f219ba227247a4e338adad078159ba01e87590841";
    let (a, b) = (stream(10, 0.0), stream(10, 0.5));
    assert_eq!((a.digest().as_str(), b.digest().as_str()), (ten, ten));
    assert_ne!(a.digest(), stream(11, 0.0).digest());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_loader_resumes_and_stays_inside(tokens in 2u32..400, seq_len in 1usize..60, batch_size in 1usize..9, seed: u64, stop in 0usize..30) {
        let data = stream(tokens, 0.0);
        match Loader::new(&data, batch_size, seq_len, seed) {
            Err(refused) => prop_assert!(tokens as usize <= seq_len && refused.code() == "data.too-short"),
            Ok(mut loader) => {
                for _ in 0..stop {
                    let batch = loader.next(&data).unwrap();
                    prop_assert_eq!(batch.counted(), batch_size * seq_len);
                    for (inputs, targets) in rows(&batch) {
                        prop_assert!(inputs.iter().zip(targets).all(|(input, target)| target - input == 1 && *target < tokens as i32));
                    }
                }
                let mut resumed = Loader::new(&data, batch_size, seq_len, seed).unwrap();
                resumed.restore(&data, loader.state()).unwrap();
                prop_assert_eq!(loader.next(&data).unwrap(), resumed.next(&data).unwrap());
            }
        }
    }
}
