//! Parses the JSON documents of a model.

use crate::error::{Error, Refusal, Result, Word};
use crate::formats::json::MAX_DEPTH;
use crate::formats::{Json, JsonFault, describe_flaw, foreign, json};

/// Parses a document. The codes are those of one that is no JSON, is nested too deeply, or has a key twice. A document that must have `key`
/// and lacks it may be the message of a hub, which is JSON too.
pub(super) fn parsed<'a>(
    bytes: &'a [u8],
    [syntax, depth, twice]: [Word; 3],
    key: Option<&str>,
) -> Result<Json<'a>> {
    let refuse = |code: Word, at: usize| Refusal::new(code).at(at as u64);
    let not_json = |at: usize| Error::from(describe_flaw(refuse(syntax, at), bytes));
    let text = std::str::from_utf8(bytes).map_err(|error| not_json(error.valid_up_to()))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => not_json(at),
        JsonFault::Depth { at } => refuse(depth, at).into(),
        JsonFault::Duplicate { at, path } => refuse(twice, at).subject(&path).into(),
    })?;
    if key.is_some_and(|key| document.get(key).is_none()) && foreign(bytes).is_some() {
        return Err(not_json(0));
    }
    Ok(document)
}
