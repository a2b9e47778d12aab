//! The texts of data files without a tokenizer, for a vocabulary.

use std::collections::BTreeSet;

use super::content::{RowContent, read_row};
use crate::config::{DataSettings, Form};
use crate::data::read::{
    DataSource, Opened, ROWS_AT_ONCE, RowPlace, Rows, Seen, TextReader, opened, pause, placed,
    refused,
};
use crate::error::{Refusal, Result, word};
use crate::interrupt::Interrupt;
use crate::tokenizer::{BpeSettings, BpeTrainer, Tokenizer};

/// Passes the text of `reader` to `take`, piece by piece.
pub(super) async fn each_piece(
    mut reader: TextReader<'_>,
    source: &dyn DataSource,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(&str),
) -> Result<Seen> {
    loop {
        let piece = reader.fill()?;
        if piece.is_empty() {
            return Ok(reader.trailing());
        }
        take(piece);
        let taken = piece.len();
        reader.take(taken);
        pause(Some(source), interrupt).await?;
    }
}

/// A part of the texts.
enum Part<'a> {
    Piece(&'a str),
    /// The end of a text.
    End,
}

/// Passes the texts of files to `take`: whole texts, and the learned or read texts of rows; with `chats` those of their messages, too, which
/// otherwise are refused.
async fn each_text(
    files: &[&dyn DataSource],
    settings: &DataSettings,
    interrupt: &Interrupt,
    chats: bool,
    take: &mut dyn FnMut(Part<'_>),
) -> Result<()> {
    let (mut any, mut fault) = (false, None);
    let mut take = |part: Part<'_>| {
        any |= matches!(part, Part::Piece(piece) if !piece.is_empty());
        take(part);
    };
    for Opened { source, found } in opened(files, settings)? {
        if found.form == Form::Text {
            let (reader, _) = TextReader::open(source, settings.partial)?.with_newlines();
            each_piece(reader, source, interrupt, &mut |piece| {
                take(Part::Piece(piece))
            })
            .await?;
            take(Part::End);
            continue;
        }
        // Rows that cannot be read are reported when they are learned, unless there are no others.
        let mut rows = Rows::open(source, &found, settings.partial)?;
        let mut number = 0;
        while let Some((line, row)) = rows.next()? {
            number += 1;
            if number % ROWS_AT_ONCE == 0 {
                pause(Some(source), interrupt).await?;
            }
            let row =
                row.map_err(|reason| Refusal::new(word!("data.row")).found_whole(reason).into());
            let read = row.and_then(|row| read_row(&row, settings.columns.as_ref(), chats));
            let error = match read.map(|read| read.content) {
                Ok(RowContent::Completion { prompt, completion }) => {
                    take(Part::Piece(&prompt));
                    take(Part::Piece(&completion));
                    take(Part::End);
                    continue;
                }
                Ok(RowContent::Document(text)) => {
                    take(Part::Piece(&text));
                    take(Part::End);
                    continue;
                }
                Ok(RowContent::Chat(chat)) if chats => {
                    let messages = chat.conversation.messages.iter();
                    for text in messages.filter_map(|message| message["content"].as_str()) {
                        take(Part::Piece(text));
                        take(Part::End);
                    }
                    continue;
                }
                Ok(RowContent::Chat(_) | RowContent::Tokens { .. }) => {
                    let (expected, wrong) = (
                        "rows of text, or of prompt and completion",
                        "a chat or token ids, which need a tokenizer",
                    );
                    let refusal = refused(word!("data.template"), expected, wrong);
                    refusal.hint("open a model, or give a tokenizer").into()
                }
                Err(error) => error,
            };
            let place = RowPlace {
                file: 0,
                line,
                row: number,
            };
            fault.get_or_insert((source.name(), place.of_fault(found.form), error));
        }
    }
    match fault {
        Some((name, place, error)) if !any => Err(placed(error, name, &place).into()),
        _ => Ok(()),
    }
}

/// Collects each distinct character that the files teach, for a vocabulary: those of whole texts, and those of the learned or read texts of
/// rows.
///
/// # Errors
/// `data.*` for files that cannot be read; `call.aborted` if the work was asked to end.
pub async fn characters(
    files: &[&dyn DataSource],
    settings: &DataSettings,
    interrupt: &Interrupt,
) -> Result<String> {
    let mut characters = BTreeSet::new();
    let mut take = |part: Part<'_>| {
        if let Part::Piece(piece) = part {
            characters.extend(piece.chars());
        }
    };
    each_text(files, settings, interrupt, false, &mut take).await?;
    Ok(characters.into_iter().collect())
}

/// Trains byte-level byte pair encoding on the texts of files: whole texts, the texts of rows, and those of the messages of chats.
/// `on_progress` receives the number of bytes of text that were read so far. The merges after that cannot be interrupted; they take a fraction
/// of the time.
///
/// # Errors
/// `config.invalid` for the settings; `data.*` for files that cannot be read or have no text; `call.aborted` if the work was asked to end.
pub async fn train_tokenizer(
    files: &[&dyn DataSource],
    settings: &DataSettings,
    bpe: BpeSettings,
    interrupt: &Interrupt,
    on_progress: &mut dyn FnMut(u64),
) -> Result<Tokenizer> {
    let mut trainer = BpeTrainer::new(bpe)?;
    let mut take = |part: Part<'_>| match part {
        Part::Piece(piece) => {
            trainer.push(piece);
            on_progress(trainer.bytes());
        }
        Part::End => trainer.end(),
    };
    each_text(files, settings, interrupt, true, &mut take).await?;
    interrupt.pause().await?;
    trainer.train()
}
