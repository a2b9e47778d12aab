//! Number of values that a block keeps for its backward pass.

use crate::config::{Activation, Layer, Mixer, NormKind, QkNorm, Slot};

/// Number of values per token that a block keeps for its backward pass.
#[derive(Debug)]
pub struct SavedActivations {
    /// Values that are always kept: the inputs of norms and activations; for attention q, k, v, its output and two numbers per head;
    /// for a convolution its three parts and its output.
    always: usize,
    /// Inputs of the linear layers in their order, with their width: layers that are listed together have the same input. The input of
    /// attention's output is not listed, because attention already keeps it.
    inputs: [(&'static [Slot], usize); 3],
}

impl SavedActivations {
    /// Counts the values of a layer whose rows have `width` values.
    pub fn of(layer: &Layer, width: usize) -> Self {
        let mlp = &layer.mlp;
        // The input of a norm, and its scale or mean and scale.
        let of_norm = |width: usize| match layer.norm.kind {
            NormKind::Rms => width + 1,
            NormKind::Layer => width + 2,
        };
        let (of_mixer, projections): (usize, &[Slot]) = match &layer.mixer {
            Mixer::ShortConv { .. } => (4 * width, &[Slot::ConvolutionInput]),
            Mixer::Attention(attention) => {
                let [q, kv] = attention.widths();
                let of_heads = match attention.qk_norm {
                    QkNorm::None => 0,
                    QkNorm::Head | QkNorm::HeadAfterRope => {
                        (attention.heads + attention.kv_heads) * of_norm(attention.head_dim)
                    }
                    QkNorm::All => of_norm(q) + of_norm(kv),
                };
                let projections: &[Slot] = if attention.fused {
                    &[Slot::QueryKeyValue]
                } else {
                    &[Slot::Query, Slot::Key, Slot::Value]
                };
                let kept = 2 * (q + kv) + 2 * attention.heads + of_heads;
                (kept, projections)
            }
        };
        let (hidden, first): (usize, &[Slot]) = match (mlp.activation, mlp.fused) {
            (Activation::Gelu, _) => (mlp.width, &[Slot::Up]),
            (_, true) => (2 * mlp.width, &[Slot::GateUp]),
            (_, false) => (2 * mlp.width, &[Slot::Gate, Slot::Up]),
        };
        let norms = [layer.attention_norms, layer.mlp_norms]
            .iter()
            .map(|places| usize::from(places.before) + usize::from(places.after))
            .sum::<usize>();
        Self {
            always: norms * of_norm(width) + of_mixer + hidden,
            inputs: [
                (projections, width),
                (first, width),
                (&[Slot::Down], mlp.width),
            ],
        }
    }

    /// Returns the number of values that are kept if only the layers that `needs` selects need their inputs.
    pub fn where_needed(&self, needs: &impl Fn(Slot) -> bool) -> usize {
        let needed = self
            .inputs
            .iter()
            .filter(|(layers, _)| layers.iter().any(|&layer| needs(layer)));
        self.always + needed.map(|(_, width)| width).sum::<usize>()
    }
}
