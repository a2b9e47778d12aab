//! Findings about texts on their way to ids: unknown characters, control tokens, arguments in quotes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use tokenizers::AddedToken;

use super::{Conversation, Rendered, Tokenizer};
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
        for (name, times) in &other.named {
            self.add(name, *times);
        }
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
        let name = |name: &str| match quoted {
            true => format!("\"{}\"", shown(&plain(name))),
            false => shown(name),
        };
        let named = self.named.iter();
        let named = named.map(|(text, count)| format!("{} ({count})", name(text)));
        let more = Some(self.others()).filter(|others| *others > 0);
        let more = more.map(|others| format!("{others} more"));
        named.chain(more).collect::<Vec<_>>().join(", ")
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
        let of_tokens = |word, tally: &Tally, quoted| (word, tally.count, tally.list(quoted));
        let kinds = [
            of_tokens(word!("data.unknown"), &self.unknown, true),
            of_tokens(word!("data.control"), &self.control, false),
            (word!("data.arguments.text"), self.quoted, String::new()),
        ];
        let told = |(word, count, list): (Word, usize, String)| {
            let sentence = Refusal::filled(word, ["", "", &list]).to_string();
            (count > 0).then_some((word, count, sentence))
        };
        kinds.into_iter().filter_map(told).collect()
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> Vec<TextWarning> {
        let warning = |(word, _, message): (Word, usize, String)| TextWarning {
            code: word.text(),
            message,
        };
        self.reported().into_iter().map(warning).collect()
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
                found.control.add(&controls[at].1, 1);
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
        let inner = ids.iter().copied().filter(|id| !self.eos.contains(id));
        self.findings(text, &inner.collect::<Vec<u32>>())
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
        let fields = conversation
            .messages
            .iter()
            .filter_map(Value::as_object)
            .flatten();
        let said = fields
            .filter(|(key, _)| *key != "role")
            .map(|(_, value)| value);
        for value in said.chain(conversation.names.values()) {
            self.add_controls(value, &mut found.control);
        }
        found.quoted = usize::from(self.quotes_arguments(conversation));
        Ok(found)
    }

    /// Adds the control tokens in the texts of a value.
    fn add_controls(&self, value: &Value, found: &mut Tally) {
        match value {
            Value::String(text) => {
                let mut rest = text.as_str();
                let tokens = || self.controls().iter().map(|(_, token)| token.as_str());
                let firsts: BTreeSet<char> =
                    tokens().flat_map(|token| token.chars().next()).collect();
                let firsts: Vec<char> = firsts.into_iter().collect();
                while let Some(at) = rest.find(firsts.as_slice()) {
                    let from = &rest[at..];
                    let begins = tokens().filter(|token| from.starts_with(*token));
                    let longest = begins.max_by_key(|token| token.len());
                    if let Some(token) = longest {
                        found.add(token, 1);
                    }
                    let first = from.chars().next().map_or(0, char::len_utf8);
                    rest = &from[longest.map_or(first, str::len)..];
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
            let turn = self.turn_end();
            // Some tokenizers write the text of a special token in letters.
            let is_one = |id: u32, text: &str| {
                let found = self.inner.encode_fast(text, false);
                found.is_ok_and(|found| found.get_ids().contains(&id))
            };
            let is_control = |(id, token): &(u32, &AddedToken)| {
                (token.special || turn == Some(*id))
                    && !token.content.is_empty()
                    && is_one(*id, &token.content)
            };
            let control = self.added().filter(is_control);
            let control = control.map(|(id, token)| (id, token.content.clone()));
            let mut control: Vec<(u32, String)> = control.collect();
            control.sort_unstable();
            control
        })
    }

    /// Returns true if a tool call's arguments are a JSON text that the template writes as a text in quotes.
    fn quotes_arguments(&self, conversation: &Conversation) -> bool {
        let (mut probe, mut given) = (conversation.clone(), false);
        for message in &mut probe.messages {
            let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten() {
                let holder = match call.get("function") {
                    Some(_) => call.get_mut("function"),
                    None => Some(call),
                };
                let arguments = holder.and_then(|holder| holder.get_mut("arguments"));
                if let Some(text) = arguments.filter(|value| value.as_str().is_some_and(is_json)) {
                    (*text, given) = (ARGUMENTS.into(), true);
                }
            }
        }
        let quotes = |rendered: Rendered| rendered.text.contains("{\\\"probe 7351\\\"");
        given && self.render_chat(&probe, false).is_ok_and(quotes)
    }
}

/// Returns true for the JSON text of an object or a list.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
