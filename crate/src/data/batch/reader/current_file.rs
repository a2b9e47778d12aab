//! The file that is being read: a text, token ids, or rows, piece by piece.

use std::io::Read;

use serde_json::{Map, Value};

use super::super::store::check_ids;
use super::DataReader;
use crate::config::Form;
use crate::data::chat::Account;
use crate::data::read::{
    Contents, Newlines, Opened, ROWS_AT_ONCE, RowPlace, Rows, TextReader, Trailing, unreadable,
    whole_text,
};
use crate::error::{Error, Refusal, Result, shown, word};

/// Number of bytes of token ids that are read in one go.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// The file that is being read.
pub(super) struct Current<'a> {
    pub(super) file: Opened<'a>,
    pub(super) rows: usize,
    kind: Kind<'a>,
    pub(super) trailing: Trailing,
    pub(super) newlines: Newlines,
}

enum Kind<'a> {
    Text {
        reader: TextReader<'a>,
        pending: String,
        /// Length in bytes that `pending` must reach before encoding is tried again: a text that cannot be cut must not be encoded again
        /// with each piece.
        enough: usize,
    },
    Ids {
        reader: Contents<'a>,
        pending: Vec<u8>,
        offset: usize,
    },
    Rows(Rows<'a>),
    /// A text file among files of rows.
    Document,
}

impl<'a> DataReader<'a> {
    /// Begins a file, whose form decides how it is read.
    pub(super) fn begin(&mut self, file: Opened<'a>) -> Result<Current<'a>> {
        // A name may indicate another form.
        let message = file
            .found
            .other_name(&shown(file.source.name()), self.encoder.settings);
        self.encoder.account.warn_once(word!("data.form"), message);
        let partial = self.encoder.settings.partial;
        let mut newlines = Newlines::default();
        let (trailing, kind) = match file.found.form {
            Form::Tokens => {
                let reader = Contents::open(file.source, partial)?;
                (
                    reader.trailing(),
                    Kind::Ids {
                        reader,
                        pending: Vec::new(),
                        offset: 0,
                    },
                )
            }
            Form::Text if self.stream => {
                let (reader, found) = TextReader::open(file.source, partial)?.with_newlines();
                newlines = found;
                (
                    reader.trailing(),
                    Kind::Text {
                        reader,
                        pending: String::new(),
                        enough: 0,
                    },
                )
            }
            Form::Text => (Trailing::default(), Kind::Document),
            _ => {
                let rows = Rows::open(file.source, &file.found, partial)?;
                self.encoder
                    .account
                    .warn_once(word!("data.columns.unused"), rows.unread());
                (rows.trailing(), Kind::Rows(rows))
            }
        };
        Ok(Current {
            file,
            rows: 0,
            kind,
            trailing,
            newlines,
        })
    }

    /// Reads a part of a file. Returns false if nothing of it is left.
    pub(super) fn read_on(&mut self, current: &mut Current<'a>) -> Result<bool> {
        let name = current.file.source.name();
        let place = |line: usize, row: usize, account: &Account| RowPlace {
            file: account.files(),
            line,
            row,
        };
        let (form, settings) = (current.file.found.form, self.encoder.settings);
        match &mut current.kind {
            Kind::Text {
                reader,
                pending,
                enough,
            } => self.text(reader, pending, enough),
            Kind::Ids {
                reader,
                pending,
                offset,
            } => {
                let read = reader
                    .take(BYTES_AT_ONCE)
                    .read_to_end(pending)
                    .map_err(|error| unreadable(error, name))?;
                self.token_ids(pending, offset, read == 0)
                    .map_err(|error| match error {
                        Error::DataTokens { reason } => Error::DataTokens {
                            reason: format!("{name}: {reason}"),
                        },
                        other => other,
                    })
            }
            Kind::Document => {
                current.rows = 1;
                let text = whole_text(current.file.source, settings.partial);
                let row = text.map(|(text, trailing, newlines)| {
                    (current.trailing, current.newlines) = (trailing, newlines);
                    Map::from_iter([("text".to_owned(), Value::from(text))])
                });
                let place = place(1, 1, &self.encoder.account);
                self.add_row(place, (name, form), row, None)?;
                Ok(false)
            }
            Kind::Rows(rows) => {
                for _ in 0..ROWS_AT_ONCE {
                    let next = rows.next()?;
                    for (line, row, note) in rows.notes() {
                        self.encoder.note(
                            place(line, row, &self.encoder.account),
                            (name, form),
                            &note,
                        );
                    }
                    let Some((line, row)) = next else {
                        return Ok(false);
                    };
                    current.rows += 1;
                    let expected = || format!("a row of {}", form.name());
                    let row = row.map_err(|fault| {
                        Refusal::new(word!("data.row"))
                            .expected(expected())
                            .found_whole(fault)
                            .into()
                    });
                    let place = place(line, current.rows, &self.encoder.account);
                    self.add_row(place, (name, form), row, settings.columns.as_ref())?;
                }
                Ok(true)
            }
        }
    }

    /// Encodes a piece of a text. If there are several texts, each is a document that ends with an end token.
    fn text(
        &mut self,
        reader: &mut TextReader<'_>,
        pending: &mut String,
        enough: &mut usize,
    ) -> Result<bool> {
        let Some(tokenizer) = self.encoder.tokenizer else {
            return Ok(false);
        };
        let more = reader.fill()?;
        let last = more.is_empty();
        pending.push_str(more);
        let taken = more.len();
        reader.take(taken);
        if !last && pending.len() < *enough {
            return Ok(true);
        }
        let (ids, used) = tokenizer.encode_part(pending, last)?;
        self.encoder.account.texts.add(
            &tokenizer.stream_findings(pending.get(..used).unwrap_or_default(), &ids)?,
            None,
        );
        *enough = if used == 0 { 2 * pending.len() } else { 0 };
        pending.drain(..used);
        self.add_ids(&ids)?;
        if last && self.several {
            self.add_ids(tokenizer.eos().get(..1).unwrap_or_default())?;
        }
        Ok(!last)
    }

    fn add_ids(&mut self, ids: &[u32]) -> Result<()> {
        self.hash.ids(ids);
        self.ids.extend(ids.iter().copied())
    }

    /// Takes the complete ids of `pending`, u32 little endian.
    fn token_ids(&mut self, pending: &mut Vec<u8>, offset: &mut usize, last: bool) -> Result<bool> {
        let (words, rest) = pending.as_chunks::<4>();
        if last && !rest.is_empty() {
            let bytes = *offset * size_of::<u32>() + pending.len();
            let reason = format!("expected ids of 4 bytes, u32 little endian, found {bytes} bytes");
            return Err(Error::DataTokens { reason });
        }
        let ids: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        check_ids(&ids, *offset)?;
        *offset += ids.len();
        pending.drain(..size_of_val(ids.as_slice()));
        self.add_ids(&ids)?;
        Ok(!last)
    }
}
