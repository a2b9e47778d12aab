//! stdout: JSON lines with `--json`, readable lines without. Nothing else writes there.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use tabtune::error::escaped;

use crate::error::{Result, RunError};

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// `json`: one JSON object per line.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether the reader is a program.
    pub fn json(&self) -> bool {
        self.json
    }

    /// One result: `value` for programs, `text` for people.
    pub fn line(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.json {
            let line = serde_json::to_string(value).map_err(|e| RunError::Json { name: "stdout".into(), reason: e.to_string() })?;
            self.write(&format!("{}\n", in_json(&line)))
        } else {
            self.write(&format!("{}\n", text()))
        }
    }

    /// One result for programs; people see it elsewhere (on the progress bar).
    pub fn json_line(&self, value: &impl Serialize) -> Result<()> {
        if self.json { self.line(value, String::new) } else { Ok(()) }
    }

    /// Text for people, without a line end.
    pub fn fragment(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { self.write(text) }
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(RunError::Stdout)
    }

    /// The failure that ends the command: on stdout as JSON, or on stderr in one readable line, and one for each item of a `list`.
    pub fn failure(&self, code: &str, message: &str, list: &[String]) {
        if self.json {
            let mut error = json!({ "code": code, "message": message });
            if !list.is_empty() {
                error["faults"] = json!(list);
            }
            let line = json!({ "error": error });
            // A closed stdout is itself the failure, and nobody is left to report it to.
            if self.write(&format!("{}\n", in_json(&line.to_string()))).is_ok() {
                return;
            }
        }
        let one_line = |text: &str| escaped(&text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string();
        let (first, rest) = list.split_first().map_or((message, list), |(first, rest)| (first.as_str(), rest));
        let rest: String = rest.iter().map(|item| format!("       {}\n", one_line(item))).collect();
        // eprintln! panics when stderr is closed.
        let _ = write!(std::io::stderr(), "error: {} [{code}]\n{rest}", one_line(first));
    }
}

/// A line of JSON in which characters that a terminal would act on are written as JSON escapes.
fn in_json(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut units = [0u16; 2];
    for c in line.chars() {
        if escaped(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() {
            out.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}
