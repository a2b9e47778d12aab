use tabtune::ops::rope::{KERNEL, Params, WIDE};
use tabtune_tests::kernels::{Case, check, noise, words};

/// (sequences, len, offset, heads, half)
type Shape = (usize, usize, usize, usize, usize);

fn case((sequences, len, offset, heads, half): Shape, sign: f32) -> Case {
    let kv_heads = heads.div_ceil(3);
    let [pairs, kv_pairs] = [heads, kv_heads].map(|heads| sequences * len * heads * half);
    let table = (offset + len) * half;
    let params = Params {
        pairs: pairs as u32,
        kv_pairs: kv_pairs as u32,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        half: half as u32,
        len: len as u32,
        offset: offset as u32,
        sign,
    };
    let tables = [2, 3].map(|seed| words(&noise(table, seed)));
    let turned = [(pairs, 1), (kv_pairs, 4)].map(|(pairs, seed)| words(&noise(2 * pairs, seed)));
    Case::new(&KERNEL, tables, turned, &params, ((pairs + kv_pairs) as u32).div_ceil(64))
}

#[test]
fn rope_rotates_pairs_by_their_position() {
    let shapes: [Shape; 5] = [(1, 1, 0, 1, 1), (2, 5, 3, 3, 16), (1, 257, 0, 2, 5), (3, 1, 40, 9, 32), (2, 64, 7, 1, 40)];
    check(&shapes.map(|s| case(s, 1.0)), 1e-6, ("a * c - b * s", "a * c + b * s"));
    check(&shapes.map(|s| case(s, 1.0)), 1e-6, ("select(params.kv_heads, params.heads, is_q)", "params.heads"));
    let wide = |(sequences, len, offset, heads, half): Shape, sign| {
        let shape = (sequences, len, offset, heads, 4 * half);
        Case {
            kernel: WIDE.any(),
            groups: ((sequences * len * (heads + heads.div_ceil(3)) * half) as u32).div_ceil(64),
            ..case(shape, sign)
        }
    };
    check(&shapes.map(|s| wide(s, 1.0)), 1e-6, ("let half = params.half / 4u", "let half = params.half / 4u + 1u"));
    check(&shapes.map(|s| wide(s, -1.0)), 1e-6, ("* params.sign", "* 1.0 + 0.0 * params.sign"));
    check(&shapes.map(|s| case(s, -1.0)), 1e-6, ("* params.sign", "* 1.0 + 0.0 * params.sign"));
}
