//! Line ends of texts are LF, as Python reads them in text mode.

use std::io::Read;

use tabtune::config::DataSettings;
use tabtune::data::{DataFile, DataSource, Dataset, characters, summaries};
use tabtune::interrupt::Interrupt;
use tabtune::tokenizer::Tokenizer;
use tabtune_tests::block_on;

use super::super::tokenizer::byte_level;

/// A file that returns one byte at a time.
struct Bytes(&'static str, Vec<u8>);

impl DataSource for Bytes {
    fn name(&self) -> &str {
        self.0
    }

    fn open(&self) -> tabtune::Result<Box<dyn Read + '_>> {
        struct One<'a>(&'a [u8]);
        impl Read for One<'_> {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                (&mut self.0).take(1.min(buf.len() as u64)).read(buf)
            }
        }
        Ok(Box::new(One(&self.1)))
    }
}

fn read(files: &[&dyn DataSource]) -> Dataset {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    Dataset::read(
        files,
        Ok::<_, tabtune::Error>(&tokenizer),
        &DataSettings::default(),
    )
    .unwrap()
}

fn told(data: &Dataset) -> usize {
    data.reading_warnings()
        .iter()
        .filter(|warning| warning.code == "data.newlines")
        .map(|warning| warning.count)
        .sum()
}

#[test]
fn line_ends_of_a_text_are_those_of_python() {
    let (other, plain) = ("a\r\nb\rc\r\r\n\n\rd\r\n", "a\nb\nc\n\n\n\nd\n");
    let long = |text: &str| format!("{}{text}", "x".repeat((256 << 10) - 2));
    for (other, plain) in [
        (other.to_owned(), plain.to_owned()),
        (long(other), long(plain)),
        ("a\r".into(), "a\n".into()),
    ] {
        let utf16: Vec<u8> = [0xfeff]
            .into_iter()
            .chain(other.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let expected = read(&[&DataFile {
            name: "a.txt",
            bytes: plain.as_bytes(),
        }]);
        assert_eq!(told(&expected), 0);
        let mut files = vec![other.clone().into_bytes(), utf16];
        files.truncate(if other.len() > 1000 { 1 } else { 2 });
        for bytes in files {
            let data = read(&[&DataFile {
                name: "a.txt",
                bytes: &bytes,
            }]);
            assert_eq!((data.digest(), told(&data)), (expected.digest(), 1));
            if bytes.len() < 1000 {
                assert_eq!(read(&[&Bytes("a.txt", bytes)]).digest(), expected.digest());
            }
        }
    }
    // A text next to rows is a document; strings and cells stay as they are.
    let rows = DataFile {
        name: "b.jsonl",
        bytes: b"{\"text\": \"a\\r\\nb\"}\r\n",
    };
    let [two, same] = ["a\r\nb", "a\nb"].map(|text| {
        read(&[
            &DataFile {
                name: "a.txt",
                bytes: text.as_bytes(),
            },
            &rows,
        ])
    });
    assert_eq!(
        (two.digest(), told(&two), told(&same)),
        (same.digest(), 1, 0)
    );
    assert_ne!(
        read(&[&rows]).digest(),
        read(&[&DataFile {
            name: "b.jsonl",
            bytes: b"{\"text\": \"a\\nb\"}"
        }])
        .digest()
    );
    let cells = read(&[&DataFile {
        name: "a.csv",
        bytes: b"prompt,completion\r\na,\"b\r\nc\"\r\n",
    }]);
    assert_eq!(
        cells.digest(),
        read(&[&DataFile {
            name: "a",
            bytes: b"{\"prompt\": \"a\", \"completion\": \"b\\r\\nc\"}"
        }])
        .digest()
    );
    // A vocabulary has no carriage return then, and a summary tells it.
    let file = DataFile {
        name: "a.txt",
        bytes: b"b\r\na",
    };
    let settings = DataSettings::default();
    assert_eq!(
        block_on(characters(&[&file], &settings, &Interrupt::none())).unwrap(),
        "\nab"
    );
    let summary = block_on(summaries(&[&file], &settings, &Interrupt::none()))
        .unwrap()
        .remove(0);
    assert_eq!(
        (summary.characters, summary.warnings[0].code),
        (3, "data.newlines")
    );
}
