use tabtune::ops::scale::{KERNEL, Params};
use tabtune_tests::kernels::{Case, check, noise};

fn case(n: usize) -> Case {
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
    Case::new(
        &KERNEL,
        [vec![(-0.3f32).to_bits()]],
        [bits(noise(n, 1))],
        &Params { n },
        (n as u32).div_ceil(64),
    )
}

#[test]
fn scale_multiplies_every_element() {
    // The last size needs more workgroups than one dimension of a dispatch has.
    let cases: Vec<Case> = [1, 63, 64, 65, 4099, 65_536 * 64 + 3].map(case).into();
    check(&cases, 0.0, ("f[0] * x[i]", "f[0] + x[i]"));
}
