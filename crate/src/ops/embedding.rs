//! Lookup of rows of a table, and the gradient of the table: summed along chains of equal ids, in a fixed order and without atomics.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{FloatDType, IntDType};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, StoredMatrix, Words, groups_of_64};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};
use crate::ops::weights::Weights;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&FORWARD.all(), &LINKS.all(), &BACKWARD.all()];

crate::kernel! {
    /// Computes `y[r] = w[ids[r]]`, the rows of a table at `ids`.
    pub FORWARD = "embedding_forward" of weight1 [64], (w, ids) -> (mut y),
    /// Shapes of the lookup.
    struct ForwardParams {
        /// Number of ids.
        n: usize,
        /// Number of rows of the table.
        vocab: usize,
        /// Number of columns of the table.
        k: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
        /// True if the rows of ids outside the table are left as they are; otherwise they become zeros.
        keep: bool,
    },
    twin forward_twin
}
crate::kernel! {
    /// Finds the first row of each id, and for each row the next one with the same id.
    pub LINKS = "embedding_links" [64], (ids) -> (links),
    /// Shapes of the chains.
    struct LinksParams {
        /// Number of ids.
        n: usize,
        /// Number of rows of the table.
        vocab: usize,
    },
    twin links_twin
}
crate::kernel! {
    /// Computes `dw[v] += Σ dy[r]` along the chain of v.
    pub BACKWARD = "embedding_backward" [64], (links, dy) -> (mut dw),
    /// Shapes of the gradient.
    struct BackwardParams {
        /// Number of ids.
        n: usize,
        /// Number of rows of the table.
        vocab: usize,
        /// Number of columns of the table.
        width: usize,
    },
    twin backward_twin
}

fn forward_twin([w, ids]: [&[u32]; 2], [y]: [&mut [u32]; 1], p: &ForwardParams) {
    let width = p.k;
    for r in 0..p.n {
        let y = &mut y[r * width..][..width];
        match usize::try_from(ids.ints()[r])
            .ok()
            .filter(|&id| id < p.vocab)
        {
            Some(id) => y.copy_from_slice(&w[id * width..][..width]),
            None if p.keep => {}
            None => y.fill(0),
        }
    }
}

fn links_twin([ids]: [&[u32]; 1], [links]: [&mut [u32]; 1], p: &LinksParams) {
    let (n, vocab) = (p.n, p.vocab);
    links[..vocab + n].fill(n as u32);
    for r in (0..n).rev() {
        if let Some(id) = usize::try_from(ids.ints()[r]).ok().filter(|&id| id < vocab) {
            links[vocab + r] = links[id];
            links[id] = r as u32;
        } else if let Some(next) = (r + 1..n).find(|&next| ids.ints()[next] == ids.ints()[r]) {
            links[vocab + r] = next as u32;
        }
    }
}

fn backward_twin([links, dy]: [&[u32]; 2], [dw]: [&mut [u32]; 1], p: &BackwardParams) {
    let (n, vocab, width) = (p.n, p.vocab, p.width);
    for v in 0..vocab {
        for c in 0..width {
            let mut sum = 0.0;
            let mut r = links[v] as usize;
            while r < n {
                sum += dy.wide(r * width + c);
                r = links[vocab + r] as usize;
            }
            // Rounded before it is added, so that the bits equal those of a sum of two gradients.
            dw.floats_mut()[v * width + c] += sum as f32;
        }
    }
}

/// Looks up rows: `w [V, C]`, ids `[n]` as words → `[n, C]`, f32.
pub fn forward<B: Launch>(w: Weights<FloatTensor<B>>, ids: FloatTensor<B>) -> FloatTensor<B> {
    let y = B::floats(&ids, [ids.shape().num_elements(), w.form.columns]);
    forward_into::<B>(y, w, ids, false)
}

/// Computes [`forward`] in place of `y [n, C]`, of which the rows of ids outside the table stay as they are if `keep` is true.
fn forward_into<B: Launch>(
    y: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    ids: FloatTensor<B>,
    keep: bool,
) -> FloatTensor<B> {
    let StoredMatrix {
        storage,
        rows,
        columns,
    } = w.form;
    let n = ids.shape().num_elements();
    let params = ForwardParams {
        n,
        vocab: rows,
        k: columns,
        plane: w.form.plane(),
        keep,
    };
    let kernel = FORWARD.of(storage);
    let [y] = B::launch(
        kernel,
        [w.words, ids],
        [y],
        &params,
        kernel.groups(n * columns),
    );
    y
}

/// Decodes all rows of `w [V, C]` to f32 `[V, C]`, for products on the CPU and for tests. Products on a GPU do not need it.
pub fn decoded<B: Launch>(w: Weights<FloatTensor<B>>) -> FloatTensor<B> {
    let (device, rows) = (w.words.device(), w.form.rows);
    let ids = B::int_arange(0..rows as i64, &device, IntDType::I32);
    forward::<B>(w, B::ids(ids))
}

/// Adds the gradient of the table, from that of its rows `dy [n, C]` at ids `[n]`, to `sum [V, C]` (in place if it is uniquely owned).
pub fn backward<B: Launch>(
    sum: FloatTensor<B>,
    ids: FloatTensor<B>,
    dy: FloatTensor<B>,
) -> FloatTensor<B> {
    let (vocab, width) = rows_columns(&sum.shape());
    let n = ids.shape().num_elements();
    let params = LinksParams { n, vocab };
    let links = B::made(&LINKS, [ids], [vocab + n], &params, vocab + n);
    let params = BackwardParams { n, vocab, width };
    let groups = groups_of_64(vocab * width);
    let [sum] = B::launch(&BACKWARD, [links, dy], [sum], &params, groups);
    sum
}

/// The backward pass of a lookup, which makes a dense f32 gradient `[V, C]` of the table.
#[derive(Debug, Clone)]
pub struct Embedding<T> {
    /// Ids `[n]` as words.
    pub ids: T,
    /// The shape `[V, C]` of the table.
    pub shape: [usize; 2],
}

impl<B: Launch> Vjp<B, 1> for Embedding<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        let zeros = B::float_zeros(self.shape.into(), &dy.device(), FloatDType::F32);
        [Some(backward::<B>(zeros, self.ids, dy))]
    }
}

operation! {
    /// Looks up the rows of `w [V, C]` (f32 or packed bf16) at `ids [n]` → `[n, C]`, f32. An id outside the table gives zeros. The gradient of the
    /// table is dense.
    pub fn embedding(w: Tensor<2>;; ids: Tensor<1, Int>) -> Tensor<2> {
        let ([w], nodes) = B::parts([w]);
        let (w, ids) = (Weights::of(w), B::Inner::ids(B::integers(ids)));
        let shape = [w.form.rows, w.form.columns];
        let y = forward::<B::Inner>(w, ids.clone());
        B::record(nodes, y, Embedding { ids, shape })
    }
}

operation! {
    /// Looks up rows of a packed table.
    pub(super) fn embedding_of_words(words: Tensor<1>; form: StoredMatrix; ids: Tensor<1, Int>) -> Tensor<2> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(forward::<B::Inner>(w, B::Inner::ids(B::integers(ids))))
    }
}

operation! {
    /// Looks up rows of a table in words, in place of the rows of `y [n, C]`; those of ids outside the table stay as they are.
    pub(super) fn embedding_onto(y: Tensor<2>, words: Tensor<1>; form: StoredMatrix; ids: Tensor<1, Int>) -> Tensor<2> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(forward_into::<B::Inner>(B::constant(y), w, B::Inner::ids(B::integers(ids)), true))
    }
}

operation! {
    /// Computes the gradient of [`embedding()`]'s table from that of its output: adds each row of `dy [n, C]` to the row of its id in `sum [V, C]`. It is
    /// computed in place if the sum is uniquely owned, so that the gradient of a tied table never exists twice. Not differentiable.
    pub fn embedding_backward(sum: Tensor<2>, dy: Tensor<2>;; ids: Tensor<1, Int>) -> Tensor<2> {
        B::untracked(backward::<B::Inner>(B::constant(sum), B::Inner::ids(B::integers(ids)), B::constant(dy)))
    }
}
