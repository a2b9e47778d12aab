//! The form of a file is recognised by its contents, whatever its name, and every form gives the same rows.

use tabtune::config::{Columns, DataSettings, Form, OnBadRow, TrainConfig};
use tabtune::data::{DataFile, DataSource, Dataset, FileSummary, Loader, summaries};
use tabtune::interrupt::Interrupt;
use tabtune::tokenizer::{Tokenizer, TokenizerParts};
use tabtune_tests::block_on;

use super::super::tokenizer::byte_level;

const LINES: &str = "{\"prompt\": \"a\", \"completion\": \" b\"}\n{\"prompt\": \"c, d\", \"completion\": \" e\\nf\"}\n";

fn tokenizer() -> Tokenizer {
    Tokenizer::from_parts(byte_level("gpt-2")).unwrap()
}

fn read_as(name: &str, bytes: &[u8], settings: &DataSettings) -> tabtune::Result<Dataset> {
    Dataset::read(
        &[&DataFile { name, bytes }],
        Ok::<_, tabtune::Error>(&tokenizer()),
        settings,
    )
}

/// Returns the summary of a file.
fn summary(file: &DataFile<'_>, settings: &DataSettings) -> FileSummary {
    block_on(summaries(&[file], settings, &Interrupt::none()))
        .unwrap()
        .remove(0)
}

fn read(name: &str, bytes: &[u8]) -> tabtune::Result<Dataset> {
    read_as(name, bytes, &DataSettings::default())
}

fn codes(data: &Dataset) -> Vec<&'static str> {
    data.reading_warnings()
        .iter()
        .map(|warning| warning.code)
        .collect()
}

/// Returns the same two rows in each form.
fn forms() -> Vec<(Form, Vec<u8>)> {
    let utf16: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(LINES.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let text = |form, text: &str| (form, text.as_bytes().to_vec());
    vec![
        text(Form::Jsonl, LINES),
        text(
            Form::Jsonl,
            &format!("\u{feff}\n{}", LINES.trim_end().replace('\n', "\r\n\r\n")),
        ),
        (Form::Jsonl, utf16),
        text(
            Form::Json,
            &format!(" [\n{}]\n", LINES.trim_end().replace('\n', ",\n")),
        ),
        text(
            Form::Json,
            &format!(
                "{{\"version\": 1, \"data\": [{}]}}",
                LINES.trim_end().replace('\n', ",")
            ),
        ),
        text(Form::Csv, "prompt,completion\na, b\n\"c, d\",\" e\nf\"\n"),
        text(Form::Csv, "prompt;completion\r\na; b\r\nc, d;\" e\nf\"\r\n"),
        text(Form::Tsv, "prompt\tcompletion\na\t b\nc, d\t\" e\nf\""),
    ]
}

#[test]
fn form_is_found_by_content_under_any_name() {
    let expected = read("rows.jsonl", LINES.as_bytes()).unwrap().digest();
    for (form, bytes) in forms() {
        for name in [
            "rows",
            "rows.jsonl",
            "rows.json",
            "rows.csv",
            "rows.tsv",
            "rows.txt",
            "rows.bin",
            "rows.jsonl?a=1.txt#b",
            "%zz.md",
        ] {
            let data = read(name, &bytes)
                .unwrap_or_else(|refused| panic!("{name} of {form:?}: {refused}"));
            assert_eq!(data.digest(), expected, "{name} of {form:?}");
            let hints = [
                ("jsonl", Form::Jsonl),
                ("json", Form::Json),
                ("csv", Form::Csv),
                ("tsv", Form::Tsv),
                ("txt", Form::Text),
                ("md", Form::Text),
            ];
            let ending = name
                .split('?')
                .next()
                .unwrap()
                .rsplit_once('.')
                .map_or("", |(_, ending)| ending);
            let hint = hints
                .iter()
                .find(|(word, _)| *word == ending)
                .map(|(_, form)| *form);
            assert_eq!(
                codes(&data).contains(&"data.form"),
                hint.is_some_and(|hint| hint != form),
                "{name} of {form:?}"
            );
        }
    }
}

#[test]
fn texts_stay_texts() {
    // None of these are rows, though each looks like one of the forms at first sight.
    for text in [
        "Dear John,\nit is late, and I am tired,\nso good night.\n",
        "[Verse 1]\nla la\n",
        "{\nint main() { return 0; }\n}\n",
        "{{template}}\n",
        "a,b\n1\n2,3\n",
        "hello",
        "[1, 2, 3]\n",
        "first;second thought; third\nmore\n",
    ] {
        let data = read("novel.txt", text.as_bytes()).unwrap();
        assert!(!data.has_examples() && codes(&data).is_empty(), "{text:?}");
        assert_eq!(
            data.digest(),
            Dataset::from_bytes(text.as_bytes(), Form::Text, &tokenizer(), 0.0)
                .unwrap()
                .digest()
        );
    }
}

#[test]
fn a_conversation_is_a_row_and_a_comment_is_a_fault() {
    let dialogue = r#"{"id": 1, "dialogue": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let columns = Columns {
        messages: Some("dialogue".to_owned()),
        ..Columns::default()
    };
    for (name, bytes) in [
        ("one.jsonl", dialogue.to_owned()),
        ("one.json", dialogue.to_owned()),
        ("all.json", format!("{{\"data\": [{dialogue}]}}")),
    ] {
        let settings = DataSettings {
            columns: Some(columns.clone()),
            ..DataSettings::default()
        };
        let data = read_as(name, bytes.as_bytes(), &settings).unwrap();
        let config = TrainConfig {
            seq_len: 64,
            ..TrainConfig::default()
        };
        let report = data.report(&config, &Loader::for_run(&data, &config).unwrap());
        assert_eq!(
            report.shapes.get("chat"),
            Some(&1),
            "{name}: {:?}",
            report.shapes
        );
    }
    let refused = read("rows.jsonl", format!("// a comment\n{LINES}").as_bytes()).unwrap_err();
    assert!(
        refused.code() == "data.row" && refused.to_string().contains("line 1: "),
        "{refused}"
    );
}

#[test]
fn form_that_is_given_holds_and_a_contradiction_is_refused() {
    let given = |form| DataSettings {
        form: Some(form),
        ..DataSettings::default()
    };
    let text = read_as("rows.jsonl", LINES.as_bytes(), &given(Form::Text)).unwrap();
    assert!(!text.has_examples() && codes(&text).is_empty());
    let (table, tabs, array) = (
        "a,b\nc,d",
        "a\tb\nc\td",
        format!("[{}]", LINES.trim().replace('\n', ",")),
    );
    for (form, bytes) in [
        (Form::Json, table),
        (Form::Jsonl, "[1]"),
        (Form::Json, "plain"),
        (Form::Json, LINES),
        (Form::Jsonl, array.as_str()),
        (Form::Jsonl, table),
        (Form::Csv, LINES),
        (Form::Csv, array.as_str()),
        (Form::Csv, tabs),
        (Form::Tsv, table),
        (Form::Tsv, LINES),
    ] {
        let found = read_as("x", bytes.as_bytes(), &given(form))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            found.code(),
            "data.form.contradicts",
            "{form:?} of {bytes}: {found}"
        );
    }
    // A given form overrides the name, and one column needs no comma.
    for (form, bytes) in [
        (Form::Csv, "text\none\ntwo\n"),
        (Form::Tsv, "prompt\tcompletion\na\tb\n"),
    ] {
        let data = read_as("rows.jsonl", bytes.as_bytes(), &given(form)).unwrap();
        assert!(data.has_examples(), "{form:?}");
    }
    assert_eq!(
        read("a.txt", b"\x1f\x8b\x08\0").unwrap_err().code(),
        "data.gzip"
    );
    assert_eq!(
        read("a.txt", b"PAR1....PAR1").unwrap_err().code(),
        "data.parquet"
    );
    // Half of a surrogate pair alone is not text, and neither is half a unit.
    for bad in [&b"\xff\xfe\x00\xd8a\0"[..], b"\xff\xfea\0b", b"ab\xff"] {
        assert_eq!(read("a.txt", bad).unwrap_err().code(), "data.encoding");
    }
}

#[test]
fn fields_of_a_table_are_texts_but_for_columns_of_structure() {
    let same = |name: &str, table: &str, rows: &str| {
        assert_eq!(
            read(name, table.as_bytes()).unwrap().digest(),
            read("rows.jsonl", rows.as_bytes()).unwrap().digest(),
            "{table}"
        );
    };
    same(
        "a.csv",
        "prompt,completion\nExtract,\"{\"\"name\"\": \"\"Bob\"\"}\"\nList,\"[\"\"a\"\", {\"\"b\"\": 1}]\"\n",
        "{\"prompt\": \"Extract\", \"completion\": \"{\\\"name\\\": \\\"Bob\\\"}\"}\n{\"prompt\": \"List\", \"completion\": \"[\\\"a\\\", {\\\"b\\\": 1}]\"}\n",
    );
    same(
        "h.csv",
        "instruction,output,history\ni,o,\"[[\"\"a\"\", \"\"b\"\"]]\"\nj,p,\n",
        "{\"instruction\": \"i\", \"output\": \"o\", \"history\": [[\"a\", \"b\"]]}\n{\"instruction\": \"j\", \"output\": \"p\"}\n",
    );
    // A list of messages is read under any name that the columns give, also if a message has only tool calls; in a completion it is a text.
    let chat = |message: &str| {
        let columns = Columns {
            messages: Some("dialog".into()),
            ..Columns::default()
        };
        let table = format!(
            "dialog,n\n\"[{{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"a\"\"}}, {message}]\",1\n"
        );
        read_as(
            "a.csv",
            table.as_bytes(),
            &DataSettings {
                columns: Some(columns),
                ..DataSettings::default()
            },
        )
    };
    for message in [
        "{\"\"role\"\": \"\"assistant\"\", \"\"content\"\": \"\"b\"\"}",
        "{\"\"role\"\": \"\"assistant\"\", \"\"tool_calls\"\": []}",
    ] {
        let found = chat(message).map(|_| ());
        assert!(
            found
                .as_ref()
                .err()
                .is_none_or(|error| error.code() != "data.shape" && error.code() != "data.columns"),
            "{message}: {found:?}"
        );
    }
    let said = chat("{\"\"role\"\": \"\"assistant\"\"}")
        .map(|_| ())
        .unwrap_err();
    // The column holds messages, since it was named so, and the template does not take this one.
    assert_eq!(said.code(), "data.template", "{said}");
    same(
        "a.csv",
        "prompt,completion\nWho?,\"[{\"\"role\"\": \"\"cook\"\"}]\"\n",
        "{\"prompt\": \"Who?\", \"completion\": \"[{\\\"role\\\": \\\"cook\\\"}]\"}\n",
    );
    // A malformed history is not treated as an empty one.
    for history in ["\"earlier\"", "{\"user\": \"x\"}", "3", "[[\"a\"]]"] {
        let row = format!("{{\"instruction\": \"i\", \"output\": \"o\", \"history\": {history}}}");
        assert_eq!(
            read("rows.jsonl", row.as_bytes()).unwrap_err().code(),
            "data.shape",
            "{history}"
        );
    }
}

/// Spreadsheets write `sep=` before the names where the separator is not that of the language.
#[test]
fn a_first_line_that_only_names_the_separator_is_no_row() {
    let plain = read("a.csv", b"prompt,completion\nx,y\nz,w\n")
        .unwrap()
        .digest();
    for (name, table) in [
        ("a.csv", "sep=;\nprompt;completion\nx;y\nz;w\n"),
        ("a.csv", "sep=,\r\nprompt,completion\r\nx,y\r\nz,w\r\n"),
        ("a.tsv", "sep=\t\nprompt\tcompletion\nx\ty\nz\tw\n"),
        ("pasted", "sep=;\nprompt;completion\nx;y\nz;w\n"),
    ] {
        assert_eq!(
            read(name, table.as_bytes()).unwrap().digest(),
            plain,
            "{name} {table:?}"
        );
    }
}

#[test]
fn names_of_columns_may_have_separators_and_brackets() {
    let columns = |prompt: &str, completion: &str| DataSettings {
        columns: Some(Columns {
            prompt: Some(prompt.into()),
            completion: Some(completion.into()),
            ..Columns::default()
        }),
        ..DataSettings::default()
    };
    let plain = read_as("a.csv", b"q,a\nx,y\nz,w\n", &columns("q", "a"))
        .unwrap()
        .digest();
    for (name, bytes, prompt, completion, form) in [
        (
            "h.tsv",
            "Question (short, plain, clear)\tAnswer\nx\ty\nz\tw\n",
            "Question (short, plain, clear)",
            "Answer",
            Form::Tsv,
        ),
        (
            "h.csv",
            "Question (short; plain; clear),Answer\nx,y\nz,w\n",
            "Question (short; plain; clear)",
            "Answer",
            Form::Csv,
        ),
        (
            "sql.csv",
            "[id],[text]\nx,y\nz,w\n",
            "[id]",
            "[text]",
            Form::Csv,
        ),
    ] {
        for form in [None, Some(form)] {
            let settings = DataSettings {
                form,
                ..columns(prompt, completion)
            };
            assert_eq!(
                read_as(name, bytes.as_bytes(), &settings).unwrap().digest(),
                plain,
                "{name} {form:?}"
            );
        }
    }
}

#[test]
fn all_faulty_rows_are_found_and_may_be_left_out() {
    let lines = format!("{LINES}{{\"prompt\": 1}}\n{LINES}not JSON\n{LINES}");
    let refused = read("rows.jsonl", lines.as_bytes()).unwrap_err();
    let tabtune::Error::Refused(list) = &refused else {
        panic!("{refused}")
    };
    let told: Vec<_> = list
        .iter()
        .map(|each| {
            (
                each.code,
                each.artifact.as_str(),
                each.subject.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("data.shape", "rows.jsonl", "line 3"),
            ("data.row", "rows.jsonl", "line 6")
        ]
    );
    let skipping = DataSettings {
        on_bad_row: OnBadRow::Skip,
        ..DataSettings::default()
    };
    let data = read_as("rows.jsonl", lines.as_bytes(), &skipping).unwrap();
    let whole = read("rows.jsonl", LINES.repeat(3).as_bytes()).unwrap();
    assert_eq!(data.digest(), whole.digest());
    let warnings = data.reading_warnings();
    assert_eq!(
        (warnings[0].code, warnings[0].count),
        ("data.row.skipped", 2)
    );
    assert_eq!(
        warnings[0]
            .rows
            .iter()
            .map(|row| row.line)
            .collect::<Vec<_>>(),
        [3, 6]
    );
    // If no row is left, the faults of the rows are the reason.
    assert_eq!(
        read_as("rows.jsonl", b"{\"a\": 1}\n{\"a\": 2}\n", &skipping)
            .unwrap_err()
            .code(),
        "data.shape"
    );
    // At most a hundred are listed, and the last item says how many more there are.
    let many = read(
        "rows.jsonl",
        format!("{LINES}{}", "{\"a\": 1}\n".repeat(140)).as_bytes(),
    )
    .unwrap_err();
    let tabtune::Error::Refused(list) = &many else {
        panic!("{many}")
    };
    assert_eq!(
        (list.len(), list[99].hint.as_deref()),
        (100, Some("40 more rows cannot be used"))
    );
    // Tables: a different number of fields, two columns of the same name, a quote that is not closed. Arrays: a truncated one.
    for (name, bytes, line) in [
        ("a.csv", "prompt,completion\na,b\nc\n", "line 3"),
        ("a.csv", "text,text\na,b\n", "line 1"),
        ("a.csv", "prompt,completion\na,b\nc,\"d\ne\n", "line 3"),
        ("a.csv", "prompt,completion\r\na,b\r\n\r\nc\r\n", "line 4"),
        ("a.csv", "prompt,completion\ra,b\rc\r", "line 3"),
        (
            "a.csv",
            "prompt,completion\r\n\"a\r\nb\",c\r\nd\r\n",
            "line 4",
        ),
        ("a.csv", "prompt,completion\n\n\na,b\nc\n", "line 5"),
        (
            "a.json",
            "[{\"text\": \"a\"},\n{\"text\": ",
            "row 2 (line 2)",
        ),
        (
            "a.json",
            "[{\"text\": \"a\"}\n{\"text\": \"b\"}]",
            "row 2 (line 2)",
        ),
        ("a.json", "[{\"text\": \"a\"}]\nmore", "row 2 (line 2)"),
        ("a.json", "[1]", "row 1 (line 1)"),
    ] {
        let refused = read(name, bytes.as_bytes()).unwrap_err();
        let tabtune::Error::Refused(list) = &refused else {
            panic!("{bytes}: {refused}")
        };
        assert_eq!(
            (list[0].code, list[0].subject.as_deref()),
            ("data.row", Some(line)),
            "{bytes}"
        );
    }
}

#[test]
fn files_that_are_not_data_are_refused_by_their_kind() {
    let tar = [
        &b"rows.jsonl"[..],
        &[0; 247],
        b"ustar\x0000",
        &[0; 248],
        LINES.as_bytes(),
    ]
    .concat();
    for (bytes, kind) in [
        (
            &b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"[..],
            "Git LFS",
        ),
        (b"PK\x03\x04 and more", "zip"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\x28\xb5\x2f\xfd\x04\0", "zstd"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
        (b"SQLite format 3\0", "SQLite"),
        (b"ARROW1\0\0", "Arrow"),
        (&tar, "tar"),
        (
            b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><body>{\"a\": 1}\n",
            "a page of HTML or XML",
        ),
        (b"<html>", "a page of HTML or XML"),
        (
            b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>",
            "a page of HTML or XML",
        ),
    ] {
        let refused = read("rows.jsonl", bytes).unwrap_err();
        assert!(
            refused.code() == "data.kind" && refused.to_string().contains(kind),
            "{refused}"
        );
    }
    assert!(read("a.txt", b"PK is a word, and version https is another.").is_ok());
    assert_eq!(
        read("rows.csv", b"<html>, and more\na, b")
            .unwrap_err()
            .code(),
        "data.kind"
    );
    for name in ["page.html", "page.txt", "page"] {
        assert!(
            read(
                name,
                b"<html><body>A page that is learned as it is.</body></html>"
            )
            .is_ok(),
            "{name}"
        );
    }
}

#[test]
fn faults_say_what_was_found() {
    for (name, bytes, said) in [
        (
            "a.jsonl",
            "{\"text\": \"a\"}\n{\"prompt\": \"a\", \"completion\": \"b\", \"prompt\": \"c\"}\n",
            "found the key prompt twice at line 2",
        ),
        (
            "a.jsonl",
            "{\"text\": \"a\"}\n{\"text\": \"b\", \"meta\": [{\"\\u0061\": 1, \"a\": 2}]}\n",
            "found the key a twice at line 2",
        ),
        (
            "a.json",
            "[{\"text\": \"a\", \"text\": \"b\"}, {\"a\": 1}]",
            "row 2 (line 1)",
        ),
        (
            "a.jsonl",
            "{\"text\": \"a\"}\n{\"text\": null, \"\": 1}\n",
            "found text (null), \"\"",
        ),
        (
            "a.json",
            "[[{\"role\": \"user\", \"content\": \"a\"}]]",
            "found a list of messages",
        ),
        (
            "a.json",
            "[\"a text\"]",
            "found \"a text\", which is not an object",
        ),
        (
            "a.json",
            "[{\"role\": \"user\", \"content\": \"a\"}]",
            "A row is a whole conversation",
        ),
        (
            "a.csv",
            "prompt,completion\na,b\nc\n",
            "found 1 field, where the first line has 2",
        ),
        (
            "a.txt",
            "INFO\tstart\nINFO\tend\n",
            "to learn the file as a text, give the form text",
        ),
        (
            "a.csv",
            ",text,\na,b,c\n",
            "found two columns with the name \"\"",
        ),
    ] {
        let refused = read(name, bytes.as_bytes()).unwrap_err().to_string();
        assert!(
            refused.contains(said) && !refused.contains("found expected"),
            "{bytes}: {refused}"
        );
    }
}

#[test]
fn columns_name_keys_and_patterns() {
    let rows = "{\"question\": \"a\", \"answer\": \" b\", \"id\": 7}\n{\"question\": \"{c}\", \"answer\": \" e\", \"id\": 8}\n";
    let columns = |prompt: &str, completion: &str| DataSettings {
        columns: Some(Columns {
            prompt: Some(prompt.into()),
            completion: Some(completion.into()),
            ..Columns::default()
        }),
        ..DataSettings::default()
    };
    let as_rows = |text: &str| read("rows.jsonl", text.as_bytes()).unwrap().digest();
    let plain = read_as(
        "rows.jsonl",
        rows.as_bytes(),
        &columns("question", "answer"),
    )
    .unwrap();
    assert_eq!(
        plain.digest(),
        as_rows(
            "{\"prompt\":\"a\",\"completion\":\" b\"}\n{\"prompt\":\"{c}\",\"completion\":\" e\"}"
        )
    );
    let warning = &plain.reading_warnings()[0];
    assert_eq!(
        (warning.code, warning.message.contains("id (2)")),
        ("data.columns.unused", true)
    );
    let pattern = read_as(
        "rows.jsonl",
        rows.as_bytes(),
        &columns("{{{id}}} Q: {question}\nA:", "{answer}"),
    )
    .unwrap();
    assert_eq!(
        pattern.digest(),
        as_rows(
            "{\"prompt\":\"{7} Q: a\\nA:\",\"completion\":\" b\"}\n{\"prompt\":\"{8} Q: {c}\\nA:\",\"completion\":\" e\"}"
        )
    );
    for (prompt, completion) in [
        ("nothing", "answer"),
        ("{nothing}", "answer"),
        ("{question", "answer"),
        ("question}", "answer"),
    ] {
        assert_eq!(
            read_as("rows.jsonl", rows.as_bytes(), &columns(prompt, completion))
                .unwrap_err()
                .code(),
            "data.columns",
            "{prompt}"
        );
    }
    // Columns for a text, or an invalid date, are refused, not ignored.
    assert_eq!(
        read_as("a.txt", b"plain text", &columns("a", "b"))
            .unwrap_err()
            .code(),
        "data.columns"
    );
    let undated = DataSettings {
        chat_date: Some("2026-02-30".into()),
        ..DataSettings::default()
    };
    assert_eq!(
        read_as("a.txt", b"plain text", &undated)
            .unwrap_err()
            .code(),
        "config.invalid"
    );
    // A row of no known shape is refused with columns that would fit.
    let refused = read("rows.jsonl", rows.as_bytes()).unwrap_err().to_string();
    assert!(
        refused.contains("{\"prompt\": \"question\", \"completion\": \"answer\"}"),
        "{refused}"
    );
}

#[test]
fn rows_of_every_shape_are_read() {
    let digest = |text: &str| read("rows.jsonl", text.as_bytes()).unwrap().digest();
    let eos = tokenizer().eos()[0];
    let ids = |text: &str| tokenizer().encode(text).unwrap();
    // A text is learned whole, with its end, and so are ids without further columns.
    let whole = [ids("abc"), vec![eos]].concat();
    assert_eq!(
        digest("{\"text\": \"abc\"}"),
        digest(&format!("{{\"input_ids\": {whole:?}}}"))
    );
    let labels: Vec<i64> = ids("a")
        .iter()
        .map(|_| -100)
        .chain([ids(" b")[0].into(), eos.into()])
        .collect();
    let both = [ids("a"), ids(" b"), vec![eos]].concat();
    assert_eq!(
        digest("{\"prompt\": \"a\", \"completion\": \" b\"}"),
        digest(&format!(
            "{{\"input_ids\": {both:?}, \"labels\": {labels:?}}}"
        ))
    );
    let masked = format!(
        "{{\"input_ids\": {:?}, \"attention_mask\": [1, 1, 1, 0], \"assistant_masks\": [0, 1, 1, 1]}}",
        [both.clone(), vec![0]].concat()
    );
    assert_eq!(
        digest(&masked),
        digest("{\"prompt\": \"a\", \"completion\": \" b\"}")
    );
    for bad in [
        "{\"input_ids\": [1, 2], \"labels\": [1, 3]}",
        "{\"input_ids\": [1, 2], \"labels\": [1]}",
        "{\"input_ids\": [-1]}",
        "{\"input_ids\": \"1\"}",
    ] {
        assert_eq!(
            read("rows.jsonl", bad.as_bytes()).unwrap_err().code(),
            "data.shape",
            "{bad}"
        );
    }
    assert_eq!(
        read("rows.jsonl", b"{\"input_ids\": [1, 99999999]}")
            .unwrap_err()
            .code(),
        "data.row"
    );
    let chosen = read(
        "rows.jsonl",
        b"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
    )
    .unwrap_err();
    assert!(
        chosen.code() == "data.shape" && chosen.to_string().contains("\"completion\": \"chosen\""),
        "{chosen}"
    );
    // Texts next to rows are documents; texts alone are one stream, with an end after each if there are several.
    let two: [&dyn DataSource; 2] = [
        &DataFile {
            name: "a.txt",
            bytes: b"abc",
        },
        &DataFile {
            name: "b.md",
            bytes: b"de",
        },
    ];
    let stream = Dataset::read(
        &two,
        Ok::<_, tabtune::Error>(&tokenizer()),
        &DataSettings::default(),
    )
    .unwrap();
    assert_eq!(
        stream.ids(0..usize::MAX).unwrap().to_vec(),
        [whole.clone(), ids("de"), vec![eos]].concat()
    );
    let mixed: [&dyn DataSource; 2] = [
        &DataFile {
            name: "a.txt",
            bytes: b"abc",
        },
        &DataFile {
            name: "b.jsonl",
            bytes: LINES.as_bytes(),
        },
    ];
    let mixed = Dataset::read(
        &mixed,
        Ok::<_, tabtune::Error>(&tokenizer()),
        &DataSettings::default(),
    )
    .unwrap();
    assert_eq!(
        mixed.digest(),
        digest(&format!("{{\"text\": \"abc\"}}\n{LINES}"))
    );
    // Without a chat template, an instruction has the layout of Alpaca, which is reported.
    let plain = Tokenizer::characters(
        "Below is an instruction that describes a task.Write a response that appropriately completes the request.\n#Instruction:Response",
    )
    .unwrap();
    let alpaca = b"{\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\"}";
    let data = Dataset::read(
        &[&DataFile {
            name: "a",
            bytes: alpaca,
        }],
        Ok::<_, tabtune::Error>(&plain),
        &DataSettings::default(),
    )
    .unwrap();
    assert_eq!(codes(&data), ["data.layout", "data.end.unknown"]);
    let batch = Loader::new(&data, 1, 500, 0).unwrap().next(&data).unwrap();
    let inputs: Vec<u32> = batch.inputs.iter().map(|id| *id as u32).collect();
    let text = "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n### Instruction:\na\n\n### Response:\n";
    assert_eq!(plain.decode(&inputs[..text.chars().count()]).unwrap(), text);
}

#[test]
fn joint_is_encoded_once() {
    // "a" and "b" together are one token of this vocabulary: it begins in the prompt, so it is only read, not learned.
    let document = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,
        "decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,
        "byte_fallback":false,"vocab":{"a":0,"b":1,"c":2,"ab":3},"merges":[["a","b"]]}}"#;
    let tokenizer = Tokenizer::from_hf(document.as_bytes(), None, None).unwrap();
    let row = b"{\"prompt\": \"ca\", \"completion\": \"bc\"}";
    let data = Dataset::read(
        &[&DataFile {
            name: "a",
            bytes: row,
        }],
        Ok::<_, tabtune::Error>(&tokenizer),
        &DataSettings::default(),
    )
    .unwrap();
    let batch = Loader::new(&data, 1, 2, 0).unwrap().next(&data).unwrap();
    assert_eq!((batch.inputs, batch.targets), (vec![2, 3], vec![-100, 2]));
    assert_eq!(codes(&data), ["data.boundary", "data.end.unknown"]);
}

#[test]
fn files_without_a_row_are_empty() {
    for (name, bytes) in [
        ("a.csv", &b"prompt,completion\n"[..]),
        ("a.json", b"[]"),
        ("a.jsonl", b" \n\n"),
    ] {
        let refused = read(name, bytes).unwrap_err();
        assert_eq!(refused.code(), "data.empty", "{name}: {refused}");
    }
}

#[test]
fn wide_characters_without_a_mark_are_reported_by_their_first_zero() {
    let wide: Vec<u8> = LINES.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wider: Vec<u8> = LINES
        .chars()
        .flat_map(|c| (c as u32).to_le_bytes())
        .collect();
    let marked: Vec<u8> = [0xff, 0xfe, 0, 0]
        .into_iter()
        .chain(wider.iter().copied())
        .collect();
    let big: Vec<u8> = LINES.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (bytes, at) in [(wide, 1), (wider, 1), (marked, 2), (big, 0)] {
        match read("a.jsonl", &bytes) {
            Err(tabtune::Error::DataEncoding {
                byte_offset, byte, ..
            }) => assert_eq!((byte_offset, byte), (at, 0)),
            other => panic!("{other:?}"),
        }
    }
    let refused = read("a.txt", b"caf\xe9 au lait").unwrap_err().to_string();
    assert!(
        refused.contains("byte 3 is 0xe9") && refused.contains("iconv"),
        "{refused}"
    );
    // A zero byte further on is a character like others.
    assert!(read("a.txt", b"four\0bytes").is_ok());
}

/// The first turn contains the system's text, whatever follows.
#[test]
fn what_the_system_says_comes_before_the_history() {
    let row =
        r#"{"system": "SYS", "history": [["q1", "a1"]], "instruction": "q2", "output": "a2"}"#;
    let plain = Tokenizer::from_parts(TokenizerParts {
        chat_template: None,
        ..byte_level("gpt-2")
    })
    .unwrap();
    let data = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &plain, 0.0).unwrap();
    let batch = data
        .evaluation_batches(1, 500, None)
        .next()
        .unwrap()
        .unwrap();
    let text = plain
        .decode(&batch.inputs.iter().map(|&id| id as u32).collect::<Vec<_>>())
        .unwrap();
    assert!(
        text.starts_with("SYS\n\n### Instruction:\nq1\n\n### Response:\na1\n\n"),
        "{text}"
    );
    assert_eq!(text.matches("SYS").count(), 1, "{text}");
}

#[test]
fn keys_next_to_the_rows_are_reported() {
    let rows =
        br#"{"version": 1, "data": [{"text": "a"}, {"text": "b"}], "license": {"name": "MIT"}}"#;
    let message = |warnings: Vec<tabtune::data::DataWarning>| {
        let unused = warnings
            .into_iter()
            .find(|warning| warning.code == "data.columns.unused");
        unused.map_or_else(String::new, |warning| warning.message)
    };
    let settings = DataSettings::default();
    let file = DataFile {
        name: "a.json",
        bytes: rows,
    };
    let summary = summary(&file, &settings);
    assert_eq!(
        (summary.rows, message(summary.warnings).as_str()),
        (
            Some(2),
            "a.json: these keys next to the rows are not used: version, license."
        )
    );
    assert_eq!(
        message(read("a.json", rows).unwrap().reading_warnings()),
        "a.json: these keys next to the rows are not used: version, license."
    );
}

#[test]
fn an_object_with_a_question_is_a_row_whatever_lists_it_has() {
    let row = br#"{"question": "p", "answer": "c", "sources": [{"text": "one"}, {"text": "two"}]}"#;
    for name in ["a.jsonl", "a.json", "a"] {
        let summary = summary(&DataFile { name, bytes: row }, &DataSettings::default());
        assert_eq!(
            (summary.rows, summary.shapes.get("faulty")),
            (Some(1), Some(&1)),
            "{name}"
        );
        assert!(
            summary.warnings[0]
                .message
                .contains("{\"prompt\": \"question\", \"completion\": \"answer\"}"),
            "{:?}",
            summary.warnings
        );
    }
}

#[test]
fn rows_may_be_in_a_list_of_any_name() {
    for key in ["data", "output", "response", "contents"] {
        let bytes = format!(r#"{{"version": 1, "{key}": [{{"text": "a"}}, {{"text": "b"}}]}}"#);
        let summary = summary(
            &DataFile {
                name: "a.json",
                bytes: bytes.as_bytes(),
            },
            &DataSettings::default(),
        );
        assert_eq!(
            (summary.rows, summary.shapes.get("text")),
            (Some(2), Some(&2)),
            "{key}"
        );
    }
}

#[test]
fn a_summary_says_why_rows_cannot_be_used() {
    let rows = b"{\"question\": \"a\"}\n{\"text\": 1}\n{\n{\"text\": \"a\"}\n";
    let summary = summary(
        &DataFile {
            name: "a.jsonl",
            bytes: rows,
        },
        &DataSettings::default(),
    );
    let told: Vec<(&str, usize, usize)> = summary
        .warnings
        .iter()
        .map(|w| (w.code, w.count, w.rows.first().unwrap().line))
        .collect();
    assert_eq!(
        (summary.shapes["faulty"], told),
        (3, vec![("data.shape", 2, 1), ("data.row", 1, 3)])
    );
    assert!(
        summary.warnings[0].message.contains("found question"),
        "{:?}",
        summary.warnings
    );
}

#[test]
fn several_objects_in_one_line_are_reported_with_what_to_do() {
    let one = LINES.replace('\n', " ");
    let refused = read("rows.jsonl", format!("{one}\n{LINES}").as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("line 1")
            && refused
                .contains("found 2 objects in the place of one. Each line must hold one object"),
        "{refused}"
    );
    let comma = LINES.replace('\n', ",\n");
    let tabtune::Error::Refused(list) = read("rows.jsonl", comma.as_bytes()).unwrap_err() else {
        panic!("{comma}")
    };
    assert_eq!(
        (list.len(), list[0].hint.as_deref()),
        (
            2,
            Some("each line must hold one object, and nothing after it")
        )
    );
}

#[test]
fn objects_in_lines_are_lines_whatever_the_name_says() {
    let comma = LINES.replace('\n', ",\n");
    let spread = "{\n \"prompt\": \"a\",\n \"completion\": \"b\"\n}\n".repeat(2);
    let broken = "{\"prompt\": \"a\" \"completion\": \"b\"},\n".repeat(3);
    for (text, count) in [(&comma, 2), (&spread, 8), (&broken, 3)] {
        let refused = |name: &str| match read(name, text.as_bytes()) {
            Err(tabtune::Error::Refused(list)) => list
                .into_iter()
                .map(|each| (each.code, each.subject, each.found, each.hint))
                .collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let found = refused("rows.json");
        assert!(
            found.len() == count && found == refused("rows.jsonl"),
            "{text}: {found:?}"
        );
    }
    // One of the lines can be used: the others are left out, and the form is reported.
    let skipping = DataSettings {
        on_bad_row: OnBadRow::Skip,
        ..DataSettings::default()
    };
    let data = read_as(
        "rows.json",
        format!("{comma}{}", LINES.lines().next().unwrap()).as_bytes(),
        &skipping,
    )
    .unwrap();
    assert_eq!(
        (data.files()[0].form, data.files()[0].rows),
        (Form::Jsonl, Some(3))
    );
    assert!(codes(&data).contains(&"data.form"), "{:?}", codes(&data));
    // An object that is broken stays one row.
    let one = read(
        "one.json",
        b"{\n\"messages\": [\n{\"role\": \"user\" \"content\": \"a\"}\n]\n}\n",
    )
    .unwrap_err();
    assert!(
        matches!(&one, tabtune::Error::Refused(list) if list.len() == 1),
        "{one}"
    );
}
