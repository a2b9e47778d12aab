//! Findings about texts on their way to ids: unknown characters, control tokens, arguments in quotes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::{Conversation, Tokenizer};
use crate::error::{Refusal, Result, Word, shown, word};

/// Number of different characters or tokens that are named.
const NAMED: usize = 10;
/// Arguments of a tool call as a JSON text, which only a template that quotes texts writes with a backslash.
const ARGUMENTS: &str = "{\"probe 7351\": 1}";

/// Warning about a text that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextWarning {
    /// Stable dotted code.
    pub code: &'static str,
    /// Message of the warning, as a sentence.
    pub message: String,
}

/// Number of occurrences, with the first different ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub count: usize,
    named: Vec<(String, usize)>,
}

impl Tally {
    fn add(&mut self, name: &str, times: usize) {
        self.count += times;
        let room = self.named.len() < NAMED;
        match self.named.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += times,
            None if room => self.named.push((name.to_owned(), times)),
            None => {}
        }
    }

    fn extend(&mut self, other: &Self) {
        other
            .named
            .iter()
            .for_each(|(name, times)| self.add(name, *times));
        self.count += other.others();
    }

    /// Returns the number of occurrences that are not named.
    fn others(&self) -> usize {
        self.count - self.named.iter().map(|(_, count)| count).sum::<usize>()
    }

    fn list(&self, quoted: bool) -> String {
        let plain = |name: &str| {
            name.replace('\n', "\\n")
                .replace('\t', "\\t")
                .replace('\r', "\\r")
        };
        let name = |name: &str| {
            if quoted {
                format!("\"{}\"", shown(&plain(name)))
            } else {
                shown(name)
            }
        };
        let mut names: Vec<String> = self
            .named
            .iter()
            .map(|(text, count)| format!("{} ({count})", name(text)))
            .collect();
        names.extend(
            Some(self.others())
                .filter(|others| *others > 0)
                .map(|others| format!("{others} more")),
        );
        names.join(", ")
    }
}

/// Findings about texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Findings {
    /// Characters, or words of vocabularies of words, that become the unknown token.
    pub(crate) unknown: Tally,
    /// Control tokens that the contents have.
    pub(crate) control: Tally,
    /// Number of conversations with tool calls whose arguments are written in quotes.
    pub(crate) quoted: usize,
}

#[doc(hidden)]
impl Findings {
    pub(crate) fn extend(&mut self, other: &Self) {
        self.unknown.extend(&other.unknown);
        self.control.extend(&other.control);
        self.quoted += other.quoted;
    }

    /// Returns code, number of occurrences and sentence of each kind that occurred.
    pub(crate) fn reported(&self) -> Vec<(Word, usize, String)> {
        let kinds = [
            (
                word!("data.unknown"),
                self.unknown.count,
                self.unknown.list(true),
            ),
            (
                word!("data.control"),
                self.control.count,
                self.control.list(false),
            ),
            (word!("data.arguments.text"), self.quoted, String::new()),
        ];
        let told = |(word, count, list): (Word, usize, String)| {
            (
                word,
                count,
                Refusal::filled(word, ["", "", &list]).to_string(),
            )
        };
        kinds
            .into_iter()
            .filter(|(_, count, _)| *count > 0)
            .map(told)
            .collect()
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> Vec<TextWarning> {
        self.reported()
            .into_iter()
            .map(|(word, _, message)| TextWarning {
                code: word.text(),
                message,
            })
            .collect()
    }
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns the findings about `text`, which has these ids.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub fn findings(&self, text: &str, ids: &[u32]) -> Result<Findings> {
        let (mut found, controls, unknown) =
            (Findings::default(), self.controls(), self.coverage.unknown);
        for id in ids.iter().filter(|id| Some(**id) != unknown) {
            if let Ok(at) = controls.binary_search_by_key(id, |(id, _)| *id) {
                found
                    .control
                    .add(controls.get(at).map_or("", |(_, token)| token), 1);
            }
        }
        if let Some(unknown) = unknown.filter(|id| ids.contains(id)) {
            let name = self.inner.id_to_token(unknown).unwrap_or_default();
            self.each_unknown(text, unknown, |piece| match piece {
                Some(piece) => found.unknown.add(piece, 1),
                None => found.control.add(&name, 1),
            })?;
        }
        Ok(found)
    }

    /// Returns the findings about a stream of text with these ids, where tokens that end a text separate its documents.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub(crate) fn stream_findings(&self, text: &str, ids: &[u32]) -> Result<Findings> {
        let ids: Vec<u32> = ids
            .iter()
            .copied()
            .filter(|id| !self.eos.contains(id))
            .collect();
        self.findings(text, &ids)
    }

    /// Returns the findings about a conversation that renders as `text` with these ids. Of its control tokens only those count that its
    /// own texts have.
    ///
    /// # Errors
    /// As for [`Tokenizer::encode`].
    pub fn chat_findings(
        &self,
        conversation: &Conversation,
        text: &str,
        ids: &[u32],
    ) -> Result<Findings> {
        let mut found = Findings {
            control: Tally::default(),
            ..self.findings(text, ids)?
        };
        for message in &conversation.messages {
            let said = message
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| *key != "role");
            said.for_each(|(_, value)| self.add_controls(value, &mut found.control));
        }
        conversation
            .names
            .values()
            .for_each(|value| self.add_controls(value, &mut found.control));
        found.quoted = usize::from(self.quotes_arguments(conversation));
        Ok(found)
    }

    /// Adds the control tokens in the texts of a value.
    fn add_controls(&self, value: &Value, found: &mut Tally) {
        match value {
            Value::String(text) => {
                let mut rest = text.as_str();
                let begins = |rest: &str| {
                    let tokens = self.controls().iter().map(|(_, token)| token.as_str());
                    tokens
                        .filter(|token| rest.starts_with(*token))
                        .max_by_key(|token| token.len())
                };
                let firsts: BTreeSet<char> = self
                    .controls()
                    .iter()
                    .filter_map(|(_, token)| token.chars().next())
                    .collect();
                let firsts: Vec<char> = firsts.into_iter().collect();
                while let Some(at) = rest.find(firsts.as_slice()) {
                    let (_, from) = rest.split_at(at);
                    let token = begins(from);
                    token.into_iter().for_each(|token| found.add(token, 1));
                    let passed = token
                        .or_else(|| from.get(..from.chars().next().map_or(0, char::len_utf8)))
                        .map_or(0, str::len);
                    rest = from.get(passed..).unwrap_or_default();
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_controls(item, found)),
            Value::Object(fields) => fields
                .values()
                .for_each(|item| self.add_controls(item, found)),
            _ => {}
        }
    }

    /// Returns id and text of each token that a text cannot say in letters, in the order of ids: special ones, and the one that ends a turn.
    fn controls(&self) -> &[(u32, String)] {
        self.controls.get_or_init(|| {
            let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
            let turn = self.turn_end();
            // Some tokenizers write the text of a special token in letters.
            let is_one = |id: u32, text: &str| {
                self.inner
                    .encode_fast(text, false)
                    .is_ok_and(|found| found.get_ids().contains(&id))
            };
            let control = added.iter().filter(|(id, token)| {
                (token.special || turn == Some(**id)) && !token.content.is_empty()
            });
            let mut control: Vec<(u32, String)> = control
                .filter(|(id, token)| is_one(**id, &token.content))
                .map(|(id, token)| (*id, token.content.clone()))
                .collect();
            control.sort_unstable();
            control
        })
    }

    /// Returns true if a tool call's arguments are a JSON text that the template writes as a text in quotes.
    fn quotes_arguments(&self, conversation: &Conversation) -> bool {
        let (mut probe, mut given) = (conversation.clone(), false);
        for message in &mut probe.messages {
            for call in message
                .get_mut("tool_calls")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let of_function = call.get("function").is_some();
                let holder = if of_function {
                    call.get_mut("function")
                } else {
                    Some(call)
                };
                let arguments = holder.and_then(|holder| holder.get_mut("arguments"));
                if let Some(text) = arguments.filter(|value| value.as_str().is_some_and(is_json)) {
                    (*text, given) = (ARGUMENTS.into(), true);
                }
            }
        }
        given
            && self
                .render_chat(&probe, false)
                .is_ok_and(|rendered| rendered.text.contains("{\\\"probe 7351\\\""))
    }
}

/// Returns true for the JSON text of an object or a list.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
