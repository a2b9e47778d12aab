//! Arrays with faulty elements: each costs one row, and no other.

use serde_json::json;
use tabtune::config::{DataSettings, Form, OnBadRow};
use tabtune::data::{DataFile, Dataset};
use tabtune::random;
use tabtune::tokenizer::Tokenizer;

use super::super::tokenizer::byte_level;

fn drawn(index: u64, case: u64, end: usize) -> usize {
    random::below([57, 8], index, case, end as u64) as usize
}

fn read(
    name: &str,
    bytes: &str,
    on_bad_row: OnBadRow,
    tokenizer: &Tokenizer,
) -> tabtune::Result<Dataset> {
    let settings = DataSettings {
        on_bad_row,
        ..DataSettings::default()
    };
    Dataset::read(
        &[&DataFile {
            name,
            bytes: bytes.as_bytes(),
        }],
        Ok::<_, tabtune::Error>(tokenizer),
        &settings,
    )
}

fn count(data: &Dataset, code: &str) -> usize {
    data.reading_warnings()
        .iter()
        .filter(|warning| warning.code == code)
        .map(|warning| warning.count)
        .sum()
}

/// Makes a row that is one of four kinds; the first key of the last is that of no other row.
fn row(kind: usize, number: usize) -> String {
    match kind {
        0 => format!("{{\"prompt\": \"p{number} }}, {{ [\", \"completion\": \"c \\\" {number}\"}}"),
        1 => json!({ "text": format!("é{number}"), "meta": [{ "a": 1 }, { "b": [] }] }).to_string(),
        2 => format!("{{\"prompt\":\n  \"q{number}\",\n  \"completion\":\n  \"d\"\n}}"),
        _ => format!("{{\"id{number}\": [], \"text\": \"t{number}\"}}"),
    }
}

/// Breaks a row of prompt and completion.
fn broken(fault: usize, number: usize) -> String {
    let row = |prompt: &str, completion: &str| {
        format!("{{\"prompt\": {prompt}, \"completion\": {completion}}}")
    };
    let p = format!("\"p{number}\"");
    match fault {
        0 => row(&p, "NaN"),
        1 => row("-Infinity", "\"c\""),
        2 => format!("{{prompt: {p}, completion: \"c\"}}"),
        3 => format!("{{'prompt': 'p{number} }}', 'completion': \"it's\"}}"),
        4 => format!("{{\"prompt\": {p}, \"completion\": \"c\",}}"),
        5 => format!("{{\"prompt\": {p} \"completion\": \"c\"}}"),
        6 => format!("{{\"prompt\" {p}, \"completion\": \"c\"}}"),
        7 => format!("{{\"prompt\": {p},, \"completion\": \"c\"}}"),
        8 => row(&p, "\"\\ud800\""),
        9 => row(&p, "\"\\x\""),
        10 => row(&p, "\"a\nb\""),
        11 => row(&p, "undefined"),
        12 => row(&p, "\"c\" /* } */"),
        13 => row(&p, "\"c\" // }\n"),
        14 => row(&p, "\"c\", \"prompt\": \"again\""),
        15 => row(&p, "01"),
        16 => row(&p, "\"said \"hi\" to me\""),
        17 => row(&p, "\"said \", \" to me\""),
        // Quotes and brackets that are missing, or too many.
        18 => format!("{{\"prompt\": \"p{number}, \"completion\": \"c\"}}"),
        19 => format!("{{\"prompt\": {p}, \"completion\": \"c}}"),
        20 => format!("{{\"prompt\": p{number}\", \"completion\": \"c\"}}"),
        21 => format!("{{\"prompt: {p}, \"completion\": \"c\"}}"),
        22 => format!("{{prompt\": {p}, \"completion\": \"c\"}}"),
        23 => format!("{{\"prompt\": {p}, \"completion\": \"c\""),
        24 => format!("\"prompt\": {p}, \"completion\": \"c\"}}"),
        25 => format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": {p}}}, {{\"role\": \"assistant\", \"content\": \"c\"}}}}"
        ),
        26 => format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": {p}}}}}, {{\"role\": \"assistant\", \"content\": \"c\"}}]}}"
        ),
        27 => format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": {p}}}, {{\"role\": \"assistant\", \"content\": NaN}}]}}"
        ),
        28 => row(&p, "\"c:\\\""),
        29 => "1".to_owned(),
        30 => "\"prompt\"".to_owned(),
        31 => "null".to_owned(),
        32 => "NaN".to_owned(),
        33 => "[{\"prompt\": \"a\", \"completion\": \"b\"}]".to_owned(),
        34 => "{}".to_owned(),
        35 => "some words".to_owned(),
        _ => "{\"prompt\": }".to_owned(),
    }
}

const FAULTS: usize = 37;

/// Writes rows and faulty elements into an array. Returns it with the rows that can be read, the number of those that cannot, and true if
/// there is a fault between them.
fn array(case: u64) -> (String, Vec<String>, usize, bool) {
    let (mut text, mut kept, mut faulty, mut odd, mut before) =
        ("[".to_owned(), Vec::new(), 0, false, None);
    let in_lines = drawn(2, case, 2) == 0;
    for at in 0..2 + drawn(0, case, 8) {
        let draw = |what: u64, end| drawn(10 * (at as u64 + 1) + what, case, end);
        // Where a quote or bracket is missing, the end of the element is known by the next row, or by an object in a line of its own.
        let hides = matches!(before, Some(5 | 6 | 16..=26 | 28 | 35));
        let seen = in_lines && !matches!(before, Some(24 | 35));
        let fault = (draw(3, 3) == 0)
            .then(|| draw(4, FAULTS))
            .filter(|&fault| !hides || seen && broken(fault, at).starts_with('{'));
        if at > 0 {
            // Commas that are missing or too many, and a second array, cost no row.
            let loose = |fault| matches!(fault, Some(24 | 29..=32 | 35));
            let least = usize::from(loose(before) || loose(fault));
            let between = if draw(1, 12) == 0 && !hides {
                ["", ",,", "][", "],[", "// and\n,"][least + draw(0, 5 - least)]
            } else {
                ","
            };
            odd |= between != ",";
            text.push_str(between);
        }
        text.push_str(if in_lines {
            "\r\n  "
        } else {
            ["", " ", "\n", "\r\n\t"][draw(2, 4)]
        });
        match fault {
            Some(fault) => text.push_str(&broken(fault, at)),
            None => {
                kept.push(row(draw(5, if in_lines { 4 } else { 3 }), at));
                text.push_str(&kept[kept.len() - 1]);
            }
        }
        faulty += usize::from(fault.is_some());
        before = fault;
    }
    let end = ["]", "]\n", ",]", ""][drawn(1, case, 4)];
    (
        text + end,
        kept,
        faulty,
        odd || end == ",]" || end.is_empty(),
    )
}

#[test]
fn rows_that_are_kept_and_reported_are_those_that_were_written() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let full = std::env::var_os("TABTUNE_FULL").is_some();
    let (mut faulty_ones, mut odd_ones) = (0, 0);
    for case in 0..if full { 100_000 } else { 1_000 } {
        let (text, kept, faulty, odd) = array(case);
        let compact: Vec<String> = kept.iter().map(|row| row.replace('\n', "")).collect();
        let inside = format!("{{\"version\": 1, \"data\": {text}, \"n\": 2}}");
        for (name, text) in [("a.json", &text), ("b.json", &inside)]
            .into_iter()
            .take(if odd { 1 } else { 2 })
        {
            let found = read(name, text, OnBadRow::Skip, &tokenizer);
            if kept.is_empty() {
                assert_eq!(
                    found.map(|_| ()).unwrap_err().code().split('.').next(),
                    Some("data"),
                    "{case}: {text}"
                );
                continue;
            }
            let data = found.unwrap_or_else(|refused| panic!("{case}: {text}: {refused}"));
            let told = count(&data, "data.row.skipped");
            assert_eq!(
                (told, data.files()[0].rows),
                (faulty, Some(kept.len() + faulty)),
                "{case}: {text}"
            );
            assert_eq!(
                data.digest(),
                read("a.jsonl", &compact.join("\n"), OnBadRow::Stop, &tokenizer)
                    .unwrap()
                    .digest(),
                "{case}: {text}"
            );
            match read(name, text, OnBadRow::Stop, &tokenizer) {
                Err(tabtune::Error::Refused(list)) => assert!(
                    list.len() >= faulty && (faulty > 0 || odd),
                    "{case}: {text}"
                ),
                Ok(_) => assert!(faulty == 0 && !odd, "{case}: {text}"),
                Err(other) => panic!("{other}"),
            }
        }
        (faulty_ones, odd_ones) = (
            faulty_ones + usize::from(faulty > 0),
            odd_ones + usize::from(odd),
        );
    }
    assert!(faulty_ones > 400 && odd_ones > 200);
}

#[test]
fn what_is_wrong_between_rows_is_reported_and_costs_none() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let two = read(
        "a.jsonl",
        "{\"text\": \"a\"}\n{\"text\": \"b\"}",
        OnBadRow::Stop,
        &tokenizer,
    )
    .unwrap()
    .digest();
    for (text, faults) in [
        ("[{\"text\": \"a\"}, {\"text\": \"b\"},]", 1),
        ("[{\"text\": \"a\"},, {\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"} {\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"}]\n[{\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"}}, {\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"}, {\"text\": \"b\"}", 1),
        ("{\"data\": [{\"text\": \"a\"}, {\"text\": \"b\"}", 1),
        ("[{\"text\": \"a\"}, {\"text\": \"b\"}]\nmore", 1),
        ("[{\"text\": \"a\"} /* one */, {\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"},\n#\n{\"text\": \"b\"}]", 1),
        ("[{\"text\": \"a\"},\n#é\n{\"text\": \"b\"}]", 1),
    ] {
        for name in ["a.json", "a"] {
            let data = read(name, text, OnBadRow::Skip, &tokenizer).unwrap();
            assert_eq!(
                (data.digest(), data.files()[0].form),
                (two.clone(), Form::Json),
                "{text}"
            );
            assert_eq!(
                (count(&data, "data.json"), count(&data, "data.row.skipped")),
                (faults, 0),
                "{text}"
            );
        }
        let Err(tabtune::Error::Refused(list)) = read("a.json", text, OnBadRow::Stop, &tokenizer)
        else {
            panic!("{text}")
        };
        assert_eq!((list.len(), list[0].code), (faults, "data.row"), "{text}");
    }
}

#[test]
fn rows_after_a_faulty_one_stay_whatever_is_between() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let row = |number: usize| format!("{{\"prompt\":\"p{number}\",\"completion\":\"c{number}\"}}");
    let (faulty, opened) = (
        "{\"prompt\":\"p2\",\"completion\" \"c2\"}",
        "{\"prompt\":\"p2\",\"completion\": c2 {\\\"a\\\": 1}\"}",
    );
    for (fault, between, faults) in [
        (faulty, "/* x */ ", 1),
        (faulty, "// x\n", 1),
        (faulty, "# x\n", 1),
        (faulty, "/* x */ /* y */ ", 1),
        (faulty, "// x\n/* y */ ", 1),
        // A bracket of a text without its first quote begins no row, and a number is an element of its own.
        (opened, "", 1),
        (faulty, "3,\n", 2),
        (faulty, "3,\nnull,\n", 3),
    ] {
        let text = format!("[{},\n{fault},\n{between}{},\n{}]", row(1), row(3), row(4));
        let data = read("a.json", &text, OnBadRow::Skip, &tokenizer).unwrap();
        let expected = read(
            "a.jsonl",
            &[row(1), row(3), row(4)].join("\n"),
            OnBadRow::Stop,
            &tokenizer,
        )
        .unwrap();
        assert_eq!(data.digest(), expected.digest(), "{text}");
        assert_eq!(
            (count(&data, "data.row.skipped"), data.files()[0].rows),
            (faults, Some(3 + faults)),
            "{text}"
        );
    }
}
