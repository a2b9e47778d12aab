//! The part of a block that mixes the tokens of a text in a block: attention, a short convolution or a delta rule.

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::attention::Attention;
use super::builder::ParameterBuilder;
use super::cache::LayerCache;
use super::delta_net::DeltaNet;
use super::layers::{Linear, Taps};
use super::named::Named;
use super::part::Role;
use super::rope::Ropes;
use crate::config::{self, Slot};
use crate::error::Result;
use crate::ops::{self, ConvShape};

/// Gated short convolution of a block.
#[derive(Module, Debug)]
pub struct ShortConv {
    input: Named<Linear>,
    taps: Named<Taps>,
    output: Named<Linear>,
    #[module(skip)]
    kernel: usize,
}

impl ShortConv {
    fn new(width: usize, kernel: usize, builder: &mut ParameterBuilder<'_>) -> Result<Self> {
        let [all, one] = [[3 * width, width], [width, width]];
        Ok(Self {
            input: builder.linear(Slot::ConvolutionInput, all, false, Role::Inner)?,
            taps: builder.taps(Slot::Convolution, [width, 1, kernel])?,
            output: builder.linear(Slot::ConvolutionOutput, one, false, Role::Residual)?,
            kernel,
        })
    }

    /// Computes what the output matrix reads from the rows of `x [B·T, C]`. With `cache`, the last rows of earlier tokens are read.
    fn mixed(&self, x: Tensor<2>, span: Span<'_>, cache: Option<LayerCache<'_>>) -> Tensor<2> {
        let (rows, kernel) = (self.input.forward_at(x, span), self.kernel);
        let taps = self.taps.weight.beside(&rows);
        let channels = taps.dims()[0];
        let taps = taps.reshape([channels * kernel]);
        let shape = |seq_len| ConvShape {
            seq_len,
            taps: kernel,
        };
        let Some(mut cache) = cache else {
            let starts = span.document_starts.cloned();
            return ops::short_conv(rows, taps, starts, shape(span.seq_len));
        };
        let (rows, earlier) = cache.recent(rows, kernel - 1, span);
        let len = earlier + span.seq_len;
        let mixed = ops::short_conv(rows, taps, None, shape(len));
        let mixed = mixed.reshape([span.batch_size, len, channels]);
        let new = mixed.narrow(1, earlier, span.seq_len);
        new.reshape([span.batch_size * span.seq_len, channels])
    }
}

/// The part of a block that mixes the tokens of a text.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block: few, and read in every step"
)]
pub enum Mixer {
    /// Attention.
    Attention(Attention),
    /// A short convolution.
    ShortConv(ShortConv),
    /// A gated delta rule.
    DeltaNet(DeltaNet),
}

impl Mixer {
    /// Requests the parameters of the mixer of `layer`, which reads and writes rows of `width` values.
    pub fn new(
        layer: &config::Layer,
        width: usize,
        builder: &mut ParameterBuilder<'_>,
    ) -> Result<Self> {
        Ok(match &layer.mixer {
            config::Mixer::Attention(attention) => {
                Self::Attention(Attention::new(layer, attention, width, builder)?)
            }
            config::Mixer::ShortConv { taps } => {
                Self::ShortConv(ShortConv::new(width, *taps, builder)?)
            }
            config::Mixer::DeltaNet(delta) => {
                Self::DeltaNet(DeltaNet::new(*delta, layer.norm, width, builder)?)
            }
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        match self {
            Self::Attention(attention) => attention.detach(),
            Self::ShortConv(ShortConv { input, output, .. }) => [input, output]
                .into_iter()
                .for_each(|matrix| matrix.detach()),
            Self::DeltaNet(delta) => delta.detach(),
        }
    }

    /// Returns the layer that writes to the residual stream.
    pub fn output(&self) -> &Linear {
        match self {
            Self::Attention(attention) => attention.output(),
            Self::ShortConv(conv) => &conv.output,
            Self::DeltaNet(delta) => delta.output(),
        }
    }

    /// Computes what [`Self::output`] reads from the rows of `x [B·T, C]`. With `cache`, earlier tokens are read, and the new ones are added.
    pub fn mixed(
        &self,
        x: Tensor<2>,
        ropes: &Ropes,
        span: Span<'_>,
        cache: Option<LayerCache<'_>>,
    ) -> Tensor<2> {
        match self {
            Self::Attention(attention) => attention.attended(x, ropes, span, cache),
            Self::ShortConv(conv) => conv.mixed(x, span, cache),
            Self::DeltaNet(delta) => delta.mixed(x, span, cache),
        }
    }
}
