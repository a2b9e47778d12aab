//! Properties that make a kernel slow on a GPU, and those that let its loops run unbounded, read from naga's form of the text, without a GPU.
//! The lists are the current findings; a kernel that is improved leaves them, and no other may be added.

mod loops;
mod products;
mod reader;
mod workgroups;

use std::collections::BTreeSet;

use tabtune::catalogue::catalogue;
use tabtune_registers::{runs_on_gpus, stem};

use products::{FOR_A_READ, FOR_A_READ_OF_32};
use reader::parsed;

/// Kernels with function arrays that are indexed by a variable: a compiler that does not unroll the loop keeps them in memory.
const ARRAYS: &[&str] = &[
    "adafactor_apply",
    "adafactor_moments",
    "adafactor_vector_apply",
    "apollo_combine",
    "apollo_project",
];

/// Kernels with loops of products that read too often from workgroup memory, or have too many instructions other than fused multiply-adds.
const PRODUCTS: &[&str] = &["apollo_project"];

/// Returns the stems in which `finds` finds something, of all kernels or of those that GPUs run.
fn stems(all: bool, finds: impl Fn(&str, &reader::Parsed) -> bool) -> Vec<&'static str> {
    let found: BTreeSet<&str> = catalogue()
        .filter(|kernel| all || runs_on_gpus(kernel))
        .filter(|kernel| finds(stem(kernel), &parsed(&kernel.assembled())))
        .map(stem)
        .collect();
    found.into_iter().collect()
}

#[test]
fn lint_of_kernels_for_gpus_finds_arrays_in_memory() {
    assert_eq!(
        stems(false, |_, parsed| products::indexes_an_array(parsed)),
        ARRAYS
    );
}

#[test]
fn lint_of_kernels_for_gpus_finds_dear_products() {
    let for_a_read = |stem: &str| {
        if stem.starts_with("attention_") || stem.ends_with("_small") {
            FOR_A_READ_OF_32
        } else {
            FOR_A_READ
        }
    };
    assert_eq!(
        stems(false, |stem, parsed| !products::dear(
            parsed,
            for_a_read(stem)
        )
        .is_empty()),
        PRODUCTS
    );
}

#[test]
fn lint_of_kernels_for_gpus_finds_no_round_with_three_barriers() {
    assert_eq!(
        stems(false, |_, parsed| products::barriers(parsed) > 2),
        [""; 0]
    );
}

#[test]
fn lint_of_all_kernels_finds_no_loop_that_may_not_end() {
    let may_not_end = |_: &str, parsed: &reader::Parsed| {
        loops::endings(parsed)
            .iter()
            .any(|ending| *ending != loops::Ending::Counts)
    };
    assert_eq!(stems(true, may_not_end), [""; 0]);
}

/// Each planted fault is found, so that the detectors are known to work.
#[test]
fn lint_finds_what_is_planted() {
    let shader = |body: &str| {
        parsed(&format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>; var<workgroup> w: array<vec4<f32>, 64>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32) {{ let n = u32(x[0]); {body} }}"
        ))
    };
    let endings = |body: &str| loops::endings(&shader(body));
    for body in [
        "loop { x[lane] += 1.0; }",
        "for (var i = 0u; i < n; i += 0u) {}",
        "for (var i = 0u; i < n; i++) { i = 0u; }",
    ] {
        assert_eq!(endings(body), [loops::Ending::Unknown], "{body}");
    }
    assert_eq!(
        endings("var r = 0u; while (r < n) { r = u32(x[r]); }"),
        [loops::Ending::Unknown]
    );
    assert_eq!(
        endings("var m = n; for (var i = 0u; i < m; i++) { m += 1u; }"),
        [loops::Ending::Unknown]
    );
    assert_eq!(
        endings("for (var i = 8u; i > 0u; i *= 2u) {}"),
        [loops::Ending::Unknown]
    );
    assert_eq!(
        endings("for (var i = 0u; i < 9u || n > 1u; i++) {}"),
        [loops::Ending::Unknown]
    );
    assert_eq!(
        endings("for (var i = 0u; i < 9u; i += n) {}"),
        [loops::Ending::Parameter]
    );
    assert_eq!(
        endings("for (var i = 0u; i < 9u; i += min(n, 1u)) {}"),
        [loops::Ending::Parameter]
    );
    for body in [
        "for (var i = 0u; i < 9u; i += max(4u * n, 1u)) {}",
        "for (var i = 0u; i < 9u && x[i] > 0.0; i += 2u) {}",
        "for (var i = n; i > 0u; i >>= 1u) {}",
        "var r = 0u; while (r < n) { r++; }",
    ] {
        assert_eq!(endings(body), [loops::Ending::Counts], "{body}");
    }

    assert!(products::indexes_an_array(&shader(
        "var a = array<f32, 4>(); a[lane] = 1.0; x[lane] = a[n];"
    )));
    assert!(!products::indexes_an_array(&shader(
        "var a = array<f32, 4>(); a[1] = 1.0; x[lane] = a[1] + w[lane].x;"
    )));

    let round = "for (var i = 0u; i < n; i++) { let p = w[i]; let q = w[i + 1u]; SUM }";
    let dear = |sum: &str| {
        products::dear(
            &shader(&format!(
                "var s = vec4<f32>(); {} x[lane] = s.x;",
                round.replace("SUM", sum)
            )),
            FOR_A_READ,
        )
    };
    // 4 products for each read.
    let product = products::Round {
        multiply_adds: 8,
        floats: 8,
        reads: 2,
    };
    assert_eq!(dear("s += p * q; s = fma(p, q, s);"), [product]);
    // Products that are added to each other before the sum: 4 multiply-adds and one further addition.
    let added = products::Round {
        multiply_adds: 4,
        floats: 5,
        reads: 2,
    };
    assert_eq!(dear("s.x += dot(p, q);"), [added]);
    assert_eq!(dear(&"s = fma(p, q, s);".repeat(8)), []);

    let barriers = |count: usize| {
        products::barriers(&shader(&format!(
            "for (var i = 0u; i < 4u; i++) {{ {} }}",
            "workgroupBarrier();".repeat(count)
        )))
    };
    assert_eq!([barriers(2), barriers(3)], [2, 3]);
}
