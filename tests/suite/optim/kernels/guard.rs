use super::gate::open;
use tabtune::optim::guard::{read, write};
use tabtune_tests::kernels::{Case, check, noise, packed, place, poisoned, words};

const SIZES: [usize; 6] = [1, 2, 255, 256, 257, 4099];

fn reads(n: usize, is_packed: bool) -> Case {
    let mut values = noise(n, 1);
    // Beyond the bound of a gradient, which is 1e15.
    values[n / 2] = -3e38;
    let x = match is_packed {
        true => packed(&values).0,
        false => words(&values),
    };
    let params = read::Params {
        n,
        packed: is_packed,
    };
    Case::new(
        &read::KERNEL,
        [x, open(0.5)],
        [poisoned(n)],
        &params,
        read::KERNEL.groups(n),
    )
}

pub(super) fn writes(n: usize, rounding: u32) -> Case {
    let params = write::Params {
        n,
        noise: place(rounding),
    };
    let old = if rounding == 0 {
        words(&noise(n, 3))
    } else {
        packed(&noise(n, 3)).0
    };
    Case::new(
        &write::KERNEL,
        [words(&noise(n, 2)), open(0.5)],
        [old],
        &params,
        n.div_ceil(512) as u32,
    )
}

#[test]
fn guard_read_equals_its_twin() {
    let gradients = SIZES.map(|n| reads(n, false));
    check(&gradients, 0.0, ("* gate.factor", "/ gate.factor"));
    let unbounded = "bounded(bitcast<f32>(x[i]))";
    check(&gradients, 0.0, (unbounded, "bitcast<f32>(x[i])"));
    let values = SIZES.map(|n| reads(n, true));
    check(&values, 0.0, ("(i & 1u) == 1u", "(i & 1u) == 0u"));
}

#[test]
fn guard_write_equals_its_twin() {
    let words = SIZES.map(|n| writes(n, 0));
    check(&words, 0.0, ("p[i + 1u] = x1", "p[i + 1u] = x0"));
    let rounded: Vec<Case> = SIZES
        .into_iter()
        .flat_map(|n| [1, 2].map(|rounding| writes(n, rounding)))
        .collect();
    check(&rounded, 0.0, ("words.z", "words.x"));
}
