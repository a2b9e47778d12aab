//! Number of values that a block keeps for its backward pass.

use crate::config::{Activation, DeltaNet, Layer, Mixer, NormKind, QkNorm, Slot};
use crate::ops::delta;

/// Number of values that a block keeps for its backward pass.
#[derive(Debug)]
pub struct SavedActivations {
    /// Values per token that are always kept: the inputs of norms and activations; for attention q, k, v, its output and two numbers per head;
    /// for a convolution its three parts and its output.
    always: usize,
    /// Inputs of the linear layers in their order, with their width: layers that are listed together have the same input. The input of
    /// attention's output is not listed, because attention already keeps it.
    inputs: Vec<(&'static [Slot], usize)>,
    /// Values of the state of a delta rule, which is kept for each chunk.
    state: usize,
}

/// Values per token of a delta rule: the rows before and after its convolution and after SiLU, what its gates are made of, δ, the inputs of its norm,
/// and the two factors of its output.
fn of_delta(delta: &DeltaNet) -> usize {
    let [_, values] = delta.widths();
    3 * delta.channels() + 3 * delta.value_heads + 4 * values
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
            Mixer::DeltaNet(delta) => (
                of_delta(delta),
                &[
                    Slot::DeltaInput,
                    Slot::DeltaGate,
                    Slot::DeltaDecay,
                    Slot::DeltaWeight,
                ],
            ),
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
                let gate = if attention.gate { q } else { 0 };
                let kept = 2 * (q + kv) + 2 * attention.heads + of_heads + gate;
                (kept, projections)
            }
        };
        // A product of its own in front of the output matrix.
        let gated: Option<(&[Slot], usize)> = match &layer.mixer {
            Mixer::DeltaNet(delta) => Some((&[Slot::DeltaOutput], delta.widths()[1])),
            Mixer::Attention(attention) if attention.gate => {
                Some((&[Slot::Output], attention.widths()[0]))
            }
            _ => None,
        };
        let state = match &layer.mixer {
            Mixer::DeltaNet(delta) => delta.value_heads * delta.key_dim * delta.value_dim,
            _ => 0,
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
                Some((projections, width)),
                gated,
                Some((first, width)),
                Some((&[Slot::Down], mlp.width)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            state,
        }
    }

    /// Returns the number of values that are kept of a sequence of `len` tokens if only the layers that `needs` selects need their inputs.
    pub fn where_needed(&self, len: usize, needs: &impl Fn(Slot) -> bool) -> usize {
        let needed = self
            .inputs
            .iter()
            .filter(|(layers, _)| layers.iter().any(|&layer| needs(layer)));
        let per_token = self.always + needed.map(|(_, width)| width).sum::<usize>();
        let states = (len.div_ceil(delta::CHUNK) + 1) * self.state;
        len * per_token + states
    }
}
