//! Words for the tensors that optimizers keep.

use serde::{Deserialize, Serialize};

/// A tensor that an optimizer keeps for a parameter ([example](crate::portable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateWord {
    /// Factored second moment, one value a column.
    Col,
    /// First moment.
    M,
    /// Copy of the parameter in F32, kept in addition to a rounded one.
    Master,
    /// Running average of SGD.
    Momentum,
    /// Norm of APOLLO's last update.
    Norm,
    /// Factored second moment, one value a row.
    Row,
    /// Number of updates.
    Step,
    /// Second moment.
    V,
}

impl StateWord {
    /// All words, ascending.
    pub const ALL: [Self; 8] = [
        Self::Col,
        Self::M,
        Self::Master,
        Self::Momentum,
        Self::Norm,
        Self::Row,
        Self::Step,
        Self::V,
    ];

    /// Returns the word that follows the colon of a state tensor's name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Col => "col",
            Self::M => "m",
            Self::Master => "master",
            Self::Momentum => "momentum",
            Self::Norm => "norm",
            Self::Row => "row",
            Self::Step => "step",
            Self::V => "v",
        }
    }

    /// Returns the dtypes in which files may store the tensor.
    pub(crate) fn dtypes(self) -> &'static [&'static str] {
        match self {
            Self::Step => &["U64"],
            Self::M | Self::V | Self::Momentum => &["F32", "BF16", "F16"],
            Self::Row | Self::Col | Self::Norm | Self::Master => &["F32"],
        }
    }

    /// Parses a word.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.text() == text)
    }
}
