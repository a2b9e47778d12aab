//! Makes examples of rows: content of a row → conversation, completion or document → tokens, and a mark for each that is learned.

mod account;
mod answer_span;
mod answers;
mod content;
mod encoder;
mod example;
mod header;
mod messages;
mod positions;
mod summary;
mod text_findings;
mod texts;
mod unread_parts;

pub(super) use self::{
    account::Account,
    encoder::{NO_END, RowEncoder},
    example::Example,
};
pub use self::{
    summary::summaries,
    texts::{characters, train_tokenizer},
};
