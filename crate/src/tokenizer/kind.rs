//! Kinds of vocabularies.

/// The kind of vocabulary, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerKind {
    /// Merges of pairs.
    BytePairEncoding,
    /// Scored pieces.
    Unigram,
    /// Longest pieces of words.
    WordPiece,
    /// Whole words.
    WordLevel,
    /// One token per character.
    Characters,
}
