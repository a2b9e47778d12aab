//! Renders what people read about an error or a warning: the file, the sentence of its code with the values, and what to do.
//!
//! In the sentences of [`CODES`](super::CODES) a place is `{artifact}`, `{subject}`, `{expected}` or `{found}`. Text in brackets is left out
//! where a place in it has no value; of several texts, `[a|b|c]`, the first that has its values is taken. `{?found}` asks for a value and
//! shows nothing. The file comes first, unless the sentence names it or has it as its subject. What to do is said by who raises the code, or
//! else by the row.
//!
//! A browser's core has no sentences. It writes code and values between noncharacters, and the worker renders them by the same rules
//! (`web/src/protocol/sentence.ts`).

use std::fmt;

use super::Refusal;
use super::shown::MARKS;

/// Maximum number of sentences in one message.
const SENTENCES: usize = 20;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keep();
        #[cfg(not(target_family = "wasm"))]
        return f.write_str(&native::rendered(self));
        #[cfg(target_family = "wasm")]
        f.write_str(&self.encoded())
    }
}

#[doc(hidden)]
impl Refusal {
    /// Keeps these values as an example of their code, for the tests.
    pub(crate) fn keep(&self) {
        #[cfg(all(debug_assertions, not(target_family = "wasm")))]
        super::examples::keep(self);
    }

    /// Returns code and values without a sentence, for documents that are compared byte by byte.
    fn plain(&self) -> String {
        let part = |before: &str, value: Option<&str>, after: &str| {
            value.map_or_else(String::new, |value| format!("{before}{value}{after}"))
        };
        let artifact = Some(self.artifact.as_str()).filter(|artifact| !artifact.is_empty());
        [
            part("", artifact, ": "),
            self.code.to_string(),
            part(" \"", self.subject.as_deref(), "\""),
            part(", expected ", self.expected.as_deref(), ""),
            part(", found ", self.found.as_deref(), ""),
            part(" (", self.hint.as_deref(), ")"),
        ]
        .concat()
    }

    /// Returns code and values in the form in which they leave a browser's core.
    pub fn encoded(&self) -> String {
        let [begin, next, end] = MARKS;
        let mut out = format!("{begin}{}{next}{}", self.code, self.artifact);
        for value in [&self.subject, &self.expected, &self.found] {
            out.push(next);
            out.push_str(value.as_deref().unwrap_or_default());
        }
        // A hint that is empty takes the place of the row's.
        if let Some(hint) = &self.hint {
            out.push(next);
            out.push_str(hint);
        }
        out.push(end);
        out
    }
}

/// Joins codes and values of a list without sentences.
pub(super) fn plain(refusals: &[Refusal]) -> String {
    refusals
        .iter()
        .map(Refusal::plain)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Joins the sentences of a list, which may have one for each row of a file: what they have in common is said once.
pub(super) fn joined(refusals: &[Refusal]) -> String {
    let shown = refusals.get(..SENTENCES).unwrap_or(refusals);
    let sentence = |(at, refusal): (usize, &Refusal)| {
        let mut refusal = refusal.clone();
        if at > 0
            && shown
                .get(at - 1)
                .is_some_and(|last| last.artifact == refusal.artifact)
        {
            refusal.artifact.clear();
        }
        if shown
            .get(at + 1)
            .is_some_and(|next| next.code == refusal.code && next.hint == refusal.hint)
        {
            refusal.hint = Some(String::new());
        }
        refusal.to_string()
    };
    let first = shown
        .iter()
        .enumerate()
        .map(sentence)
        .collect::<Vec<_>>()
        .join(" ");
    if refusals.len() > SENTENCES {
        format!("{first} (and {} more)", refusals.len() - SENTENCES)
    } else {
        first
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    use super::super::{Refusal, words::sentence};

    /// Sentence of a code that the table lacks, which another crate may give.
    const OTHER: (&str, &str) = (
        "[{subject}: ]the file was refused[: expected {expected}, found {found}|: {found}].",
        "",
    );

    /// Returns file, sentence and what to do.
    pub(super) fn rendered(refusal: &Refusal) -> String {
        let (text, of_row) = sentence(refusal.code).unwrap_or(OTHER);
        let mut out = String::new();
        let named =
            text.contains("artifact}") || refusal.subject.as_ref() == Some(&refusal.artifact);
        if !named && !refusal.artifact.is_empty() {
            out = format!("{}: ", refusal.artifact);
        }
        fill(text, refusal, &mut out);
        match &refusal.hint {
            Some(hint) => advise(hint, &mut out),
            None => {
                let mut hint = String::new();
                fill(of_row, refusal, &mut hint);
                advise(&hint, &mut out);
            }
        }
        out
    }

    /// The value of a place; `None` if it has none.
    fn value<'a>(refusal: &'a Refusal, place: &str) -> Option<&'a str> {
        let value = match place.trim_start_matches('?') {
            "artifact" => Some(&refusal.artifact),
            "subject" => refusal.subject.as_ref(),
            "expected" => refusal.expected.as_ref(),
            _ => refusal.found.as_ref(),
        };
        value.map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Appends a text with its places filled.
    fn fill(text: &str, refusal: &Refusal, out: &mut String) {
        let mut rest = text;
        while let Some(at) = rest.find(['[', '{']) {
            append(&rest[..at], out);
            let close = if rest[at..].starts_with('[') {
                ']'
            } else {
                '}'
            };
            let end = rest[at..]
                .find(close)
                .map_or(rest.len() - 1, |end| at + end);
            let inner = &rest[at + 1..end];
            if close == ']' {
                let has_values = |part: &&str| {
                    part.split('{')
                        .skip(1)
                        .filter_map(|place| place.split('}').next())
                        .all(|place| value(refusal, place).is_some())
                };
                if let Some(part) = inner.split('|').find(has_values) {
                    fill(part, refusal, out);
                }
            } else if !inner.starts_with('?') {
                out.push_str(value(refusal, inner).unwrap_or("?"));
            }
            rest = &rest[end + 1..];
        }
        append(rest, out);
    }

    /// Appends text of a sentence, which ends with one full stop even if its last value has one.
    fn append(text: &str, out: &mut String) {
        out.push_str(if out.ends_with('.') {
            text.strip_prefix('.').unwrap_or(text)
        } else {
            text
        });
    }

    /// Appends what to do, as a sentence.
    fn advise(hint: &str, out: &mut String) {
        let hint = hint.trim();
        if hint.is_empty() {
            return;
        }
        let word = hint.split([' ', ',', ':']).next().unwrap_or_default();
        let plain = word.chars().all(|c| c.is_ascii_lowercase());
        out.push(' ');
        out.push_str(&if plain {
            hint[..1].to_uppercase() + &hint[1..]
        } else {
            hint.to_owned()
        });
        if !hint.ends_with(['.', '!', '?', '…']) {
            out.push('.');
        }
    }
}
