//! Language models as Burn modules. A parameter's path in the module tree is its Hugging Face state-dict name.
//!
//! A model is stored without autodiff; [`Model::tracked`] returns the view that a training step differentiates.
//!
//! ```
//! use tabtune::config::{Architecture, ModelConfig, Precision};
//! use tabtune::device::Device;
//! use tabtune::interrupt::Interrupt;
//! use tabtune::model::Model;
//!
//! /// A new model of 3 million weights.
//! async fn small(vocab_size: usize, device: &Device) -> tabtune::Result<Model> {
//!     let config = ModelConfig {
//!         architecture: Architecture::Llama,
//!         model_type: "llama".into(),
//!         vocab_size,
//!         hidden_size: 256,
//!         intermediate_size: 768,
//!         num_hidden_layers: 4,
//!         num_attention_heads: 4,
//!         num_key_value_heads: 2,
//!         head_dim: 64,
//!         max_position_embeddings: 256,
//!         norm_eps: 1e-5,
//!         rope_theta: 10_000.0,
//!         tie_word_embeddings: true,
//!         initializer_range: 0.02,
//!         ..ModelConfig::default()
//!     };
//!     Model::init(&config, 42, Precision::F32, &device.inner(), &Interrupt::none()).await
//! }
//! ```

mod adaptation;
mod attention;
mod block;
mod body;
mod builder;
mod cache;
mod check;
mod delta_net;
mod fresh_values;
mod frozen_weights;
mod inference;
#[doc(hidden)]
pub mod layers;
mod load;
mod low_rank;
mod matrix;
mod mixer;
mod mlp;
mod named;
mod norm;
mod opening;
mod parameter_request;
mod parameters;
mod part;
mod resolution;
mod rope;
mod saved_activations;
mod values;
mod weight;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

pub use check::{open_model, open_model_with};
pub(crate) use resolution::adapter_document;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    adaptation::Adaptation,
    cache::KvCache,
    frozen_weights::FrozenWeights,
    inference::AttachedAdapter,
    load::{Plan, files_form, planned_parameters},
    low_rank::Products,
    opening::AdaptedBase,
    parameter_request::{Kind, ParameterRequest},
    part::{Part, Role},
    resolution::{attached_settings, modules, no_base, settings_on},
    rope::frequencies,
};
#[doc(hidden)]
pub use crate::parameters::{ParamMap, ParamVisitor};

use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::ops;
use crate::ops::DropoutStep;
use crate::state::refuse_non_finite;
use block::Stream;
use body::{Body, Lookup};
use matrix::TrackedRows;
use rope::Ropes;

/// Positions of a batch: B sequences of T tokens whose first token has position `offset` ([example](crate)).
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Number of sequences, B.
    #[doc(hidden)]
    pub batch_size: usize,
    /// Number of tokens per sequence, T.
    #[doc(hidden)]
    pub seq_len: usize,
    /// Number of earlier tokens in the cache.
    #[doc(hidden)]
    pub offset: usize,
    /// `[B·T]`: position of the first token of each token's document, before which attention sees nothing. `None` if each sequence is one
    /// document.
    #[doc(hidden)]
    pub document_starts: Option<&'a Tensor<1, Int>>,
    /// The training step that dropout draws for; `None` outside training.
    #[doc(hidden)]
    pub dropout_step: Option<DropoutStep>,
    /// Store for the products of an adapter's first factors: filled in a first pass, or reused in the second.
    #[doc(hidden)]
    pub products: Option<&'a Products>,
}

impl Span<'_> {
    /// Creates a span of B whole sequences of T tokens, each one document.
    pub fn whole(batch_size: usize, seq_len: usize) -> Self {
        Self {
            batch_size,
            seq_len,
            offset: 0,
            document_starts: None,
            dropout_step: None,
            products: None,
        }
    }
}

/// A causal language model with its configuration ([example](crate)).
#[derive(Debug, Clone)]
pub struct Model {
    config: ModelConfig,
    precision: Precision,
    body: Body,
    ropes: Ropes,
    device: Device,
    /// Position of each parameter, by name.
    parts: Arc<BTreeMap<String, Part>>,
    adaptation: Option<Arc<Adaptation>>,
    frozen_weights: FrozenWeights,
    non_finite: Vec<(String, u64)>,
}

impl Model {
    /// The constants of a model with an adapter, as the device holds them.
    #[doc(hidden)]
    pub fn frozen_weights(&self) -> &FrozenWeights {
        &self.frozen_weights
    }

    /// The adapter, if the model has one; every parameter that does not belong to it is constant.
    #[doc(hidden)]
    pub fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation.as_deref()
    }

    /// Checks that all weights are finite.
    ///
    /// # Errors
    /// `model.non-finite`, listing every tensor with NaN or infinite values and the number of them.
    #[doc(hidden)]
    pub fn check_finite(&self) -> Result<()> {
        refuse_non_finite(&self.non_finite).map_err(|error| error.in_file("model"))
    }

    /// The configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns how matrices are stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The device that holds the parameters.
    #[doc(hidden)]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Uploads token ids to the model's device → `[ids.len()]`.
    ///
    /// # Errors
    /// [`Error::TokenRange`] for an id outside the vocabulary.
    pub fn token_tensor(&self, ids: &[i32]) -> Result<Tensor<1, Int>> {
        self.check_tokens(ids)?;
        Ok(self.int_tensor(ids))
    }

    /// Checks that all ids are within the vocabulary.
    pub(crate) fn check_tokens(&self, ids: &[i32]) -> Result<()> {
        self.check_ids(ids, |id| id < 0)
    }

    fn check_ids(&self, ids: &[i32], outside: impl Fn(i32) -> bool) -> Result<()> {
        let vocab_size = self.config.vocab_size;
        let beyond = |id: i32| usize::try_from(id).is_ok_and(|id| id >= vocab_size);
        match ids.iter().position(|&id| outside(id) || beyond(id)) {
            Some(position) => Err(Error::TokenRange {
                id: i64::from(ids[position]),
                position,
                vocab_size,
            }),
            None => Ok(()),
        }
    }

    /// Uploads targets to the model's device → `[targets.len()]`; negative targets do not count.
    ///
    /// # Errors
    /// [`Error::TokenRange`] for an id outside the vocabulary.
    #[doc(hidden)]
    pub fn target_tensor(&self, targets: &[i32]) -> Result<Tensor<1, Int>> {
        self.check_targets(targets)?;
        Ok(self.int_tensor(targets))
    }

    /// Checks that all targets are within the vocabulary; negative ones do not count.
    pub(crate) fn check_targets(&self, targets: &[i32]) -> Result<()> {
        self.check_ids(targets, |_| false)
    }

    /// Uploads the starts of documents to the model's device → `[starts.len()]`, for [`Span::document_starts`].
    #[doc(hidden)]
    pub fn starts_tensor(&self, starts: Option<&[i32]>) -> Option<Tensor<1, Int>> {
        starts.map(|starts| self.int_tensor(starts))
    }

    /// Uploads these integers to the model's device → `[values.len()]`.
    pub(crate) fn int_tensor(&self, values: &[i32]) -> Tensor<1, Int> {
        Tensor::from_data(
            TensorData::new(values.to_vec(), [values.len()]),
            (&self.device, DType::I32),
        )
    }

    /// Checks that a sequence fits into the model's context.
    ///
    /// # Errors
    /// [`Error::ContextExceeded`].
    #[doc(hidden)]
    pub fn check_span(&self, span: Span<'_>) -> Result<()> {
        let (found, max) = (
            span.offset + span.seq_len,
            self.config.max_position_embeddings,
        );
        if found > max {
            Err(Error::ContextExceeded { found, max })
        } else {
            Ok(())
        }
    }

    /// The token (and position) vectors. `ids [B·T]` → `[B·T, C]`.
    #[doc(hidden)]
    pub fn embed(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Tensor<2> {
        let found = self
            .body
            .lookups(ids, span)
            .into_iter()
            .map(|Lookup { table, rows, .. }| table.rows(rows));
        let rows = found
            .reduce(ops::residual_add)
            .expect("a model has a table of tokens");
        self.body.embedded(rows)
    }

    /// Adds what `gradient [B·T, C]`, the gradient of [`Model::embed`]'s result, contributes to the sums of the tables that a tracked model
    /// trains. It works in place: the head's backward pass has already begun the sum of a tied table, and another buffer of that size would
    /// be the largest of a step.
    pub(crate) fn embed_backward(
        &self,
        ids: Tensor<1, Int>,
        span: Span<'_>,
        gradient: &Tensor<2>,
        sums: &mut BTreeMap<String, Tensor<1>>,
    ) {
        let gradient = self.body.embedded(gradient.clone());
        for Lookup { name, table, rows } in self.body.lookups(ids, span) {
            let ids = rows.inner();
            for TrackedRows { first, end, weight } in table.tracked_rows() {
                let (name, shape) = (format!("{name}{end}"), weight.val().dims());
                let begun = sums.remove(&name).map(|sum| sum.reshape(shape));
                let sum = begun.unwrap_or_else(|| Tensor::zeros(shape, (&self.device, DType::F32)));
                let own = match first {
                    0 => ids.clone(),
                    _ => ids.clone() - first as i64,
                };
                let sum = ops::embedding_backward(sum, gradient.clone(), own);
                sums.insert(name, sum.reshape([shape[0] * shape[1]]));
            }
        }
    }

    /// Runs one transformer block. `x [B·T, C]` → `[B·T, C]`. With `cache`, keys and values of earlier tokens are read and the new ones are
    /// added.
    #[doc(hidden)]
    pub fn block(
        &self,
        layer: usize,
        x: Tensor<2>,
        span: Span<'_>,
        cache: Option<&mut KvCache>,
    ) -> Tensor<2> {
        self.body
            .block(layer)
            .run(
                Stream::of(x),
                &self.ropes,
                span,
                cache.map(|cache| cache.layer(layer)),
            )
            .sum()
    }

    /// Runs these blocks, one after another. `x [B·T, C]` → `[B·T, C]`.
    #[doc(hidden)]
    pub fn blocks(&self, layers: Range<usize>, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        let block = |stream, layer| self.body.block(layer).run(stream, &self.ropes, span, None);
        layers.fold(Stream::of(x), block).sum()
    }

    /// Applies the final norm and the head. `x [N, C]` → `logits [N, V]`.
    #[doc(hidden)]
    pub fn head(&self, x: Tensor<2>) -> Tensor<2> {
        let (x, weight) = self.body.before_head(x);
        let logits = weight.linear(x);
        match self.body.logit_cap() {
            Some(cap) => ops::capped(logits, cap),
            None => logits,
        }
    }

    /// The sum of the token losses in nats, shape `[1]`, with at most `rows` rows of logits at once. `x [N, C]`, `targets [N]`.
    #[doc(hidden)]
    pub fn head_loss(&self, x: Tensor<2>, targets: Tensor<1, Int>, rows: usize) -> Tensor<1> {
        let (x, weight) = self.body.before_head(x);
        weight.head_loss(x, targets, rows, self.body.logit_cap())
    }

    /// The sum of [`Self::head_loss`] and the number of targets that are the arg max of all V logits (the lowest id among equals),
    /// shape `[2]`.
    pub(crate) fn head_evaluation(
        &self,
        x: Tensor<2>,
        targets: Tensor<1, Int>,
        rows: usize,
    ) -> Tensor<1> {
        let (x, weight) = self.body.before_head(x);
        weight.head_evaluation(&x, &targets, rows, self.body.logit_cap())
    }

    /// True if texts of these lengths have the same rotary positions.
    pub(crate) fn rotates_equally(&self, one: usize, other: usize) -> bool {
        self.ropes.are_equal_for(one, other)
    }

    /// The logits of every position. `ids [B·T]` → `[B·T, V]`.
    pub fn forward(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Tensor<2> {
        self.head(self.blocks(
            0..self.config.num_hidden_layers,
            self.embed(ids, span),
            span,
        ))
    }
}
