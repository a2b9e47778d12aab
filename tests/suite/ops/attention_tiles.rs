//! Attention by tiles: its kernels against their twins at the tiles' edges, and against float64 at 2048 tokens.

use tabtune::ops::attention::kernels;
use tabtune::ops::attention::params::Params;
use tabtune_tests::as_a_gpu;
use tabtune_tests::kernels::{Case, check, floats, relative_l2};

use super::attention::{
    BOUND, backward_key_value, backward_query, forward, key_value_after, narrow, query_after,
    query_tiles, shapes,
};

/// Bound of gradients over up to 307 keys, for their largest error, not that of their norm.
pub(super) const GRADIENTS: f64 = 5e-5;

fn forward_tile(p: Params) -> Case {
    by_tiles(p, forward(p))
}

/// Makes the same forward pass with the kernel by tiles.
pub(super) fn by_tiles(p: Params, case: Case) -> Case {
    let kernel = narrow(&p, [&kernels::FORWARD_TILE, &kernels::FORWARD_TILE_WIDE]).any();
    Case {
        kernel,
        groups: query_tiles(&p),
        ..case
    }
}

/// Returns the shapes of the tiles' edges, with heads of 20, 64, 80 and 128. A single key always has weight 1: its gradient is 0, and only
/// rounding would be compared.
fn tiled(wide: bool) -> Vec<Params> {
    let edges = [
        (1, 9, 3, 31, 0, 5),
        (2, 3, 1, 32, 0, 16),
        (1, 2, 2, 33, 31, 20),
        (1, 3, 1, 300, 0, 16),
        (1, 2, 1, 300, 7, 32),
    ];
    let edge = |documents| {
        move |(batch, heads, kv_heads, len, offset, width4)| {
            let scale = 1.0 / ((width4 * 4) as f32).sqrt();
            Params {
                batch,
                heads,
                kv_heads,
                len,
                offset,
                width4,
                scale,
                cap: 0.0,
                documents,
            }
        }
    };
    let edges = edges
        .into_iter()
        .map(edge(false))
        .chain(edges.into_iter().map(edge(true)));
    shapes()
        .into_iter()
        .chain(edges)
        .filter(|p| (p.width4 > 16) == wide && p.offset + p.len > 1)
        .collect()
}

#[test]
fn attention_tiles_agree_with_the_definition() {
    let check_all = |case: &dyn Fn(Params) -> Case, bound, flip| {
        for wide in [false, true] {
            check(
                &tiled(wide).into_iter().map(case).collect::<Vec<_>>(),
                bound,
                flip,
            );
        }
    };
    check_all(&forward_tile, BOUND, ("a0 *= old.x;", ""));
    check_all(
        &backward_query,
        GRADIENTS,
        ("(g3 - partial[lane])", "(g3 + partial[lane])"),
    );
    check_all(
        &|p| backward_key_value(p, false),
        GRADIENTS,
        ("(g3 - vec4<f32>(delta.w))", "(g3 + vec4<f32>(delta.w))"),
    );
    // Each kernel's treatment of documents, and of the rows past the last one, is tested with the shorter shapes.
    let check_short = |case: &dyn Fn(Params) -> Case, flip| {
        for wide in [false, true] {
            check(
                &tiled(wide)
                    .into_iter()
                    .filter(|p| p.documents && p.len < 100)
                    .map(case)
                    .collect::<Vec<_>>(),
                GRADIENTS,
                flip,
            );
        }
    };
    check_short(&forward_tile, ("(key2 >= first)", "(key2 >= vec4<u32>())"));
    check_short(
        &backward_query,
        ("(key2 >= first)", "(key2 >= vec4<u32>())"),
    );
    check_short(
        &|p| backward_key_value(p, false),
        ("(vec4<u32>(first.z) <= j)", "(vec4<u32>() <= j)"),
    );
    check_short(
        &|p| backward_key_value(p, false),
        ("vec4<bool>(t.y < len)", "vec4<bool>(true)"),
    );
}

/// A larger shape than in the tests of kernels: 2048 tokens, with and without documents, against the twins in float64.
#[test]
fn attention_of_2048_tokens_by_tiles_is_true_to_float64() {
    let Some(device) = as_a_gpu() else { return };
    let p = Params {
        batch: 1,
        heads: 1,
        kv_heads: 1,
        len: 2048,
        offset: 0,
        width4: 16,
        scale: 0.125,
        cap: 0.0,
        documents: true,
    };
    let off = |case: &Case, twin: &[Vec<u32>]| {
        let wide = |words: &[u32]| floats(words).into_iter().map(f64::from).collect::<Vec<_>>();
        let found = case.device(case.kernel, &device.inner());
        found
            .iter()
            .zip(twin)
            .map(|(found, truth)| relative_l2(&floats(found), &wide(truth)))
            .fold(0.0, f64::max)
    };
    for documents in [false, true] {
        let p = Params { documents, ..p };
        let forward = forward_tile(p);
        let made = forward.twin();
        let query = query_after(p, made.clone());
        let written = query.twin();
        let key_value = key_value_after(p, written.clone(), false);
        let found = [
            off(&forward, &made),
            off(&query, &written),
            off(&key_value, &key_value.twin()),
        ];
        println!("documents {documents}: {found:?}");
        assert!(
            found[0] <= 2e-6 && found[1..].iter().all(|off| *off <= 1e-5),
            "{found:?}"
        );
    }
}
