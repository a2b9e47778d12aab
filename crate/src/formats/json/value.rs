//! JSON values, and the faults of a document.

/// A value of a document that was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    /// The text between the quotes, with its escapes.
    Text(&'a str),
    /// The text from bracket to bracket.
    List(&'a str),
    /// The text from brace to brace.
    Object(&'a str),
}

/// Reason why a document was refused, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonFault {
    Syntax { at: usize },
    Depth { at: usize },
    Duplicate { at: usize, path: String },
}

impl JsonFault {
    /// Adds `key` to the path of a fault, seen from the object that has the faulty value under `key`.
    pub(crate) fn under(self, key: &str) -> Self {
        match self {
            Self::Duplicate { at, path } => Self::Duplicate {
                at,
                path: format!("{key}/{path}"),
            },
            other => other,
        }
    }
}
