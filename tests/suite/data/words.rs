//! Each warning code about data is raised by a file of `golden/data-words.json`, and reaches the terminal with the rows that it is about.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli;

/// Returns the cases of `golden/data-words.json`.
pub fn cases() -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(golden().join("data-words.json")).unwrap()).unwrap()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Writes the files of a case below `place`, and returns the arguments of the terminal for them.
pub fn arguments(case: &Value, place: &Path) -> Vec<String> {
    let text = |key: &str| case[key].as_str().unwrap();
    let folder = place.join(text("code"));
    std::fs::create_dir_all(folder.join("model")).unwrap();
    for file in std::fs::read_dir(golden().join("inputs").join(text("model"))).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, folder.join("model").join(path.file_name().unwrap())).unwrap();
    }
    for (name, content) in case["files"].as_object().unwrap() {
        std::fs::write(folder.join("model").join(name), content.as_str().unwrap()).unwrap();
    }
    let bytes = match case["base64"].as_str() {
        Some(coded) => decoded(coded),
        None => text("text").as_bytes().to_vec(),
    };
    let data = cli::write(&folder, text("name"), bytes);
    let settings = cli::write(&folder, "settings.json", case["options"].to_string());
    [
        "data",
        &data,
        "--model",
        &cli::text(&folder.join("model")),
        "--train-config",
        &settings,
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn every_word_reaches_the_terminal() {
    let place = cli::folder("data-words");
    for case in &cases() {
        let text = |key: &str| case[key].as_str().unwrap();
        let code = text("code");
        let args = arguments(case, &place);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let lines: Vec<u64> = case["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_u64().unwrap())
            .collect();
        if case["refused"] == true {
            let (found, message) = cli::refuse(&args);
            assert_eq!(found, code, "{message}");
            // All files together may have too few tokens; the message then names none of them.
            assert!(
                code == "data.too-short" || message.contains(text("name")),
                "{code}: {message}"
            );
            assert!(
                lines
                    .iter()
                    .all(|line| message.contains(&format!("line {line}"))),
                "{code}: {message}"
            );
            continue;
        }
        let report = cli::succeed(&args);
        let warnings = report.last()["warnings"].as_array().unwrap();
        let warning = warnings
            .iter()
            .find(|warning| warning["code"] == code)
            .unwrap_or_else(|| panic!("{code} is not among {warnings:?}"));
        let named: Vec<&Value> = warning["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["line"])
            .collect();
        assert_eq!(json!(named), json!(lines), "{code}");
        // A person sees the sentence, the code, and the lines.
        let plain = String::from_utf8(cli::output(&args).stdout).unwrap();
        let line = plain
            .lines()
            .find(|line| line.contains(code))
            .unwrap_or_else(|| panic!("{code}: {plain}"));
        assert!(
            line.contains(warning["message"].as_str().unwrap()),
            "{line}"
        );
        assert!(
            lines
                .iter()
                .all(|number| line.contains(&number.to_string())),
            "{line}"
        );
    }
    std::fs::remove_dir_all(place).unwrap();
}

/// Returns the path of a model for rows of a few characters.
fn model() -> String {
    cli::text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/inputs/forms/model"))
}

#[test]
fn rows_of_json_are_reported_by_their_number() {
    let place = cli::folder("data-rows-of-json");
    let good = r#"{"prompt": "2+2?", "completion": "4"}"#;
    let written = r#"{"prompt": "2+2?", "completion": "4<|im_end|>"}"#;
    let data = cli::write(
        &place,
        "rows.json",
        format!("[{good}, {good}, {written}, {{}}]"),
    );
    let (_, message) = cli::refuse(&["data", &data, "--model", &model()]);
    assert!(message.contains("row 4 (line 1)"), "{message}");
    let lines = cli::write(&place, "rows.jsonl", format!("{good}\n\n{written}\n"));
    let data = cli::write(&place, "rows.json", format!("[{good}, {good}, {written}]"));
    for (files, said) in [
        (vec![&data], "row 3: "),
        (vec![&lines], "line 3: "),
        (
            vec![&data, &lines],
            "row 3 of rows.json, line 3 of rows.jsonl: ",
        ),
    ] {
        let model = model();
        let mut args = vec!["data"];
        args.extend(files.iter().map(|file| file.as_str()));
        args.extend(["--model", &model]);
        let plain = String::from_utf8(cli::output(&args).stdout).unwrap();
        assert!(
            plain
                .lines()
                .any(|line| line.contains("data.end.written") && line.contains(said)),
            "{plain}"
        );
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn entries_of_folders_that_are_not_read_are_reported() {
    let place = cli::folder("data-folder");
    std::fs::create_dir_all(place.join("texts/sub")).unwrap();
    for name in ["a.txt", "b.md", "c.pdf", ".hidden", "sub/d.txt"] {
        cli::write(&place.join("texts"), name, "2+2=4 ".repeat(200));
    }
    let texts = cli::text(&place.join("texts"));
    let model = model();
    for more in [&["--model", &model][..], &[]] {
        let plain =
            String::from_utf8(cli::output(&[&["data", &texts], more].concat()).stdout).unwrap();
        let line = plain
            .lines()
            .find(|line| line.contains("data.folder"))
            .unwrap_or_else(|| panic!("{plain}"));
        assert!(
            line.contains("not read: c.pdf, sub. [") && !line.contains("hidden"),
            "{line}"
        );
    }
    std::fs::create_dir_all(place.join("rows")).unwrap();
    for (name, said) in [
        ("", "found none"),
        ("b.csv", "found b.csv; "),
        ("a.jsonl", "found a.jsonl, b.csv; "),
    ] {
        if !name.is_empty() {
            cli::write(&place.join("rows"), name, "a,b\n");
        }
        let (code, message) = cli::refuse(&["data", &cli::text(&place.join("rows"))]);
        assert!(code == "source.read" && message.contains(said), "{message}");
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn faults_of_json_have_the_line_of_the_file() {
    let place = cli::folder("data-lines-of-json");
    let pretty = cli::write(
        &place,
        "rows.json",
        "[\n {\n  \"prompt\": \"a\",\n  \"completion\": \"b\"\n },\n {\n  \"prompt\": \"a\"\n  \"completion\": \"b\"\n }\n]\n",
    );
    let lines = cli::write(
        &place,
        "rows.jsonl",
        "{\"prompt\": \"a\", \"completion\": \"b\"}\nnot JSON\n",
    );
    for (file, said) in [(pretty, "row 2 (line 6)"), (lines, "line 2")] {
        let (_, message) = cli::refuse(&["data", &file, "--model", &model()]);
        let line = if said == "line 2" {
            "at line 2 column"
        } else {
            "at line 8 column"
        };
        assert!(
            message.contains(said) && message.contains(line),
            "{message}"
        );
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn reports_about_data_for_evaluation_reach_the_terminal() {
    let place = cli::folder("data-validation-words");
    let data = cli::write(
        &place,
        "rows.jsonl",
        "{\"prompt\": \"2+2?\", \"completion\": \"4\"}\n".repeat(4),
    );
    let rows = "{\"prompt\": \"2+2?\", \"completion\": \"4\", \"extra\": 1}\nnot JSON\n{\"prompt\": \"2+2?\", \"completion\": \"4\"}\n";
    let validation = cli::write(&place, "rows.txt", rows);
    let model = model();
    let args = [
        "train",
        "--device",
        "cpu",
        "--model",
        &model,
        "--data",
        &data,
        "--validation-data",
        &validation,
        "--on-bad-row",
        "skip",
    ];
    let answer = cli::succeed(&[&args[..], &["--eval-every", "1", "--steps", "1"]].concat());
    let told: Vec<&Value> = answer
        .with("warning")
        .into_iter()
        .map(|line| &line["warning"])
        .collect();
    for (code, place) in [
        ("data.columns.unused", "line 1: "),
        ("data.row.skipped", "line 2: "),
        ("data.form", ""),
    ] {
        let found = told
            .iter()
            .find(|warning| warning["code"] == code)
            .unwrap_or_else(|| panic!("{code}: {told:?}"));
        let message = found["message"].as_str().unwrap();
        assert!(
            message.contains("for evaluation") && message.contains(place),
            "{message}"
        );
    }
    // Without evaluations they are of no use, which programs learn too.
    let unused = |more: &[&str]| {
        let answer = cli::succeed(
            &[
                &args[..],
                &["--steps", "1", "--learning-rate", "1e-3"],
                more,
            ]
            .concat(),
        );
        answer
            .with("warning")
            .iter()
            .any(|line| line["warning"]["code"] == "data.validation.unused")
    };
    assert_eq!([unused(&[]), unused(&["--eval-every", "1"])], [true, false]);
    std::fs::remove_dir_all(place).unwrap();
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits: Vec<u8> = text
        .bytes()
        .filter(|letter| *letter != b'=')
        .flat_map(|letter| (0..6).rev().map(move |bit| digit(letter) >> bit & 1))
        .collect();
    bits.chunks_exact(8)
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit))
        .collect()
}
