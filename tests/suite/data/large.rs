//! Data that is read piece by piece: pieces do not change the result, tokens may be in storage, and no input makes the reader fail.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::rc::Rc;

use tabtune::config::{DataOrder, DataSettings, Form, OnBadRow, TrainConfig, ValidationRows};
use tabtune::data::{
    Batch, DataFile, DataReader, DataSource, Dataset, Loader, TokenStorage, characters, summaries,
};
use tabtune::interrupt::Interrupt;
use tabtune::tokenizer::Tokenizer;
use tabtune::{Error, random};
use tabtune_tests::block_on;

use super::super::tokenizer::{byte_level, sentence_piece};

fn tokenizer() -> Tokenizer {
    Tokenizer::from_parts(byte_level("gpt-2")).unwrap()
}

/// Returns a pseudo-random number below `end`.
fn drawn(key: u32, index: u64, case: u64, end: usize) -> usize {
    random::below([key, 1], index, case, end.max(1) as u64) as usize
}

fn read(files: &[&dyn DataSource], settings: &DataSettings) -> tabtune::Result<Dataset> {
    Dataset::read(files, Ok::<_, Error>(&tokenizer()), settings)
}

/// A file that returns few bytes at a time.
struct Drops<'a>(&'a str, &'a [u8]);

impl DataSource for Drops<'_> {
    fn name(&self) -> &str {
        self.0
    }

    fn open(&self) -> tabtune::Result<Box<dyn Read + '_>> {
        struct Drop<'a>(&'a [u8], usize);
        impl Read for Drop<'_> {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.1 = self.1 % 7 + 1;
                let most = self.1.min(buf.len());
                (&mut self.0).take(most as u64).read(buf)
            }
        }
        Ok(Box::new(Drop(self.1, 0)))
    }
}

/// Storage in memory, which can be made to fail.
#[derive(Default)]
struct Memory {
    bytes: RefCell<Vec<u8>>,
    broken: Cell<bool>,
}

impl TokenStorage for Memory {
    fn append(&self, bytes: &[u8]) -> tabtune::Result<u64> {
        let offset = self.bytes.borrow().len();
        self.bytes.borrow_mut().extend_from_slice(bytes);
        Ok(offset as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        if self.broken.get() {
            return Err(Error::SourceRead {
                name: "storage".into(),
                reason: "gone".into(),
            });
        }
        let start = offset as usize;
        buf.copy_from_slice(&self.bytes.borrow()[start..start + buf.len()]);
        Ok(())
    }
}

fn stored(file: &dyn DataSource, tokenizer: &Tokenizer, storage: &Rc<Memory>) -> Dataset {
    let (settings, files) = (DataSettings::default(), [file]);
    let storage = Rc::clone(storage) as Rc<dyn TokenStorage>;
    let mut reader =
        DataReader::open(&files, Ok::<_, Error>(tokenizer), &settings, Some(storage)).unwrap();
    while reader.advance().unwrap() {}
    reader.finish().unwrap()
}

fn batches(data: &Dataset, config: &TrainConfig) -> Vec<Batch> {
    let mut loader = Loader::for_run(data, config).unwrap();
    (0..5).map(|_| loader.next(data).unwrap()).collect()
}

#[test]
fn tokens_in_storage_give_the_batches_of_those_in_memory() {
    let letters = Tokenizer::characters("abcdefghij \n").unwrap();
    // More ids than are kept in memory.
    let text: String = (0..9_000_000u32)
        .map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761) >> 28) as u8 % 10))
        .collect();
    let rows: String = text
        .as_bytes()
        .chunks(3000)
        .map(|row| format!("{{\"text\": \"{}\"}}\n", str::from_utf8(row).unwrap()))
        .collect();
    for (name, text) in [("a.txt", &text), ("a.jsonl", &rows)] {
        let file = DataFile {
            name,
            bytes: text.as_bytes(),
        };
        let storage = Rc::new(Memory::default());
        let (large, small) = (
            stored(&file, &letters, &storage),
            Dataset::read(&[&file], Ok::<_, Error>(&letters), &DataSettings::default()).unwrap(),
        );
        assert!(
            storage.bytes.borrow().len() >= 4 * 9_000_000,
            "{name}: all tokens are in storage"
        );
        assert_eq!(large.digest(), small.digest());
        let config = TrainConfig {
            batch_size: 3,
            seq_len: 200,
            ..TrainConfig::default()
        };
        assert_eq!(batches(&large, &config), batches(&small, &config), "{name}");
        let last = |data: &Dataset| {
            data.evaluation_batches(2, 512, None)
                .last()
                .unwrap()
                .unwrap()
        };
        assert_eq!(last(&large), last(&small));
        // A failed read does not change the order.
        let mut loader = Loader::for_run(&large, &config).unwrap();
        storage.broken.set(true);
        assert_eq!(loader.next(&large).unwrap_err().code(), "source.read");
    }
}

#[test]
fn files_that_come_in_drops_are_read_alike() {
    let lines = "{\"prompt\": \"é\\\"[{\", \"completion\": \"本\"}\r\n\n{\"prompt\": \"a}\", \"completion\": \"b\\nc\"}";
    let rows: Vec<&str> = lines.split("\r\n\n").collect();
    let utf16: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(lines.encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    let forms: [(&str, Vec<u8>); 7] = [
        ("a.jsonl", lines.into()),
        ("a.jsonl", utf16),
        ("a.json", format!("[{}]", rows.join(",")).into()),
        (
            "a.json",
            format!(
                "{{\"b\": [1, {{}}], \"data\": [{}], \"c\": null}}",
                rows.join(" ,\n")
            )
            .into(),
        ),
        (
            "a.csv",
            "prompt,completion\n\"é\"\"[{\",本\na},\"b\nc\"".into(),
        ),
        (
            "a.tsv",
            "prompt\tcompletion\n\"é\"\"[{\"\t本\na}\t\"b\nc\"\n".into(),
        ),
        ("b", lines.into()),
    ];
    let expected = read(
        &[&DataFile {
            name: "a.jsonl",
            bytes: lines.as_bytes(),
        }],
        &DataSettings::default(),
    )
    .unwrap()
    .digest();
    for (name, bytes) in &forms {
        let found = read(&[&Drops(name, bytes)], &DataSettings::default())
            .unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert_eq!(
            found.digest(),
            expected,
            "{name}: {}",
            String::from_utf8_lossy(bytes)
        );
    }
    let text = "Ein Satz – noch einer.\n".repeat(9);
    let whole = read(
        &[&DataFile {
            name: "a.txt",
            bytes: text.as_bytes(),
        }],
        &DataSettings::default(),
    )
    .unwrap();
    assert_eq!(
        read(
            &[&Drops("a.txt", text.as_bytes())],
            &DataSettings::default()
        )
        .unwrap()
        .digest(),
        whole.digest()
    );
    let ids: Vec<u8> = (0..50u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(
        read(&[&Drops("a.tokens", &ids)], &DataSettings::default())
            .unwrap()
            .ids(0..99)
            .unwrap()[..],
        (0..50).collect::<Vec<u32>>()
    );
}

#[test]
fn a_first_row_longer_than_what_is_looked_at_is_a_row() {
    let long = format!(
        "{{\"text\": \"{}\"}}\n{{\"text\": \"b\"}}\n",
        "a".repeat(1_200_000)
    );
    let array = format!("[{}]", long.trim().replace('\n', ","));
    for text in [&long, &array] {
        let file = DataFile {
            name: "rows",
            bytes: text.as_bytes(),
        };
        let [summary] = &block_on(summaries(
            &[&file],
            &DataSettings::default(),
            &Interrupt::none(),
        ))
        .unwrap()[..] else {
            panic!("one file")
        };
        assert_eq!(
            (summary.rows, summary.shapes.get("text")),
            (Some(2), Some(&2))
        );
    }
    let columns = Some(tabtune::config::Columns {
        text: Some("a".into()),
        ..Default::default()
    });
    let ids = DataFile {
        name: "a.tokens",
        bytes: &[0; 40],
    };
    let refused = read(
        &[&ids],
        &DataSettings {
            columns,
            ..DataSettings::default()
        },
    )
    .unwrap_err();
    assert!(
        refused.code() == "data.columns" && refused.to_string().contains("token ids"),
        "{refused}"
    );
}

/// Covers text without spaces, in a script whose letters have several bytes, and text with rare spaces.
#[test]
fn texts_without_words_are_cut_where_it_changes_nothing() {
    let letters: Vec<char> = "αβγδεζηθικλμνξοπρστυφχψω,.\n!0123456789".chars().collect();
    // More than is read at once.
    let text: String = (0..200_000)
        .map(|at| letters[drawn(0, at, 0, letters.len())])
        .collect();
    for tokenizer in [
        tokenizer(),
        Tokenizer::from_parts(byte_level("llama-bpe")).unwrap(),
    ] {
        let (whole, _) = tokenizer.encode_with_starts(&text).unwrap();
        assert!(
            tokenizer.encode(&text).unwrap() == whole,
            "in pieces, of one text"
        );
        let data = Dataset::read(
            &[&Drops("a.txt", text.as_bytes())],
            Ok::<_, Error>(&tokenizer),
            &DataSettings::default(),
        )
        .unwrap();
        assert!(
            data.ids(0..usize::MAX).unwrap()[..] == whole,
            "in pieces, as it is read"
        );
    }
}

/// With a tokenizer that puts a space in front of every text, a text can only be cut at spaces.
#[test]
fn texts_that_cannot_be_cut_are_read_whole() {
    for (spaces, text) in [
        (false, "truthuniversally\n".repeat(23_000)),
        (true, "A truth. It is known! ".repeat(18_000)),
    ] {
        for tokenizer in
            [true, false].map(|prefix| Tokenizer::from_parts(sentence_piece(prefix)).unwrap())
        {
            let (whole, _) = tokenizer.encode_with_starts(&text).unwrap();
            let data = Dataset::read(
                &[&Drops("a.txt", text.as_bytes())],
                Ok::<_, Error>(&tokenizer),
                &DataSettings::default(),
            )
            .unwrap();
            assert!(
                data.ids(0..usize::MAX).unwrap()[..] == whole,
                "with spaces: {spaces}"
            );
        }
    }
}

#[test]
fn files_have_weights_and_validation_rows_are_drawn() {
    let rows = |letter: char, count: usize| -> String {
        (0..count)
            .map(|row| format!("{{\"text\": \"{letter}{row}\"}}\n"))
            .collect()
    };
    let (a, b) = (rows('a', 40), rows('b', 40));
    let files: [&dyn DataSource; 2] = [
        &DataFile {
            name: "a",
            bytes: a.as_bytes(),
        },
        &DataFile {
            name: "b",
            bytes: b.as_bytes(),
        },
    ];
    let data = read(&files, &DataSettings::default()).unwrap();
    let config = TrainConfig {
        batch_size: 1,
        seq_len: 16,
        packing: false,
        data_weights: vec![2.0, 0.25],
        ..TrainConfig::default()
    };
    let mut loader = Loader::for_run(&data, &config).unwrap();
    assert_eq!(loader.items_per_epoch(), 90);
    let first = tokenizer().encode("a").unwrap()[0] as i32;
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let mut of_b = Vec::new();
        for _ in 0..90 {
            let inputs = loader.next(&data).unwrap().inputs;
            if inputs[0] != first {
                of_b.push(inputs);
            }
        }
        assert_eq!(of_b.len(), 10);
        of_b.sort();
        epochs.push(of_b);
    }
    assert_ne!(epochs[0], epochs[1], "another part in each epoch");
    let refused = Loader::for_run(
        &data,
        &TrainConfig {
            data_weights: vec![1.0],
            ..config.clone()
        },
    )
    .unwrap_err()
    .to_string();
    assert!(
        refused.contains("data_weights is [1.0], but must be one for each of 2 files"),
        "{refused}"
    );

    let kept = |settings: DataSettings| {
        let data = read(&files, &settings).unwrap();
        let rows: Vec<Vec<i32>> = data
            .validation_batches(1, 16)
            .map(|batch| batch.unwrap().inputs)
            .collect();
        (rows, data.digest())
    };
    let of = |seed, validation_rows| DataSettings {
        validation_fraction: 0.2,
        seed,
        validation_rows,
        ..DataSettings::default()
    };
    let (random, last) = (
        kept(of(3, ValidationRows::Random)),
        kept(of(3, ValidationRows::Last)),
    );
    assert_eq!((random.0.len(), last.0.len()), (16, 16));
    assert_eq!(random.1, last.1, "the digest is that of all rows");
    assert!(
        random.0.iter().any(|inputs| inputs[0] == first)
            && last.0.iter().all(|inputs| inputs[0] != first)
    );
    assert_eq!(random, kept(of(3, ValidationRows::Random)));
    assert_ne!(random.0, kept(of(4, ValidationRows::Random)).0);
}

/// Changes a few bytes: replaces, removes or repeats them, or copies others over them.
fn mutated(bytes: &[u8], case: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let draw = |at: u64, end: usize| drawn(3, at, case, end);
    for change in 0..1 + draw(0, 4) as u64 {
        let at = draw(10 * change + 1, bytes.len());
        match draw(10 * change + 2, 5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, [draw(10 * change + 3, 256) as u8])),
            2 if at < bytes.len() => bytes[at] = draw(10 * change + 4, 256) as u8,
            3 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let part: Vec<u8> = bytes
                    .iter()
                    .copied()
                    .skip(at)
                    .take(draw(10 * change + 5, 20))
                    .collect();
                let to = draw(10 * change + 6, bytes.len());
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

/// Runs in a short form; `TABTUNE_FULL=1` makes 100,000 and 20,000 cases.
#[test]
fn no_bytes_bring_the_reader_down() {
    let full = std::env::var_os("TABTUNE_FULL").is_some();
    let (random, changed) = if full { (100_000, 20_000) } else { (300, 200) };
    let tokenizer = tokenizer();
    let lines = "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"text\": \"é\"}\n{\"input_ids\": [1, 2, 3]}\n";
    let seeds: [(&str, Vec<u8>); 6] = [
        ("a.jsonl", lines.into()),
        (
            "a.json",
            format!("[{}]", lines.trim().replace('\n', ",")).into(),
        ),
        (
            "a.json",
            format!(
                "{{\"n\": 1, \"data\": [{}]}}",
                lines.trim().replace('\n', ",")
            )
            .into(),
        ),
        ("a.csv", "prompt,completion\na,\"b\nc\"\nd,e\n".into()),
        ("a.tsv", "prompt\tcompletion\na\tb\n".into()),
        ("a.tokens", (0..9u32).flat_map(u32::to_le_bytes).collect()),
    ];
    let read = |name: &str, bytes: &[u8], settings: &DataSettings| {
        let file = DataFile { name, bytes };
        let data = Dataset::read(&[&file], Ok::<_, Error>(&tokenizer), settings);
        drop(block_on(summaries(&[&file], settings, &Interrupt::none())));
        if let Err(refused) = data {
            assert!(
                !refused.to_string().is_empty() && refused.code() != "core.panic",
                "{name}"
            );
        }
    };
    for (name, seed) in &seeds {
        let settings = [OnBadRow::Stop, OnBadRow::Skip].map(|on_bad_row| DataSettings {
            on_bad_row,
            ..DataSettings::default()
        });
        for case in 0..random {
            let bytes: Vec<u8> = (0..drawn(1, 0, case, 200) as u64)
                .map(|at| drawn(2, at, case, 256) as u8)
                .collect();
            read(name, &bytes, &settings[case as usize % 2]);
        }
        for case in 0..changed {
            let bytes = mutated(seed, case);
            read(name, &bytes, &settings[case as usize % 2]);
            for form in [Form::Jsonl, Form::Json, Form::Csv] {
                read(
                    name,
                    &bytes,
                    &DataSettings {
                        form: Some(form),
                        partial: case % 3 == 0,
                        ..DataSettings::default()
                    },
                );
            }
        }
    }
}

/// Covers more examples than a block of entries has, identified by their numbers, in the order of the file on both sides.
#[test]
fn many_rows_stay_in_order_on_both_sides() {
    const ROWS: usize = 150_000;
    let lines: String = (0..ROWS)
        .map(|row| format!("{{\"input_ids\": [{}, {}, 7]}}\n", row % 500, row / 500))
        .collect();
    let tokenizer = tokenizer();
    let last = DataSettings {
        validation_fraction: 0.4,
        validation_rows: ValidationRows::Last,
        ..DataSettings::default()
    };
    let random = DataSettings {
        validation_rows: ValidationRows::Random,
        ..last.clone()
    };
    let rows_of = |batches: &mut dyn Iterator<Item = Batch>| -> Vec<usize> {
        let row = |ids: &[i32]| ids[0] as usize + 500 * ids[1] as usize;
        batches
            .flat_map(|batch| batch.inputs.chunks(2).map(row).collect::<Vec<_>>())
            .collect()
    };
    for settings in [last, random] {
        let file = DataFile {
            name: "rows.jsonl",
            bytes: lines.as_bytes(),
        };
        let data = Dataset::read(&[&file], Ok::<_, Error>(&tokenizer), &settings).unwrap();
        let config = TrainConfig {
            batch_size: 1000,
            seq_len: 2,
            packing: false,
            data_order: DataOrder::Sequential,
            ..TrainConfig::default()
        };
        let mut loader = Loader::for_run(&data, &config).unwrap();
        let trained = rows_of(&mut (0..ROWS * 6 / 10 / 1000).map(|_| loader.next(&data).unwrap()));
        let evaluated = rows_of(&mut data.validation_batches(1000, 2).map(Result::unwrap));
        assert!(trained.is_sorted() && evaluated.is_sorted());
        assert_eq!((trained.len(), evaluated.len()), (90_000, 60_000));
        let mut all = [trained, evaluated].concat();
        assert_eq!(
            all.is_sorted(),
            settings.validation_rows == ValidationRows::Last
        );
        all.sort_unstable();
        assert!(all.into_iter().eq(0..ROWS));
    }
}

#[test]
fn looking_at_a_file_ends_when_it_is_asked_to() {
    let asked = Interrupt::none();
    asked.request();
    let rows = "{\"text\": \"a\"}\n".repeat(100);
    for (name, bytes) in [("a.txt", "a b c".repeat(200_000)), ("a.jsonl", rows)] {
        let (file, settings) = (
            DataFile {
                name,
                bytes: bytes.as_bytes(),
            },
            DataSettings::default(),
        );
        assert_eq!(
            block_on(summaries(&[&file], &settings, &asked))
                .unwrap_err()
                .code(),
            "call.aborted",
            "{name}"
        );
        assert_eq!(
            block_on(characters(&[&file], &settings, &asked))
                .unwrap_err()
                .code(),
            "call.aborted",
            "{name}"
        );
    }
}
