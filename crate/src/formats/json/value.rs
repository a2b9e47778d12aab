//! Values, and what is wrong with a document.

/// A value of a document that was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    /// What is between the quotes, with its escapes.
    Text(&'a str),
    /// From bracket to bracket.
    List(&'a str),
    /// From brace to brace.
    Object(&'a str),
}

/// Why a document was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonFault {
    Syntax { at: usize },
    Depth { at: usize },
    Duplicate { at: usize, path: String },
}

impl JsonFault {
    /// The fault of a value, told by the object that has it under `key`.
    pub(crate) fn under(self, key: &str) -> Self {
        match self {
            Self::Duplicate { at, path } => Self::Duplicate { at, path: format!("{key}/{path}") },
            other => other,
        }
    }
}
