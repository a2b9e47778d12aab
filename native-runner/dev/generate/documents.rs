//! Tables of codes and settings in documents.

use tabtune::error::Class;
use tabtune::families::titles;

use super::codes::coded;
use super::keys::{Key, Kind, Settings};
use super::text::{in_table, json, row};

/// Returns a document whose section of this heading has a new table; the rest of it is written by hand.
fn with_table(document: &str, heading: &str, table: &[String]) -> String {
    let lines: Vec<&str> = document.lines().collect();
    let is_row = |line: &&str| line.starts_with('|');
    let start = lines.iter().position(|line| *line == heading);
    let start = start.unwrap_or_else(|| panic!("expected the heading {heading}"));
    let before = lines[start..]
        .iter()
        .take_while(|line| !is_row(line))
        .count();
    let begin = start + before;
    let rows = lines[begin..]
        .iter()
        .take_while(|line| is_row(line))
        .count();
    let table = table.iter().map(String::as_str);
    let made = lines[..begin].iter().copied().chain(table);
    let made = made.chain(lines[begin + rows..].iter().copied());
    Vec::from_iter(made).join("\n") + "\n"
}

/// Returns a document whose sentence "Models of … can be opened" names every model. In a paragraph of several lines they have at most 120 columns.
pub fn models(document: &str) -> String {
    const ENDS: [&str; 2] = ["Models of ", " can be opened"];
    let begin = document.find(ENDS[0]).map(|at| at + ENDS[0].len());
    let begin = begin.unwrap_or_else(|| panic!("expected a sentence with {}", ENDS[0]));
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraph = document[begin..]
        .find("\n\n")
        .map_or(document.len(), |end| begin + end);
    let first = document[..begin].rfind("\n\n").map_or(0, |at| at + 2);
    let is_wrapped = !document[first..paragraph].contains('<');
    let rest = flat(&document[begin..paragraph]);
    let rest = rest.split_once(ENDS[1]).map(|(_, rest)| rest);
    let rest = rest.unwrap_or_else(|| panic!("expected a sentence with {}", ENDS[1]));
    let titles = titles();
    let (last, others) = titles.split_last().expect("there are models");
    let list = format!("{} and {last}{}", others.join(", "), ENDS[1]);
    if !is_wrapped {
        let end = begin + document[begin..].find(ENDS[1]).unwrap_or(0) + ENDS[1].len();
        return [&document[..begin], &list, &document[end..]].concat();
    }
    let text = [&flat(&document[first..begin]), " ", &list, rest].concat();
    let lines = wrapped(&text, "");
    [&document[..first], &lines, &document[paragraph..]].concat()
}

/// Returns a text in lines of at most 120 columns, of which all but the first are indented.
fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 120;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Returns the document of all codes: a text written by hand, then a list for each class.
pub fn errors(document: &str) -> String {
    let said = |text: &str| {
        let cell = in_table(text).replace('<', "&lt;");
        if text.is_empty() || text.ends_with('}') || cell.ends_with('.') {
            cell
        } else {
            cell + "."
        }
    };
    let is_made = |line: &&str| line.starts_with("## ");
    let by_hand = document.lines().take_while(|line| !is_made(line));
    let mut lines: Vec<String> = by_hand.map(String::from).collect();
    for class in Class::ALL.iter().chain([&Class::Warning]) {
        let own = coded().filter(|(code, _)| code.class == *class);
        let rows = own.map(|(code, [sentence, hint])| {
            let text = [said(sentence), said(hint)].join(" ");
            let item = format!("* `{}`: {}", code.word, text.trim_end());
            wrapped(&item, "  ")
        });
        let name = match class {
            Class::Warning => "Warnings".into(),
            class => format!("`{}`", class.text()),
        };
        lines.extend([format!("## {name}"), String::new()]);
        lines.extend(rows.chain([String::new()]));
    }
    lines.pop();
    lines.join("\n") + "\n"
}

/// Returns the table of settings.
fn table(keys: &[Key]) -> Vec<String> {
    let cells = |key: &Key| {
        let default = match key.value["type"].as_str() {
            Some(tag) => tag.into(),
            None => json(&key.value),
        };
        let default = match (key.required, key.value.is_null()) {
            (true, _) => "required".into(),
            (_, true) => String::new(),
            _ => format!("`{default}`"),
        };
        let allowed = match &key.kind {
            Some(Kind::Words(words)) => {
                let words = words.iter().map(|word| format!("`{}`", json(word)));
                format!(" ({})", Vec::from_iter(words).join(", "))
            }
            _ => String::new(),
        };
        let doc = in_table(&key.doc) + &allowed;
        row(&[&format!("`{}`", key.key), &default, &doc])
    };
    let head = [row(&["key", "default", "meaning"]), "|---|---|---|".into()];
    head.into_iter().chain(keys.iter().map(cells)).collect()
}

/// Returns the heading of settings in crate/SETTINGS.md.
fn heading(settings: &Settings) -> Option<String> {
    match (settings.of, settings.tag.as_deref()) {
        ("run", _) => Some("## Run".into()),
        ("adapter", _) => Some("## Adapter".into()),
        ("blockCoordinate", _) => Some("## Block-coordinate AdamW".into()),
        ("group", _) => Some("## Groups".into()),
        (_, Some("cosine")) => Some("### cosine, linear".into()),
        (_, Some("linear")) => None,
        (_, tag) => tag.map(|tag| format!("### {tag}")),
    }
}

/// Returns crate/SETTINGS.md.
pub fn settings(document: &str, all: &[Settings]) -> String {
    all.iter().fold(document.to_owned(), |document, settings| {
        match heading(settings) {
            Some(heading) => with_table(&document, &heading, &table(&settings.keys)),
            None => document,
        }
    })
}
