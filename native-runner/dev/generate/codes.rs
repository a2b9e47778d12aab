//! The table of error codes in TypeScript, divided among the scripts of the package.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use tabtune::error::{CODES, Class, Code, Raiser, SENTENCES};
use tabtune_native::error::Result;
use tabtune_native::files::read_file;

use super::HEADER;
use super::keys::Settings;
use super::text::{lossy, quoted};

/// Scripts of the package that need a code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Page,
    Worker,
}

/// The TypeScript of the package, by which the side of a code is found.
pub struct Sides {
    page: String,
    worker: String,
    protocol: String,
}

impl Sides {
    /// Reads the TypeScript of the package.
    pub fn of(root: &Path) -> Result<Self> {
        let source = |folder: &str| -> Result<String> {
            let mut text = String::new();
            append(&root.join("web/src").join(folder), &mut text)?;
            Ok(text)
        };
        Ok(Self {
            page: source("page")?,
            worker: source("worker")?,
            protocol: source("protocol")?,
        })
    }

    /// Returns the scripts that need a code: the worker speaks for the core too, and the page also compares codes that it does not raise.
    fn side(&self, code: &Code) -> Side {
        let word = quoted(code.word);
        let raises = |call: &str| {
            self.page
                .split(call)
                .skip(1)
                .any(|rest| rest.trim_start().starts_with(&word))
        };
        if self.protocol.contains(&word) {
            Side::Both
        } else if !raises("fault(") && !raises("finding(") {
            Side::Worker
        } else if code.raiser == Raiser::Both || self.worker.contains(&word) {
            Side::Both
        } else {
            Side::Page
        }
    }

    /// Returns the table of the codes that `side` needs.
    fn table(&self, name: &str, side: Side) -> String {
        let rows: String = coded()
            .filter(|(code, _)| code.raiser != Raiser::Core && self.side(code) == side)
            .map(|(code, texts)| row(code, &[code.class.text()], texts))
            .collect();
        format!(
            "export const {name} = {{\n{rows}}} as const satisfies Readonly<Record<string, CodeRow>>;\n"
        )
    }
}

/// Appends the written TypeScript of a folder.
fn append(folder: &Path, text: &mut String) -> Result<()> {
    let unreadable = |error: std::io::Error| tabtune::Error::SourceRead {
        name: folder.display().to_string(),
        reason: error.to_string(),
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            if !path.ends_with("generated") {
                append(&path, text)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "ts") {
            text.push_str(&lossy(read_file(&path)?));
        }
    }
    Ok(())
}

/// Returns the codes with sentence and hint.
pub fn coded() -> impl Iterator<Item = (&'static Code, [&'static str; 2])> {
    CODES
        .iter()
        .zip(SENTENCES)
        .map(|(code, &(sentence, hint))| (code, [sentence, hint]))
}

/// Returns the row of a code: `first`, the sentence, and what to do where the table says it.
fn row(code: &Code, first: &[&str], texts: [&str; 2]) -> String {
    let texts = texts.iter().filter(|text| !text.is_empty());
    let cells: Vec<String> = first.iter().chain(texts).map(|text| quoted(text)).collect();
    format!("  {}: [{}],\n", quoted(code.word), cells.join(", "))
}

/// Returns the module with the classes of failures, and with the codes that both scripts of the package raise.
pub fn both(sides: &Sides) -> String {
    let mut classes = String::new();
    for class in Class::ALL {
        let _ = writeln!(classes, "  {},", quoted(class.text()));
    }
    format!(
        "{HEADER}/** Every class of failure. The names are never changed; `detail.code` has the exact reason. */
export const ERROR_CODES = [
{classes}] as const;
/** Class of an error; `detail.code` is the exact reason. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Sentence of a code with places for its values, and what to do; how it is filled is written in crate/src/error/sentence.rs. */
export type Row = readonly [sentence: string, hint?: string];
/** The same after the class of the code. */
export type CodeRow = readonly [of: ErrorCode | 'WARNING' | undefined, ...Row];

/** The dotted words that both the page and the worker raise. */
{}",
        sides.table("CODES", Side::Both)
    )
}

/// Returns the module with the codes that the page alone raises.
pub fn page(sides: &Sides) -> String {
    format!(
        "{HEADER}import type {{ CodeRow }} from './codes.js';

/** The dotted words that the page alone raises. */
{}",
        sides.table("PAGE_CODES", Side::Page)
    )
}

/// Returns the module with the codes of the worker: those that it alone raises, the core's, and the settings that the core's may name, which have
/// another case in TypeScript.
pub fn worker(sides: &Sides, settings: &[Settings]) -> String {
    let core: String = coded()
        .filter(|(code, _)| code.raiser == Raiser::Core)
        .map(|(code, texts)| row(code, &[], texts))
        .collect();
    let keys = settings.iter().flat_map(|each| &each.keys);
    let names: BTreeSet<&str> = keys
        .map(|key| key.key.as_str())
        .filter(|key| key.contains('_'))
        .collect();
    format!(
        "{HEADER}import type {{ CodeRow, Row }} from './codes.js';

/** The dotted words that the worker's TypeScript alone raises. */
{}
/** Sentences of the codes that the core alone raises. */
export const CORE_SENTENCES: Readonly<Record<string, Row>> = {{
{core}}};

/** Settings whose names have several words, as the core writes them. */
export const SETTINGS = '{}';
",
        sides.table("WORKER_CODES", Side::Worker),
        Vec::from_iter(names).join(" ")
    )
}
