//! Turns rows into examples, with an account of their kinds and of those that cannot be used.

use super::account::Account;
use super::answers::{Rule, Taught, conversation};
use super::content::{ReadRow, RowContent, read_row};
use super::example::{Encoded, Example, completion, document};
use super::unread_parts::UnreadParts;
use crate::config::{Columns, DataSettings, Form, OnBadRow};
use crate::data::read::{
    DataWarning, FEWER_NAMES, Fields, Note, RowPlace, SEVERAL, hint_of, placed, refused, told,
};
use crate::error::{Error, Refusal, Result, Word, word};
use crate::tokenizer::{Date, Tokenizer};

/// Maximum number of faulty rows that are reported.
const FAULTS: usize = 100;

/// Warning about an end token in a row that is written once more after it.
const ENDS_TWICE: Word = word!("data.end.twice");
/// Warning about an answer of which nothing but its end is learned.
const EMPTY_ANSWER: Word = word!("data.answer.empty");
/// Reasons why a model does not learn to stop.
pub(crate) const NO_END: &str = "the tokenizer names no token that ends a text";
const NO_TURN_END: &str = "the chat template ends answers with no token that ends a turn or a text";
/// Warning about a token that is half prompt and half completion.
const BOUNDARY: Word = word!("data.boundary");

/// Encodes rows.
pub(crate) struct RowEncoder<'a> {
    pub settings: &'a DataSettings,
    /// `None` if no form needs one.
    pub tokenizer: Option<&'a Tokenizer>,
    pub account: Account,
    /// Date that chat templates see.
    date: Option<Date>,
    faults: Vec<Refusal>,
    faulty: usize,
    unread: UnreadParts,
    /// True if the chat template was found to be one.
    has_template: bool,
}

impl<'a> RowEncoder<'a> {
    /// Creates an encoder. An invalid date is refused even if no template asks for it.
    ///
    /// # Errors
    /// `config.invalid`.
    pub fn new(settings: &'a DataSettings, tokenizer: Option<&'a Tokenizer>) -> Result<Self> {
        Ok(Self {
            settings,
            tokenizer,
            account: Account::default(),
            date: settings.chat_date.as_deref().map(str::parse).transpose()?,
            faults: Vec::new(),
            faulty: 0,
            unread: UnreadParts::default(),
            has_template: false,
        })
    }

    /// Refuses rows that cannot be used; the first of them are listed. If they may be skipped and there is `any` example, they are not refused.
    pub fn check(&mut self, any: bool) -> Result<()> {
        let beyond = self.faulty.saturating_sub(FAULTS);
        if let Some(last) = self.faults.last_mut().filter(|_| beyond > 0) {
            last.hint = Some(format!(
                "{beyond} more row{} cannot be used",
                if beyond == 1 { "" } else { "s" }
            ));
        }
        // If nothing is left, the faults explain why.
        let skipped = any && self.settings.on_bad_row == OnBadRow::Skip;
        if self.faults.is_empty() || skipped {
            Ok(())
        } else {
            Err(Error::Refused(std::mem::take(&mut self.faults)))
        }
    }

    /// Returns the index of a row among the learned ones, and its examples; `None` for a faulty row, whose fault is recorded. The file is given
    /// by its name and form.
    pub fn row(
        &mut self,
        place: RowPlace,
        file: (&str, Form),
        row: Result<Fields>,
        columns: Option<&Columns>,
    ) -> Result<Option<(u32, Vec<Example>)>> {
        let Some(tokenizer) = self.tokenizer else {
            return Ok(None);
        };
        let read =
            row.and_then(|row| Ok((read_row(&row, columns, tokenizer.has_chat_template())?, row)));
        let is_chat = |read: &ReadRow| matches!(read.content, RowContent::Chat(_));
        if read.as_ref().is_ok_and(|(read, _)| is_chat(read)) {
            self.check_template(tokenizer, file.0)?;
        }
        let read = read
            .and_then(|(read, row)| Ok((self.examples_of(&read, place, tokenizer)?, read, row)));
        match read {
            Ok((examples, read, row)) => {
                for (key, value) in &row {
                    if !value.is_null() && !read.used.contains(key) {
                        self.account.unread(key, place);
                    }
                }
                if let RowContent::Chat(chat) = &read.content {
                    for part in self.unread.of(chat, tokenizer) {
                        self.account.unread(&part, place);
                    }
                }
                if read.alpaca {
                    self.account.say(word!("data.layout"), place);
                }
                Ok(Some((self.account.row(place), examples)))
            }
            // A file that ends in the middle is not the fault of a row.
            Err(error @ (Error::SourceRead { .. } | Error::DataEncoding { .. })) => Err(error),
            Err(error) => {
                self.fault(place, file, error);
                Ok(None)
            }
        }
    }

    /// Records a note on rows of a file that are read: a warning, or a fault where faulty rows are.
    pub fn note(&mut self, place: RowPlace, file: (&str, Form), note: &Note) {
        match note {
            Note::Between(found) if self.settings.on_bad_row == OnBadRow::Stop => {
                let expected = "rows with a comma between two of them";
                let refusal = refused(word!("data.row"), expected, found);
                self.fault(place, file, refusal.into());
            }
            _ => self.account.warn(note.warning(place)),
        }
    }

    /// Refuses chats for a model whose chat template is absent or broken: no row can be used then, and none is at fault.
    fn check_template(&mut self, tokenizer: &Tokenizer, file: &str) -> Result<()> {
        if !self.has_template {
            tokenizer.check_chat_template().map_err(|error| {
                let found = match error {
                    Error::Template { reason } => reason,
                    other => other.to_string(),
                };
                let expected = "a model with a chat template, which writes chats";
                let refusal = refused(word!("data.template"), expected, found).of(file);
                refusal.hint("add the chat_template.jinja of a model that was trained on chats, or give rows of prompt and completion")
            })?;
            self.has_template = true;
        }
        Ok(())
    }

    fn fault(&mut self, place: RowPlace, (file, form): (&str, Form), error: Error) {
        self.faulty += 1;
        let mut refusal = placed(error, file, &place.of_fault(form));
        // A text may look like a table.
        let found = self.settings.form.is_none();
        if found && hint_of(file) == Some(Form::Text) && refusal.code == word!("data.shape").text()
        {
            let as_text = "to learn the file as a text, give the form text";
            refusal.hint = Some(match refusal.hint {
                Some(hint) => format!("{hint}; {as_text}"),
                None => as_text.to_owned(),
            });
        }
        if let (None, Some(found)) = (&refusal.hint, &refusal.found) {
            refusal.hint = advice(form, found).map(str::to_owned);
        }
        if self.settings.on_bad_row == OnBadRow::Skip {
            let word = word!("data.row.skipped");
            let message = told(word, ["", "", &refusal.to_string()]);
            self.account.warn(DataWarning::of_row(word, place, message));
        }
        if self.faults.len() < FAULTS {
            self.faults.push(refusal);
        }
    }

    /// Makes the examples of a row, and counts them in the account.
    fn examples_of(
        &mut self,
        read: &ReadRow,
        place: RowPlace,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<Example>> {
        let loss_on = self.settings.loss_on;
        let examples = match &read.content {
            RowContent::Chat(chat) => {
                let mut dated = chat.clone();
                dated.conversation.date = self.date;
                let Taught {
                    examples,
                    rule,
                    crosses,
                    findings,
                } = conversation(dated, loss_on, tokenizer)?;
                self.account.texts.add(&findings, Some(place));
                if crosses {
                    self.account.say(BOUNDARY, place);
                }
                if chat.has_empty_answer() {
                    self.account.say(EMPTY_ANSWER, place);
                }
                *self.account.rules.entry(rule.name()).or_default() += 1;
                self.account.turn_ends(&examples, rule, tokenizer);
                if rule != Rule::Whole && !examples.iter().all(|example| ends(example, tokenizer)) {
                    self.account.end_unknown = Some(NO_TURN_END);
                }
                examples
            }
            RowContent::Completion {
                prompt,
                completion: said,
            } => {
                if said.trim().is_empty() {
                    self.account.say(EMPTY_ANSWER, place);
                }
                let encoded = completion(prompt, said, loss_on, tokenizer)?;
                vec![self.encoded(encoded, place, tokenizer)]
            }
            RowContent::Document(text) => {
                vec![self.encoded(document(text, tokenizer)?, place, tokenizer)]
            }
            RowContent::Tokens { ids, counted } => {
                let size = tokenizer.vocab_size();
                if let Some(id) = ids.iter().find(|id| **id as usize >= size) {
                    let expected = format!("ids below {size}");
                    return Err(refused(word!("data.row"), expected, id).into());
                }
                vec![Example::new(ids.clone(), counted.clone())]
            }
        };
        let as_written = matches!(read.content, RowContent::Tokens { .. });
        if !as_written
            && examples
                .iter()
                .any(|example| ends_twice(example, tokenizer))
        {
            self.account.say(ENDS_TWICE, place);
        }
        let name = read.content.name();
        *self.account.shapes.entry(name).or_default() += 1;
        Ok(examples)
    }

    fn encoded(&mut self, encoded: Encoded, place: RowPlace, tokenizer: &Tokenizer) -> Example {
        let warnings = [
            (encoded.begin_written, word!("data.begin.written")),
            (encoded.end_written, word!("data.end.written")),
            (encoded.crosses, BOUNDARY),
        ];
        for (_, word) in warnings.into_iter().filter(|(holds, _)| *holds) {
            self.account.say(word, place);
        }
        self.account.texts.add(&encoded.findings, Some(place));
        if tokenizer.eos().is_empty() {
            self.account.end_unknown = Some(NO_END);
        }
        encoded.example
    }
}

/// Returns what to do about a row of this form that cannot be read, by its fault.
fn advice(form: Form, fault: &str) -> Option<&'static str> {
    let has = |words: &str| fault.contains(words);
    match form {
        Form::Jsonl if has("EOF while parsing") => Some(
            "each line of such a file is a whole row; for objects over several lines, make a list: [{…}, {…}]",
        ),
        Form::Jsonl if has(SEVERAL) || has("trailing characters") => {
            Some("each line must hold one object, and nothing after it")
        }
        Form::Json if has(SEVERAL) => Some("make a list of them: [{…}, {…}]"),
        Form::Csv if has(FEWER_NAMES) => {
            Some("put quotes around a field that has a separator in it, as in \"hello, world\"")
        }
        Form::Tsv if has(FEWER_NAMES) => Some("put quotes around a field that has a tab in it"),
        _ => None,
    }
}

/// Returns true if the last learned token ends a turn or a text, and one of the two right before it, learned too, is the same.
fn ends_twice(example: &Example, tokenizer: &Tokenizer) -> bool {
    let Some(last) = example.last_learned(tokenizer) else {
        return false;
    };
    let mut learned = (0..last).rev().take(2).take_while(|at| example.counts(*at));
    ends(example, tokenizer) && learned.any(|at| example.ids.get(at) == example.ids.get(last))
}

/// Returns true if the last learned token of an example ends a turn or a text.
fn ends(example: &Example, tokenizer: &Tokenizer) -> bool {
    example
        .last_learned(tokenizer)
        .is_some_and(|at| example.is_end(at, tokenizer))
}
