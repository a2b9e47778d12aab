//! The model's operations in Burn's own ops: the slow truth that our kernels are tested against.

use burn::tensor::{Int, Tensor, activation};

use super::AttentionShape;

/// y = x·Wᵀ. x [N, in], w [out, in] → [N, out].
pub fn linear(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    x.matmul(w.transpose())
}

/// y = x·W. x [N, in], w [in, out] → [N, out].
pub fn conv1d(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    x.matmul(w)
}

/// Rows `ids` of w [V, C] → [N, C].
pub fn embedding(w: Tensor<2>, ids: Tensor<1, Int>) -> Tensor<2> {
    w.select(0, ids)
}

/// x/√(mean(x²) + ε) ⊙ w. x [N, C], w [C].
pub fn rms_norm(x: Tensor<2>, w: Tensor<1>, eps: f64) -> Tensor<2> {
    let mean_square = x.clone().powi_scalar(2).mean_dim(1);
    x / (mean_square + eps).sqrt() * w.unsqueeze()
}

/// (x − mean)/√(var + ε) ⊙ w + b. x [N, C], w, b [C].
pub fn layer_norm(x: Tensor<2>, w: Tensor<1>, b: Tensor<1>, eps: f64) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1);
    let variance = centred.clone().powi_scalar(2).mean_dim(1);
    centred / (variance + eps).sqrt() * w.unsqueeze() + b.unsqueeze()
}

/// Rotates the halves of each head. x [B·T, heads·H], cos and sin [T, H/2].
pub fn rope(x: Tensor<2>, cos: Tensor<2>, sin: Tensor<2>, heads: usize) -> Tensor<2> {
    let [n, width] = x.dims();
    let [seq_len, half] = cos.dims();
    let x = x.reshape([n / seq_len, seq_len, heads, 2 * half]);
    let (cos, sin) = (cos.reshape([1, seq_len, 1, half]), sin.reshape([1, seq_len, 1, half]));
    let (first, second) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let rotated = Tensor::cat(
        vec![first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin],
        3,
    );
    rotated.reshape([n, width])
}

/// softmax(q·kᵀ/√H + causal)·v. q [B·T, heads·H]; k, v [B·S, kv_heads·H], S = offset + T → [B·T, heads·H].
pub fn attention(q: Tensor<2>, k: Tensor<2>, v: Tensor<2>, shape: AttentionShape) -> Tensor<2> {
    let AttentionShape { batch_size, query_len, offset, num_attention_heads, num_key_value_heads, head_dim } = shape;
    let key_len = offset + query_len;
    let group = num_attention_heads / num_key_value_heads;
    let q = q.reshape([batch_size, query_len, num_attention_heads, head_dim]).swap_dims(1, 2);
    let spread = |y: Tensor<2>| {
        y.reshape([batch_size, key_len, num_key_value_heads, 1, head_dim])
            .repeat_dim(3, group)
            .reshape([batch_size, key_len, num_attention_heads, head_dim])
            .swap_dims(1, 2)
    };
    let (k, v) = (spread(k), spread(v));
    let scores = q.matmul(k.swap_dims(2, 3)) / (head_dim as f64).sqrt();
    let device = scores.device();
    let rows = Tensor::<1, Int>::arange(offset as i64..key_len as i64, &device).reshape([query_len, 1]);
    let cols = Tensor::<1, Int>::arange(0..key_len as i64, &device).reshape([1, key_len]);
    let future = cols.repeat_dim(0, query_len).greater(rows.repeat_dim(1, key_len));
    let future = future.reshape([1, 1, query_len, key_len]).expand([batch_size, num_attention_heads, query_len, key_len]);
    let weights = activation::softmax(scores.mask_fill(future, -1e30), 3);
    weights.matmul(v).swap_dims(1, 2).reshape([batch_size * query_len, num_attention_heads * head_dim])
}

/// silu(gate) ⊙ up.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    activation::silu(gate) * up
}

/// x·½(1 + tanh(√(2/π)(x + 0.044715x³))), with the inner argument held where tanh has long saturated.
pub fn gelu(x: Tensor<2>) -> Tensor<2> {
    let inner = (x.clone() + x.clone().powi_scalar(3) * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
    x * (inner.clamp(-15.0, 15.0).tanh() + 1.0) * 0.5
}

/// −log softmax(logits)[target] per row, 0 where the target is negative. logits [N, V], targets [N] → [N].
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = logits.dims();
    let counted = targets.clone().greater_equal_elem(0);
    let rows = targets.clamp_min(0).reshape([n, 1]);
    let losses = activation::log_softmax(logits, 1).gather(1, rows).reshape([n]).neg();
    losses * counted.float()
}
