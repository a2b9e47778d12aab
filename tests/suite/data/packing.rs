//! Several examples in a sequence, examples that are too long for one, and the preview for people.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tabtune::config::{DataOrder, DataSettings, Form, OnLong, TrainConfig};
use tabtune::data::{Batch, DataFile, Dataset, IGNORE_INDEX, Loader};
use tabtune::tokenizer::Tokenizer;

use crate::tokenizer::byte_level;

fn tokenizer() -> Tokenizer {
    Tokenizer::from_parts(byte_level("gpt-2")).unwrap()
}

/// Makes rows of ids of these lengths. The ids of a row count up from its number, so that each position can be identified.
fn rows(lengths: &[usize]) -> Dataset {
    let vocabulary = tokenizer().vocab_size();
    let row = |(row, length): (usize, &usize)| {
        let ids: Vec<usize> = (0..*length)
            .map(|at| (row * 31 + at) % vocabulary)
            .collect();
        format!("{{\"input_ids\": {ids:?}}}\n")
    };
    let text: String = lengths.iter().enumerate().map(row).collect();
    Dataset::from_bytes(text.as_bytes(), Form::Jsonl, &tokenizer(), 0.0).unwrap()
}

fn packed(seq_len: usize, seed: u64) -> TrainConfig {
    TrainConfig {
        batch_size: 1,
        seq_len,
        seed,
        ..TrainConfig::default()
    }
}

/// Returns the documents of a row of a batch: inputs and targets of each, without padding.
fn documents(batch: &Batch) -> Vec<(Vec<i32>, Vec<i32>)> {
    let mut found: BTreeMap<i32, (Vec<i32>, Vec<i32>)> = BTreeMap::new();
    for ((input, target), start) in batch
        .inputs
        .iter()
        .zip(&batch.targets)
        .zip(batch.document_starts.as_ref().unwrap())
    {
        let (inputs, targets) = found.entry(*start).or_default();
        inputs.push(*input);
        targets.push(*target);
    }
    found
        .into_values()
        .filter(|(_, targets)| targets.iter().any(|target| *target != IGNORE_INDEX))
        .collect()
}

/// Returns pseudo-random lengths from `from` to `to`.
fn drawn(count: usize, from: usize, to: usize) -> Vec<usize> {
    // The linear congruential generator of Numerical Recipes, whose higher bits are used.
    let next = |state: &mut u32, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(from + (*state >> 12) as usize % (to - from + 1))
    };
    (0..count).scan(1, next).collect()
}

#[test]
fn packed_windows_have_each_example_once_an_epoch() {
    let lengths = drawn(300, 2, 70);
    let data = rows(&lengths);
    let mut loader = Loader::for_run(&data, &packed(64, 7)).unwrap();
    let mut expected: Vec<Vec<i32>> = Vec::new();
    let mut alone = Loader::for_run(
        &data,
        &TrainConfig {
            packing: false,
            data_order: DataOrder::Sequential,
            ..packed(64, 7)
        },
    )
    .unwrap();
    for length in &lengths {
        let batch = alone.next(&data).unwrap();
        expected.push(batch.inputs[..(length - 1).min(64)].to_vec());
    }
    let mut orders = Vec::new();
    for epoch in 0..2 {
        let windows = loader.items_per_epoch();
        let batches: Vec<Batch> = (0..windows).map(|_| loader.next(&data).unwrap()).collect();
        assert_eq!(
            (loader.state().epoch, loader.epochs()),
            (epoch, (epoch + 1) as f64)
        );
        let mut found: Vec<Vec<i32>> = batches
            .iter()
            .flat_map(documents)
            .map(|(inputs, _)| inputs)
            .collect();
        orders.push(found.clone());
        let mut all = expected.clone();
        found.sort();
        all.sort();
        assert!(found == all, "epoch {epoch} has other examples");
        // Each document has its own targets, from its first position on.
        for (inputs, targets) in batches.iter().flat_map(documents) {
            assert_eq!(inputs[1..], targets[..targets.len() - 1]);
        }
        // Resumed in the middle, it continues as if it had never stopped.
        if epoch == 0 {
            let mut resumed = Loader::for_run(&data, &packed(64, 7)).unwrap();
            let at = loader.state();
            resumed
                .restore(&data, tabtune::data::LoaderState { cursor: 3, ..at })
                .unwrap();
            assert_eq!(resumed.next(&data).unwrap(), batches[3]);
            assert_eq!(resumed.epochs(), 4.0 / windows as f64);
        }
    }
    assert_ne!(orders[0], orders[1]);
    let other = Loader::for_run(&data, &packed(64, 8))
        .unwrap()
        .next(&data)
        .unwrap();
    assert_ne!(
        other,
        Loader::for_run(&data, &packed(64, 7))
            .unwrap()
            .next(&data)
            .unwrap()
    );
    // In the data's own order nothing is moved.
    let mut ordered = Loader::for_run(
        &data,
        &TrainConfig {
            data_order: DataOrder::Sequential,
            ..packed(64, 7)
        },
    )
    .unwrap();
    let found: Vec<Vec<i32>> = (0..ordered.items_per_epoch())
        .flat_map(|_| documents(&ordered.next(&data).unwrap()))
        .map(|(inputs, _)| inputs)
        .collect();
    assert!(found == expected);
}

#[test]
fn packing_fills_the_sequences() {
    // 2,000 short chats, and chats of which half are short and half are long.
    for (lengths, least) in [
        (drawn(2000, 40, 300), 0.95),
        ([drawn(100, 20, 60), drawn(100, 300, 900)].concat(), 0.85),
    ] {
        let data = rows(&lengths);
        let seq_len = data.proposed_seq_len(4, true, 2048).unwrap();
        let fit = Loader::for_run(&data, &packed(seq_len, 3)).unwrap().fit();
        assert!(
            fit.packed_fraction >= least,
            "{} of {seq_len}",
            fit.packed_fraction
        );
    }
}

#[test]
fn sequence_length_follows_from_the_rows() {
    let proposed = |lengths: &[usize], packing, context| {
        rows(lengths).proposed_seq_len(4, packing, context).unwrap()
    };
    // 95 of 100 fit completely into 64 inputs and the token after them.
    let lengths = [vec![65; 95], vec![500; 5]].concat();
    assert_eq!(
        (
            proposed(&lengths, false, 2048),
            proposed(&lengths, true, 2048)
        ),
        (64, 256)
    );
    assert_eq!(
        proposed(&[vec![65; 94], vec![500; 6]].concat(), false, 2048),
        512
    );
    assert_eq!(
        (
            proposed(&[5000; 9], true, 8192),
            proposed(&[5000; 9], true, 300)
        ),
        (1024, 300)
    );
    // At most what all rows together fill.
    assert_eq!(proposed(&[10; 3], true, 2048), 64);
    assert_eq!(
        Dataset::from_tokens((0..100).collect(), 0.0)
            .unwrap()
            .proposed_seq_len(4, true, 64),
        None
    );
}

#[test]
fn long_examples_are_counted_and_cut_left_out_or_split() {
    let text = |words: usize| format!("{{\"text\": \"{}\"}}\n", "ab ".repeat(words));
    let file = [text(2), text(100), text(3)].concat()
        + "{\"prompt\": \"ab\", \"completion\": \""
        + &"ab ".repeat(100)
        + "\"}\n";
    let data = Dataset::from_bytes(file.as_bytes(), Form::Jsonl, &tokenizer(), 0.0).unwrap();
    let longest = data
        .report(
            &packed(32, 0),
            &Loader::for_run(&data, &packed(32, 0)).unwrap(),
        )
        .lengths
        .unwrap()
        .max;
    let of = |on_long| {
        let config = TrainConfig {
            on_long,
            ..packed(32, 0)
        };
        let mut loader = Loader::for_run(&data, &config).unwrap();
        let report = data.report(&config, &loader);
        let learned: usize = (0..loader.items_per_epoch())
            .map(|_| loader.next(&data).unwrap().counted())
            .sum();
        let long: Vec<_> = report
            .warnings
            .iter()
            .filter(|warning| warning.code == "data.long")
            .cloned()
            .collect();
        (report.cut, report.skipped, learned, long)
    };
    let (cut, skipped, learned, long) = of(OnLong::Cut);
    assert_eq!((cut, skipped, long.len(), long[0].count), (2, 0, 1, 2));
    let holds = format!(
        "The longest has {longest}: sequences of {} hold all",
        (longest - 1).next_multiple_of(64)
    );
    assert!(long[0].message.contains(&holds), "{}", long[0].message);
    let (cut, skipped, left, long) = of(OnLong::Skip);
    assert_eq!((cut, skipped, long[0].count), (0, 2, 2));
    // A document continues in the next sequence, so that each of its targets is learned; the completion is cut.
    let (cut, skipped, split, long) = of(OnLong::Split);
    assert_eq!((cut, skipped, long[0].count), (1, 0, 1));
    let whole = data.report(
        &packed(2048, 0),
        &Loader::for_run(&data, &packed(2048, 0)).unwrap(),
    );
    let answer = whole.tokens.learned;
    assert!(left < learned && learned < split && split < answer);
    assert_eq!(
        (whole.cut, whole.skipped, whole.warnings),
        (0, 0, Vec::new())
    );
    // An example whose answer is beyond the sequence is left out, which is reported too.
    let late = String::from("{\"text\": \"ab\"}\n{\"prompt\": \"")
        + &"ab ".repeat(100)
        + "\", \"completion\": \" ab\"}\n";
    let late = Dataset::from_bytes(late.as_bytes(), Form::Jsonl, &tokenizer(), 0.0).unwrap();
    let report = late.report(
        &packed(32, 0),
        &Loader::for_run(&late, &packed(32, 0)).unwrap(),
    );
    let told: Vec<_> = report
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.count))
        .collect();
    assert_eq!((report.skipped, told), (1, vec![("data.untaught", 1)]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The text shown as learned equals the targets of a step, for every shape of row, packed or not, cut or split.
    #[test]
    fn preview_is_what_a_step_counts(
        rows in prop::collection::vec((0u8..4, "[ab é\n]{0,40}", "[ab é\n]{1,60}"), 1..12),
        seq_len in 1usize..50,
        packing: bool,
        on_long in prop::sample::select(vec![OnLong::Cut, OnLong::Split]),
    ) {
        let line = |(shape, first, second): &(u8, String, String)| match shape {
            0 => serde_json::json!({"prompt": first, "completion": second}),
            1 => serde_json::json!({"text": second}),
            2 => serde_json::json!({"instruction": first, "output": second}),
            _ => serde_json::json!({"messages": [{"role": "user", "content": first}, {"role": "assistant", "content": second}]}),
        }.to_string() + "\n";
        let file: String = rows.iter().map(line).collect();
        let tokenizer = tokenizer();
        let data = Dataset::read(&[&DataFile { name: "rows", bytes: file.as_bytes() }], Ok::<_, tabtune::Error>(&tokenizer), &DataSettings::default()).unwrap();
        let config = TrainConfig { batch_size: 1, seq_len, packing, on_long, data_order: DataOrder::Sequential, ..TrainConfig::default() };
        let Ok(mut loader) = Loader::for_run(&data, &config) else { return Ok(()) };
        let counted: Vec<i32> = (0..loader.items_per_epoch()).flat_map(|_| loader.next(&data).unwrap().targets).filter(|id| *id != IGNORE_INDEX).collect();
        let preview = data.preview(&config, &tokenizer, usize::MAX).unwrap();
        let learned = preview.iter().flat_map(|example| &example.segments).filter(|segment| segment.learned);
        let shown: Vec<i32> = learned.flat_map(|segment| &segment.tokens).map(|token| token.id as i32).collect();
        prop_assert_eq!(shown, counted);
    }
}
