//! Tables with quotes anywhere, compared with Python's csv (`golden/tables.json`).

use serde_json::{Value, json};
use tabtune::config::{Columns, DataSettings, Form, OnBadRow};
use tabtune::data::{DataFile, DataWarning, Dataset};
use tabtune::tokenizer::Tokenizer;

use super::super::tokenizer::byte_level;

/// Reads a file whose faulty rows are left out. Returns its digest, the number of its rows, and the warnings.
fn read(
    name: &str,
    bytes: &[u8],
    form: Option<Form>,
    tokenizer: &Tokenizer,
) -> tabtune::Result<(String, usize, Vec<DataWarning>)> {
    let columns = Some(Columns {
        text: Some("{p}|{q}".into()),
        ..Columns::default()
    });
    let settings = DataSettings {
        form,
        columns,
        on_bad_row: OnBadRow::Skip,
        ..DataSettings::default()
    };
    let data = Dataset::read(
        &[&DataFile { name, bytes }],
        Ok::<_, tabtune::Error>(tokenizer),
        &settings,
    )?;
    Ok((
        data.digest(),
        data.files()[0].rows.unwrap(),
        data.reading_warnings(),
    ))
}

fn count(warnings: &[DataWarning], code: &str) -> usize {
    warnings
        .iter()
        .filter(|warning| warning.code == code)
        .map(|warning| warning.count)
        .sum()
}

/// Returns the rows as JSON lines.
fn lines(rows: &[[&str; 2]]) -> String {
    rows.iter()
        .map(|[p, q]| format!("{}\n", json!({ "p": p, "q": q })))
        .collect()
}

#[test]
fn tables_have_the_rows_of_python_or_are_reported() {
    let cases: Vec<(String, Option<Vec<Vec<String>>>)> =
        serde_json::from_str(include_str!("../../golden/tables.json")).unwrap();
    assert!(cases.len() >= 2000);
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let (mut equal, mut told) = (0, 0);
    for (body, rows) in &cases {
        let found = read(
            "a.csv",
            format!("p,q\n{body}").as_bytes(),
            Some(Form::Csv),
            &tokenizer,
        );
        let quotes = found
            .as_ref()
            .map_or(0, |(.., warnings)| count(warnings, "data.quotes"));
        let Some(rows) = rows else {
            // Python refuses the table: a row is refused, or its quotes are reported.
            let skipped = found
                .as_ref()
                .map_or(1, |(.., warnings)| count(warnings, "data.row.skipped"));
            assert!(quotes + skipped > 0, "{body:?} in silence");
            told += 1;
            continue;
        };
        let pairs: Vec<[&str; 2]> = rows
            .iter()
            .filter_map(|row| <[&String; 2]>::try_from(row.iter().collect::<Vec<_>>()).ok())
            .map(|row| row.map(String::as_str))
            .collect();
        if pairs.is_empty() {
            assert!(found.is_err() || quotes > 0, "{body:?} has no row");
            continue;
        }
        let (digest, all, warnings) = found.unwrap_or_else(|refused| panic!("{body:?}: {refused}"));
        let same = digest
            == read(
                "a.jsonl",
                lines(&pairs).as_bytes(),
                Some(Form::Jsonl),
                &tokenizer,
            )
            .unwrap()
            .0;
        if pairs.len() == rows.len() {
            assert!(same, "{body:?} as Python");
            assert_eq!(
                (all, count(&warnings, "data.row.skipped")),
                (rows.len(), 0),
                "{body:?}"
            );
            // A cell that swallows lines of two fields each is reported.
            let whole = pairs
                .iter()
                .flatten()
                .filter(|cell| cell.contains(['\n', '\r']))
                .count();
            assert!(quotes <= whole, "{body:?} has nothing to tell");
            equal += 1;
        } else {
            assert!(same && quotes == 0 || quotes > 0, "{body:?} is told");
            assert!(
                quotes + count(&warnings, "data.row.skipped") > 0,
                "{body:?} in silence"
            );
        }
    }
    assert!(equal > 400 && told > 400, "{equal} equal, {told} told");
}

#[test]
fn quotes_that_break_the_rules_cost_no_row() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let long = format!("p\tq\n\"a\tb\n{}", "c\td\n".repeat(200));
    let many: Vec<[&str; 2]> = [["\"a", "b"]]
        .into_iter()
        .chain(std::iter::repeat_n(["c", "d"], 200))
        .collect();
    for (name, table, rows, told) in [
        // Fields with stray quotes, one whose quote would close late, and escapes that are no CSV.
        (
            "a.tsv",
            "p\tq\nTop\tfirst\n\"Low\tsecond\nMid \"x\"\tthird\nEnd\tfourth\n",
            &[
                ["Top", "first"],
                ["\"Low", "second"],
                ["Mid \"x\"", "third"],
                ["End", "fourth"],
            ][..],
            &[3, 4][..],
        ),
        (
            "a.csv",
            "p,q\nA,\"said \\\"hi\\\" to\"\nB,\"x\"\n",
            &[["A", "\"said \\\"hi\\\" to\""], ["B", "x"]],
            &[2],
        ),
        (
            "a.csv",
            "p,q\nA,\"x\" y\nB,\"x, y\"\n",
            &[["A", "\"x\" y"], ["B", "x, y"]],
            &[2],
        ),
        (
            "a.csv",
            "p;q\r\na;\"b\r\nc;d\r\n",
            &[["a", "\"b"], ["c", "d"]],
            &[2],
        ),
        ("a.tsv", &long, &many, &[2]),
        // Lines that a quote takes in, each of which would be a row: one row, as Python has it, and reported.
        (
            "a.csv",
            "p,q\na,\"b\nc,d\"\ne,f\n",
            &[["a", "b\nc,d"], ["e", "f"]],
            &[2],
        ),
        (
            "a.csv",
            "p,q\na,\"b\nc\"\ne,f\n",
            &[["a", "b\nc"], ["e", "f"]],
            &[],
        ),
        // Too many fields in lines that would be rows.
        ("a.csv", "p,q\n\"a,b\nc \",d\",e\n", &[["c \"", "d\""]], &[]),
    ] {
        let found = read(name, table.as_bytes(), None, &tokenizer);
        if told.is_empty() && rows.len() == 1 {
            assert!(
                found.is_err() || count(&found.unwrap().2, "data.row.skipped") > 0,
                "{table:?}"
            );
            continue;
        }
        let (digest, all, warnings) = found.unwrap();
        assert_eq!(
            digest,
            read("a.jsonl", lines(rows).as_bytes(), None, &tokenizer)
                .unwrap()
                .0,
            "{table:?}"
        );
        let places: Vec<usize> = warnings
            .iter()
            .filter(|warning| warning.code == "data.quotes")
            .flat_map(|warning| &warning.rows)
            .map(|row| row.line)
            .collect();
        assert_eq!((all, places.as_slice()), (rows.len(), told), "{table:?}");
    }
    // Where a line has another number of fields, the row with the quote is faulty, and the next one is not.
    let (digest, all, warnings) = read(
        "a.csv",
        b"p,q\nA,\"x\" y, z\nB,\"x, y\"\nC,d\n",
        None,
        &tokenizer,
    )
    .unwrap();
    assert_eq!(
        digest,
        read(
            "a.jsonl",
            lines(&[["B", "x, y"], ["C", "d"]]).as_bytes(),
            None,
            &tokenizer
        )
        .unwrap()
        .0
    );
    assert_eq!(
        (
            all,
            count(&warnings, "data.row.skipped"),
            warnings[0].rows[0].line
        ),
        (3, 1, 2)
    );
    let Value::String(message) = json!(warnings[0].message) else {
        unreachable!()
    };
    assert!(message.contains("text after the quote"), "{message}");
}

#[test]
fn a_row_of_too_many_fields_is_reported_with_what_to_do() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let (_, all, warnings) =
        read("a.csv", b"p,q\na,b,c\nd,e\n", Some(Form::Csv), &tokenizer).unwrap();
    assert_eq!((all, count(&warnings, "data.row.skipped")), (2, 1));
    let message = &warnings[0].message;
    assert!(
        message
            .contains("found 3 fields, where the first line has only 2. Put quotes around a field"),
        "{message}"
    );
}
