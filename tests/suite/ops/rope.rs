use tabtune::ops::rope::{BACKWARD, BackwardParams, KERNEL, Params, WIDE};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// (sequences, len, offset, heads, half)
type Shape = (usize, usize, usize, usize, usize);

fn case((sequences, len, offset, heads, half): Shape, sign: f32) -> Case {
    let kv_heads = heads.div_ceil(3);
    let [pairs, kv_pairs] = [heads, kv_heads].map(|heads| sequences * len * heads * half);
    let table = (offset + len) * half;
    let params = Params {
        pairs,
        kv_pairs,
        heads,
        kv_heads,
        half,
        len,
        offset,
        sign,
    };
    let tables = [2, 3].map(|seed| words(&noise(table, seed)));
    let turned = [(pairs, 1), (kv_pairs, 4)].map(|(pairs, seed)| words(&noise(2 * pairs, seed)));
    Case::new(
        &KERNEL,
        tables,
        turned,
        &params,
        ((pairs + kv_pairs) as u32).div_ceil(64),
    )
}

#[test]
fn rope_rotates_pairs_by_their_position() {
    let shapes: [Shape; 5] = [
        (1, 1, 0, 1, 1),
        (2, 5, 3, 3, 16),
        (1, 257, 0, 2, 5),
        (3, 1, 40, 9, 32),
        (2, 64, 7, 1, 40),
    ];
    check(
        &shapes.map(|s| case(s, 1.0)),
        1e-6,
        ("a * c - b * s", "a * c + b * s"),
    );
    check(
        &shapes.map(|s| case(s, 1.0)),
        1e-6,
        (
            "select(params.kv_heads, params.heads, is_q)",
            "params.heads",
        ),
    );
    let wide = |(sequences, len, offset, heads, half): Shape, sign| {
        let shape = (sequences, len, offset, heads, 4 * half);
        Case {
            kernel: WIDE.any(),
            groups: ((sequences * len * (heads + heads.div_ceil(3)) * half) as u32).div_ceil(64),
            ..case(shape, sign)
        }
    };
    check(
        &shapes.map(|s| wide(s, 1.0)),
        1e-6,
        (
            "let half = params.half / 4u",
            "let half = params.half / 4u + 1u",
        ),
    );
    check(
        &shapes.map(|s| wide(s, -1.0)),
        1e-6,
        ("* params.sign", "* 1.0 + 0.0 * params.sign"),
    );
    check(
        &shapes.map(|s| case(s, -1.0)),
        1e-6,
        ("* params.sign", "* 1.0 + 0.0 * params.sign"),
    );
}

#[test]
fn rope_backward_adds_heads_that_share_and_turns_back() {
    // (sequences, len, offset, heads, heads of keys, half)
    let case = |(sequences, len, offset, heads, kv_heads, half): (
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    )| {
        let rows = sequences * len;
        let params = BackwardParams {
            rows,
            heads,
            kv_heads,
            half4: half / 4,
            len,
            offset,
        };
        let tables = [2, 3].map(|seed| words(&noise((offset + len) * half, seed)));
        let [cosines, sines] = tables;
        let [dq, dk, dv] = [4, 5, 6].map(|seed| words(&noise(rows * heads * 2 * half, seed)));
        let dy = poisoned(rows * (heads + 2 * kv_heads) * 2 * half);
        let threads = rows * (heads + 3 * kv_heads) * half / 4;
        Case::new(
            &BACKWARD,
            [cosines, sines, dq, dk, dv],
            [dy],
            &params,
            (threads as u32).div_ceil(64),
        )
    };
    let cases = [
        (1, 1, 0, 1, 1, 4),
        (2, 5, 3, 6, 2, 16),
        (1, 65, 0, 3, 3, 8),
        (3, 7, 40, 9, 3, 32),
    ]
    .map(case);
    let bound = 1e-6;
    check(&cases, bound, ("a * c + b * s", "a * c - b * s"));
    check(
        &cases,
        bound,
        ("a += dk[first + other", "a += dk[first + 0u * other"),
    );
    check(
        &cases,
        bound,
        ("sum += dv[first + other", "sum += dv[first + 0u * other"),
    );
    check(
        &cases,
        bound,
        (
            "select(params.kv_heads, params.heads, is_q)",
            "params.heads",
        ),
    );
}
