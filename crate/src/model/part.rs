//! Where a parameter belongs in a model, and what it does there.

use crate::config::Slot;

/// Position of a parameter in a model: table, block or head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A table whose rows are looked up; a tied table is also the head's weight.
    Table {
        /// True if the head shares the table.
        tied: bool,
    },
    /// The block with this number, counted from 0.
    Block(usize),
    /// The final norm and the head.
    Head,
}

impl Part {
    /// Returns the block's number, or `None` outside the blocks.
    pub fn block(self) -> Option<usize> {
        match self {
            Part::Block(block) => Some(block),
            Part::Table { .. } | Part::Head => None,
        }
    }

    /// Returns whether the head's backward pass produces a gradient for it.
    pub(crate) fn in_head(self) -> bool {
        matches!(self, Part::Head | Part::Table { tied: true })
    }

    /// Returns whether lookups produce a gradient for it.
    pub fn is_table(self) -> bool {
        matches!(self, Part::Table { .. })
    }
}

/// Role of a matrix, which decides the spread of its initial values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads the residual stream, or is a table.
    Inner,
    /// Writes to the residual stream.
    Residual,
}

/// Part of a model and place of a module in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The part.
    pub part: Part,
    /// The place in the part.
    pub slot: Slot,
}
