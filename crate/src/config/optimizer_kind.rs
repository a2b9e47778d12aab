//! Optimizers as plain data: the word of each kind, its hyperparameters with their ranges, and the tensors that it keeps for a parameter. Settings
//! are checked, update rules lay out their state and files are compared by this description, which each optimizer gives next to its settings.

use super::StateWord;

/// A kind of optimizer.
#[derive(Debug)]
pub(crate) struct OptimizerKind {
    /// Word in settings and in files.
    pub word: &'static str,
    /// False for the kind of another program, which is carried and not trained.
    pub trained: bool,
    /// The hyperparameters of its settings.
    pub hyperparameters: &'static [&'static Hyperparameter],
    /// The tensors that it keeps for a parameter, without the counter of steps, in the order of a layout.
    pub state: &'static [KeptTensor],
}

/// A hyperparameter: a number of a group's plain data, and a setting of the optimizers that tabtune trains.
#[derive(Debug)]
pub(crate) struct Hyperparameter {
    /// Key in settings and in plain data.
    pub key: &'static str,
    /// Range in plain data, which may be those of another program.
    pub carried: Range,
    /// Range of a setting. `None` if it depends on other settings, which the optimizer checks itself, and for switches.
    pub trained: Option<Range>,
    /// Settings that are words or null, with the numbers that represent them in plain data.
    pub words: &'static [(f64, Option<&'static str>)],
    /// True if plain data may leave it out: it then follows from the parameter.
    pub optional: bool,
}

/// A range of numbers: its description, and a test whether a number is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range(pub &'static str, pub fn(f64) -> bool);

/// A tensor that an optimizer keeps for a parameter.
#[derive(Debug)]
pub(crate) struct KeptTensor {
    /// Word of the tensor.
    pub word: StateWord,
    /// Shape as a function of the parameter's.
    pub extent: Extent,
    /// True for F32 whatever the parameter is stored in; false for the parameter's dtype.
    pub always_f32: bool,
    /// Circumstances in which it is kept.
    pub kept: Kept,
}

/// Circumstances in which a tensor is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is a part of every state.
    Always,
    /// A hyperparameter decides; a state without it is complete too.
    Perhaps,
    /// Only other programs keep it.
    Elsewhere,
}

/// The shape of a state tensor as a function of the parameter's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The shape of the parameter.
    Parameter,
    /// One value a row of a matrix; the shape of the parameter if it has less than two dimensions.
    Rows,
    /// One value a column of a matrix; a parameter of less than two dimensions has no such tensor.
    Columns,
    /// `[rank, longer side]` of a projected parameter; the shape of a parameter that is not projected.
    Projection,
    /// One value of a projected parameter; a parameter that is not projected has no such tensor.
    Projected,
}

impl OptimizerKind {
    /// Returns the tensors that it keeps for a parameter of this shape, each with its own shape. `rank` is that of the projection, if the
    /// parameter is projected.
    pub fn kept(
        &self,
        shape: &[u64],
        rank: Option<u64>,
    ) -> impl Iterator<Item = (&KeptTensor, Vec<u64>)> {
        self.state
            .iter()
            .filter_map(move |tensor| Some((tensor, tensor.extent.of(shape, rank)?)))
    }

    /// Returns true if it projects gradients, so that its state depends on a rank.
    pub fn projects(&self) -> bool {
        self.state
            .iter()
            .any(|tensor| tensor.extent == Extent::Projection)
    }
}

impl KeptTensor {
    /// Describes a tensor with the shape and dtype of the parameter, which is always kept.
    pub const fn like_parameter(word: StateWord) -> Self {
        Self {
            word,
            extent: Extent::Parameter,
            always_f32: false,
            kept: Kept::Always,
        }
    }

    /// Describes an F32 tensor, which is always kept.
    pub const fn f32(word: StateWord, extent: Extent) -> Self {
        Self {
            word,
            extent,
            always_f32: true,
            kept: Kept::Always,
        }
    }

    /// Describes the same tensor, kept in these circumstances.
    pub const fn kept(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }
}

impl Extent {
    fn of(self, shape: &[u64], rank: Option<u64>) -> Option<Vec<u64>> {
        match self {
            Self::Parameter => Some(shape.to_vec()),
            Self::Rows => {
                Some(matrix(shape).map_or_else(|| shape.to_vec(), |(rows, _)| vec![rows]))
            }
            Self::Columns => matrix(shape).map(|(_, columns)| vec![columns]),
            Self::Projection => Some(match rank {
                Some(rank) => vec![
                    rank,
                    matrix(shape)
                        .map_or_else(|| elements(shape), |(rows, columns)| rows.max(columns)),
                ],
                None => shape.to_vec(),
            }),
            Self::Projected => rank.map(|_| Vec::new()),
        }
    }
}

/// Returns a shape of at least two dimensions as rows (the product of all but the last) and columns.
pub(crate) fn matrix(shape: &[u64]) -> Option<(u64, u64)> {
    let (&columns, leading) = shape.split_last()?;
    (!leading.is_empty()).then(|| (elements(leading), columns))
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().copied().fold(1, u64::saturating_mul)
}
