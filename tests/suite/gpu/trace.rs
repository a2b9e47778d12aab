//! Records of a kernel's launch.

use tabtune::gpu::{self, Buffer, copy as u32_copy, trace};
use tabtune_tests::gpu;

#[test]
fn trace_has_the_launches_between_start_and_finish() {
    let Some(device) = gpu() else { return };
    let make = |n: usize| Buffer::from(burn::tensor::Tensor::<1>::ones([n], &device.inner()));
    // Odd sizes, because other tests may launch the same kernel at the same time.
    let copy = |n: usize| {
        gpu::run(
            &u32_copy::KERNEL,
            [make(n)],
            [make(n)],
            &u32_copy::Params::whole(n),
            12,
        )
        .unwrap()
    };
    copy(2741);
    trace::start();
    copy(2742);
    let seen = trace::finish();
    copy(2743);
    let of = |n: usize| {
        seen.iter()
            .filter(|launched| launched.words == [n, n])
            .collect::<Vec<_>>()
    };
    assert_eq!((of(2741).len(), of(2742).len(), of(2743).len()), (0, 1, 0));
    assert_eq!(
        (
            of(2742)[0].kernel.name,
            of(2742)[0].groups,
            of(2742)[0].params.as_slice()
        ),
        ("u32_copy", 12, &[2742, 0, 0][..])
    );
    assert!(trace::finish().is_empty());
}
