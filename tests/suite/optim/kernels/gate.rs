use tabtune::gpu::Access;
use tabtune::optim::gate::{self, CLOSED, HEAD, NONE, RAISED, TAKEN};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

use super::{adafactor, adamw, apollo, guard, sgd};

/// sqrt and a quotient, within 3 and 2.5 ulp.
const BOUND: f64 = 1e-6;

/// Returns a gate that lets gradients pass, multiplied by a factor.
pub(crate) fn open(factor: f32) -> Vec<u32> {
    vec![0, factor.to_bits()]
}

/// Makes the same launch with a closed gate.
fn closed(mut case: Case) -> Case {
    let at = case
        .kernel
        .bindings
        .iter()
        .position(|binding| binding.name == "gate")
        .expect("an update has a gate");
    case.buffers[at][0] = 1;
    case
}

#[test]
fn closed_gate_leaves_parameters_and_states() {
    let cases = [
        (adamw::case(257), "gate.closed != 0u"),
        (adamw::wide_case(1028), "gate.closed != 0u"),
        (adamw::packed_case(257, 2), "gate.closed != 0u"),
        (adamw::two_case(260, 1028), "gate.closed != 0u"),
        (
            adamw::packed_two_case([257, 255], [2, 2]),
            "gate.closed != 0u",
        ),
        (adafactor::moments((33, 65)), "gate.closed != 0u"),
        (adafactor::apply((33, 65), 2, false), "gate.closed != 0u"),
        (adafactor::vector_moments(4099), "gate.closed == 0u"),
        (adafactor::vector_apply(4099, 2), "gate.closed != 0u"),
        (apollo::project((5, 3, 3, true), false), "gate.closed == 0u"),
        (apollo::moments((17, 10, 3)), "gate.closed == 0u"),
        (apollo::combine(257, false, 1.0), "gate.closed == 0u"),
        (apollo::apply((257, 3), true, false, 2), "gate.closed != 0u"),
        (guard::writes(257, 2), "gate.closed != 0u"),
        (sgd::plain(257, 2), "gate.closed != 0u"),
        (sgd::momentum(257, 2, true), "gate.closed != 0u"),
    ];
    for (case, condition) in cases {
        let case = closed(case);
        let written = case
            .buffers
            .iter()
            .zip(case.kernel.bindings)
            .filter(|(_, binding)| binding.access != Access::Read);
        for ((before, binding), after) in written.zip(case.twin()) {
            assert!(
                binding.access == Access::Write || *before == after,
                "{}: {} has changed",
                case.kernel.name,
                binding.name
            );
        }
        let inverted = if condition.contains("!=") {
            "gate.closed == 0u"
        } else {
            "gate.closed != 0u"
        };
        // Sums of squares in f32 trees.
        check(&[case], 5e-6, (condition, inverted));
    }
}

/// Makes the losses and the sum of a step with this many partials, one of which may not be finite, in the second of three rows.
fn judged(
    losses: &[f32],
    sum: f32,
    partials: usize,
    bad: Option<usize>,
    before: u32,
    max_norm: f32,
) -> Case {
    let mut blocks = noise(partials, 1);
    if let Some(bad) = bad {
        blocks[bad] = f32::INFINITY;
        blocks[partials - 1] = f32::NAN;
    }
    let width = HEAD + losses.len();
    let params = gate::Params {
        losses: losses.len(),
        partials,
        row: width,
        max_norm,
    };
    let read = [words(losses), words(&[sum]), words(&blocks)];
    Case::new(
        &gate::KERNEL,
        read,
        [vec![before, 0], poisoned(3 * width)],
        &params,
        1,
    )
}

#[test]
fn step_gate_equals_its_twin() {
    let cases = [
        judged(&[3.5], 9.0, 1, None, 0, 0.0),
        judged(&[3.5, 2.5], 9.0, 700, None, 0, 1.5),
        judged(&[3.5; 300], 9.0, 256, None, 0, 4.0),
        judged(&[3.5, 2.5], 9.0, 700, None, 1, 1.5),
    ];
    check(&cases, BOUND, ("params.max_norm / norm", "params.max_norm"));
    // The words of each status are exact; a flag with NaN bits cannot be compared as a value.
    let words_of = |case: &Case| {
        let width = HEAD + case.params[0] as usize;
        let [gate, rows] = case.twin().try_into().unwrap();
        let found = tabtune_tests::gpu().map(|gpu| case.device(case.kernel, &gpu.inner()));
        if let Some(found) = found {
            assert_eq!(
                (found[0][0], &found[1][width..2 * width]),
                (gate[0], &rows[width..2 * width])
            );
        }
        (gate[0], rows[width], rows[width + 1])
    };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let statuses = [
        (judged(&[1.0], 4.0, 700, None, 0, 1.0), (0, TAKEN, NONE)),
        (
            judged(&[1.0, nan], 4.0, 700, None, 0, 1.0),
            (1, RAISED, NONE),
        ),
        (
            judged(&[1.0], inf, 700, Some(511), 0, 1.0),
            (1, RAISED, 511),
        ),
        (judged(&[1.0], nan, 700, Some(0), 0, 1.0), (1, RAISED, 0)),
        (judged(&[1.0], inf, 700, None, 0, 1.0), (1, RAISED, NONE)),
        (judged(&[1.0], 4.0, 700, None, 1, 1.0), (1, CLOSED, NONE)),
    ];
    for (case, expected) in statuses {
        assert_eq!(words_of(&case), expected);
    }
}
