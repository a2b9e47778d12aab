//! The file that is being read: a text, token ids, or rows, piece by piece.

use std::io::Read;

use serde_json::{Map, Value};

use super::super::store::check_ids;
use super::DataReader;
use crate::config::Form;
use crate::data::read::{
    Contents, Opened, ROWS_AT_ONCE, RowPlace, Rows, Seen, TextReader, unreadable, whole_text,
};
use crate::error::{Error, Refusal, Result, shown, word};

/// Number of bytes of token ids that are read in one go.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// The file that is being read.
pub(super) struct Current<'a> {
    pub file: Opened<'a>,
    pub rows: usize,
    kind: Kind<'a>,
    pub trailing: Seen,
    pub newlines: Seen,
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
        let (settings, account) = (self.encoder.settings, &mut self.encoder.account);
        account.warn(file.found.other_name(&shown(file.source.name()), settings));
        let partial = settings.partial;
        let (mut trailing, mut newlines) = (Seen::default(), Seen::default());
        let kind = match file.found.form {
            Form::Tokens => {
                let reader = Contents::open(file.source, partial)?;
                trailing = reader.trailing.clone();
                Kind::Ids {
                    reader,
                    pending: Vec::new(),
                    offset: 0,
                }
            }
            Form::Text if self.stream => {
                let (reader, found) = TextReader::open(file.source, partial)?.with_newlines();
                (trailing, newlines) = (reader.trailing(), found);
                Kind::Text {
                    reader,
                    pending: String::new(),
                    enough: 0,
                }
            }
            Form::Text => Kind::Document,
            _ => {
                let rows = Rows::open(file.source, &file.found, partial)?;
                account.warn(rows.unread());
                trailing = rows.trailing.clone();
                Kind::Rows(rows)
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
        let (name, file) = (current.file.source.name(), self.encoder.account.files.len());
        let place = |line: usize, row: usize| RowPlace { file, line, row };
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
                self.add_row(place(1, 1), (name, form), row, None)?;
                Ok(false)
            }
            Kind::Rows(rows) => {
                for _ in 0..ROWS_AT_ONCE {
                    let next = rows.next()?;
                    for (line, row, note) in rows.notes() {
                        self.encoder.note(place(line, row), (name, form), &note);
                    }
                    let Some((line, row)) = next else {
                        return Ok(false);
                    };
                    current.rows += 1;
                    let row = row.map_err(|fault| {
                        let refusal = Refusal::new(word!("data.row"));
                        let expected = format!("a row of {}", form.name());
                        refusal.expected(expected).found_whole(fault).into()
                    });
                    let place = place(line, current.rows);
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
        let last = reader.move_to(pending)? == 0;
        if !last && pending.len() < *enough {
            return Ok(true);
        }
        let (ids, used) = tokenizer.encode_part(pending, last)?;
        let encoded = pending.get(..used).unwrap_or_default();
        let findings = tokenizer.stream_findings(encoded, &ids)?;
        self.encoder.account.texts.add(&findings, None);
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
