use tabtune::kernels::attention::kernels::{self, PadParams, Params};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// f32 dot products, exp and sums over up to 131 keys against f64.
const BOUND: f64 = 2e-5;

fn shapes() -> Vec<Params> {
    let shape = |(batch, heads, kv_heads, len, offset, width4)| {
        let scale = 1.0 / ((width4 * 4) as f32).sqrt();
        Params { batch, heads, kv_heads, len, offset, width4, scale }
    };
    [(1, 1, 1, 1, 0, 1), (2, 4, 4, 5, 0, 8), (1, 9, 3, 67, 0, 16), (2, 2, 1, 31, 100, 20), (3, 4, 2, 1, 13, 32)].map(shape).into()
}

fn sizes(p: &Params) -> (usize, usize, usize) {
    let width = p.width4 as usize * 4;
    let queries = (p.batch * p.len * p.heads) as usize;
    let keys = (p.batch * (p.offset + p.len) * p.kv_heads) as usize;
    (queries, queries * width, keys * width)
}

fn rows(n: usize, seed: u32) -> Vec<u32> {
    words(&noise(n, seed).iter().map(|v| 2.0 * v).collect::<Vec<_>>())
}

fn forward(p: Params) -> Case {
    let (queries, q, k) = sizes(&p);
    let buffers = vec![rows(q, 1), rows(k, 2), rows(k, 3), poisoned(q), poisoned(2 * queries)];
    Case { kernel: &kernels::FORWARD, buffers, params: p.words(), groups: (queries as u32).div_ceil(64) }
}

fn backward_query(p: Params) -> Case {
    let (queries, q, k) = sizes(&p);
    let mut made = forward(p).twin();
    let (stats, y) = (made.remove(1), made.remove(0));
    let buffers = vec![rows(q, 1), rows(k, 2), rows(k, 3), y, rows(q, 4), stats, poisoned(q)];
    Case { kernel: &kernels::BACKWARD_QUERY, buffers, params: p.words(), groups: (queries as u32).div_ceil(64) }
}

fn backward_key_value(p: Params) -> Case {
    let (_, q, k) = sizes(&p);
    let stats = backward_query(p).twin().remove(0);
    let buffers = vec![rows(q, 1), rows(k, 2), rows(k, 3), rows(q, 4), stats, poisoned(k), poisoned(k)];
    let keys = (p.batch * (p.offset + p.len) * p.kv_heads).div_ceil(64);
    Case { kernel: &kernels::BACKWARD_KEY_VALUE, buffers, params: p.words(), groups: keys }
}

fn all(case: impl Fn(Params) -> Case) -> Vec<Case> {
    shapes().into_iter().map(case).collect()
}

/// A single key has weight 1 whatever it is: its gradient is 0, and rounding would be compared with rounding.
fn with_past(case: impl Fn(Params) -> Case) -> Vec<Case> {
    shapes().into_iter().filter(|p| p.offset + p.len > 1).map(case).collect()
}

#[test]
fn attention_forward_averages_the_values_of_the_past() {
    check(&all(forward), BOUND, ("sums[c] * old", "sums[c]"));
}

#[test]
fn attention_backward_query_is_its_gradient() {
    check(&with_past(backward_query), BOUND, ("- vec4<f32>(delta)", "+ vec4<f32>(delta)"));
}

#[test]
fn attention_backward_key_value_is_its_gradient() {
    check(&with_past(backward_key_value), BOUND, ("(d - delta)", "(d + delta)"));
}

#[test]
fn head_pad_widens_and_cuts() {
    let case = |(n, from, to): (usize, usize, usize)| Case {
        kernel: &kernels::HEAD_PAD,
        buffers: vec![words(&noise(n * from, 1)), poisoned(n * to)],
        params: PadParams { n: n as u32, from_width: from as u32, to_width: to as u32 }.words(),
        groups: ((n * to) as u32).div_ceil(64),
    };
    check(&[(1, 2, 4), (257, 6, 8), (4099, 8, 6), (3, 4, 4)].map(case), 0.0, ("column < params", "column + 1u < params"));
}
