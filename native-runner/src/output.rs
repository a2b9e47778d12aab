//! Output to stdout: JSON lines with `--json`, readable lines without. Nothing else writes to stdout.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::json;

use tabtune::error::escaped;

use crate::error::{Result, RunError};

/// Writer of a command's results, for programs or for people.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Makes a writer; with `json`, one JSON object per line.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns true if the output is JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Writes one result: `value` for programs, `text` for people.
    ///
    /// # Errors
    /// `cli.stdout` if it cannot be written, `cli.json` if `value` cannot be JSON.
    pub fn line(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.json {
            let line = serde_json::to_string(value).map_err(|e| RunError::Json {
                name: "stdout".into(),
                reason: e.to_string(),
            })?;
            self.write(&format!("{}\n", in_json(&line)))
        } else {
            self.write(&format!("{}\n", text()))
        }
    }

    /// Writes one result for programs only; people see it elsewhere, on the progress bar.
    ///
    /// # Errors
    /// Errors of [`Output::line`].
    pub fn json_line(&self, value: &impl Serialize) -> Result<()> {
        if self.json {
            self.line(value, String::new)
        } else {
            Ok(())
        }
    }

    /// Writes text for people only, without adding a line end.
    ///
    /// # Errors
    /// `cli.stdout`.
    pub fn fragment(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { self.write(text) }
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(RunError::Stdout)
    }

    /// Writes the failure that ends the command: as JSON on stdout, or on stderr as one readable line and one more for each further item of
    /// `list`.
    pub fn failure(&self, code: &str, message: &str, list: &[(String, &str)]) {
        if self.json {
            let mut error = json!({ "code": code, "message": message });
            if !list.is_empty() {
                error["faults"] = list.iter().map(|(sentence, _)| sentence.as_str()).collect();
            }
            let line = json!({ "error": error });
            // A closed stdout is itself the failure, and there is nobody to report it to.
            if self
                .write(&format!("{}\n", in_json(&line.to_string())))
                .is_ok()
            {
                return;
            }
        }
        let one_line = |text: &str| {
            escaped(&text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string()
        };
        let terminal = std::io::stderr().is_terminal();
        let (first, rest) = list
            .split_first()
            .map_or((message, list), |((first, _), rest)| (first.as_str(), rest));
        let rest: String = rest
            .iter()
            .map(|(sentence, code)| {
                format!("       {}\n", coded(&one_line(sentence), code, terminal))
            })
            .collect();
        // eprintln! panics when stderr is closed.
        let _ = write!(
            std::io::stderr(),
            "error: {}\n{rest}",
            coded(&one_line(first), code, terminal)
        );
    }
}

/// Returns the line of a warning for people, on stdout.
pub fn warning_line(message: &str, code: &str) -> String {
    format!("warning: {}", with_code(message, code))
}

/// Returns a message with its code, for people, on stdout.
pub fn with_code(message: &str, code: &str) -> String {
    coded(message, code, std::io::stdout().is_terminal())
}

/// Prints a warning on stderr.
pub fn warn(message: &str, code: &str) {
    log::warn!("{}", coded(message, code, std::io::stderr().is_terminal()));
}

/// Returns a message with its code at the end, which is dim on a terminal with colours.
fn coded(message: &str, code: &str, terminal: bool) -> String {
    let (dim, plain) = if terminal && std::env::var_os("NO_COLOR").is_none() {
        ("\u{1b}[2m", "\u{1b}[0m")
    } else {
        ("", "")
    };
    format!("{message} {dim}[{code}]{plain}")
}

/// Escapes the characters of a JSON line that a terminal would act on.
fn in_json(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut units = [0u16; 2];
    for c in line.chars() {
        if escaped(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() {
            out.push(c);
        } else {
            c.encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}
