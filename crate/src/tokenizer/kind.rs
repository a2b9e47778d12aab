//! Kinds of vocabularies.

/// Kind of vocabulary, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TokenizerKind {
    /// Tokens are built by merging pairs.
    BytePairEncoding,
    /// Tokens are scored pieces.
    Unigram,
    /// Words are divided into the longest known pieces.
    WordPiece,
    /// Tokens are whole words.
    WordLevel,
    /// Tokens are single characters.
    Characters,
}
