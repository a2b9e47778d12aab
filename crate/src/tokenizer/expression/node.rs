//! The tree of an expression.

/// Kind of a look-around; the text that begins it.
pub(super) type Look = &'static str;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Empty,
    /// A character; with `fold`, in every case.
    Char {
        char: char,
        fold: bool,
    },
    /// Text for the engine that matches one character.
    Set(String),
    /// Text for the engine that matches at a place.
    Place(&'static str),
    /// `^`: the beginning of a line that has a character.
    Line,
    /// A group that captures if no group has a name, or if it has one itself.
    Group {
        named: bool,
        inner: Box<Node>,
    },
    /// The extent of an option, whose text is not joined with that outside.
    Scope(Box<Node>),
    Look(Look, Box<Node>),
    Atomic(Box<Node>),
    Reference(usize),
    Repeat {
        inner: Box<Node>,
        low: u32,
        high: Option<u32>,
        greedy: bool,
    },
    Concat(Vec<Node>),
    Alt(Vec<Node>),
}

impl Node {
    /// Returns true if no repetition may follow in Oniguruma.
    pub fn is_place(&self) -> bool {
        match self {
            Self::Place(_) | Self::Line | Self::Look(..) => true,
            Self::Alt(all) => all.iter().any(Self::is_place),
            _ => false,
        }
    }

    /// Returns true for a repetition of one character or set, in groups or not.
    pub fn is_run(&self) -> bool {
        match self {
            Self::Group { inner, .. } | Self::Scope(inner) => inner.is_run(),
            Self::Repeat { inner, .. } => inner.is_set(),
            _ => false,
        }
    }

    /// Returns true for one character or set.
    pub fn is_set(&self) -> bool {
        matches!(self, Self::Set(_) | Self::Char { fold: false, .. })
    }

    /// Returns the number of characters that it matches at least; a reference may match none.
    pub fn least(&self) -> u32 {
        match self {
            Self::Char { .. } | Self::Set(_) => 1,
            Self::Group { inner, .. } | Self::Scope(inner) | Self::Atomic(inner) => inner.least(),
            Self::Repeat { inner, low, .. } => inner.least().saturating_mul(*low),
            Self::Concat(all) => all.iter().map(Self::least).fold(0, u32::saturating_add),
            Self::Alt(all) => all.iter().map(Self::least).min().unwrap_or(0),
            Self::Empty | Self::Place(_) | Self::Line | Self::Look(..) | Self::Reference(_) => 0,
        }
    }

    /// Returns a character in every case.
    pub fn folded(&self) -> Option<char> {
        match self {
            Self::Char { char, fold: true } => Some(*char),
            _ => None,
        }
    }

    /// Returns true if `found` is true for this node or one inside.
    pub fn any(&self, found: &impl Fn(&Self) -> bool) -> bool {
        found(self)
            || match self {
                Self::Group { inner, .. }
                | Self::Scope(inner)
                | Self::Look(_, inner)
                | Self::Atomic(inner)
                | Self::Repeat { inner, .. } => inner.any(found),
                Self::Concat(all) | Self::Alt(all) => all.iter().any(|node| node.any(found)),
                _ => false,
            }
    }
}
