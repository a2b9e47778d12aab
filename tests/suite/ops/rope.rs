use tabtune::ops::rope::{KERNEL, Params, WIDE};
use tabtune_tests::kernels::{Case, check, noise, words};

/// (sequences, len, offset, heads, half)
type Shape = (usize, usize, usize, usize, usize);

fn case((sequences, len, offset, heads, half): Shape, sign: f32) -> Case {
    let pairs = sequences * len * heads * half;
    let table = (offset + len) * half;
    let params = Params { pairs: pairs as u32, heads: heads as u32, half: half as u32, len: len as u32, offset: offset as u32, sign };
    let tables = [2, 3].map(|seed| words(&noise(table, seed)));
    Case::new(&KERNEL, tables, [words(&noise(2 * pairs, 1))], &params, (pairs as u32).div_ceil(64))
}

#[test]
fn rope_rotates_pairs_by_their_position() {
    let shapes: [Shape; 5] = [(1, 1, 0, 1, 1), (2, 5, 3, 3, 16), (1, 257, 0, 2, 5), (3, 1, 40, 9, 32), (2, 64, 7, 1, 40)];
    check(&shapes.map(|s| case(s, 1.0)), 1e-6, ("a * c - b * s", "a * c + b * s"));
    let wide = |(sequences, len, offset, heads, half): Shape, sign| {
        let shape = (sequences, len, offset, heads, 4 * half);
        Case { kernel: WIDE.any(), groups: ((sequences * len * heads * half) as u32).div_ceil(64), ..case(shape, sign) }
    };
    check(&shapes.map(|s| wide(s, 1.0)), 1e-6, ("2u * quarters", "2u * params.half"));
    check(&shapes.map(|s| wide(s, -1.0)), 1e-6, ("* params.sign", "* 1.0 + 0.0 * params.sign"));
    check(&shapes.map(|s| case(s, -1.0)), 1e-6, ("* params.sign", "* 1.0 + 0.0 * params.sign"));
}
