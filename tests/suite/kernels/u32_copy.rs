use tabtune::kernels::u32_copy::{KERNEL, Params};
use tabtune_tests::kernels::{Case, check, poisoned};

fn case(n: usize) -> Case {
    let x = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) & 0x7f7f_ffff).collect();
    Case { kernel: &KERNEL, buffers: vec![x, poisoned(n)], params: Params { n: n as u32 }.words(), groups: (n as u32).div_ceil(256) }
}

#[test]
fn u32_copy_copies_every_word() {
    // The last size needs more workgroups than one dimension of a dispatch has.
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 65_536 * 256 + 3].map(case).into();
    check(&cases, 0.0, ("y[i] = x[i]", "y[i] = x[i] ^ 1u"));
}
