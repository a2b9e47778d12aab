//! A kernel of another crate: its text is given, and its name may be one that tabtune uses too.

use tabtune::gpu::Words;
use tabtune::ops::scale;
use tabtune_tests::kernels::{Case, check, noise, words};

tabtune::kernel! {
    /// `x ← f + x`
    pub SHIFT = "scale" text (r"
        struct Params { n: u32 }
        @group(0) @binding(0) var<storage, read_write> f: array<f32>;
        @group(0) @binding(1) var<storage, read_write> x: array<f32>;
        @group(0) @binding(2) var<storage, read_write> params: Params;

        @compute @workgroup_size(64)
        fn main(
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32,
        ) {
            let i = grid_index(group, groups, lane, 64u);
            if (i < params.n) { x[i] = f[0] + x[i]; }
        }
    ") [64], (f) -> (mut x),
    struct ShiftParams { n: u32 },
    twin |[f], [x], p| {
        let shift = f.floats()[0];
        x.floats_mut()[..p.n as usize].iter_mut().for_each(|x| *x += shift);
    }
}

#[test]
fn own_kernel_runs_its_own_text() {
    let buffers = |n: usize| ([words(&[-0.3])], [words(&noise(n, 1))]);
    let ours = [1, 257].map(|n| {
        let (f, x) = buffers(n);
        Case::new(
            &scale::KERNEL,
            f,
            x,
            &scale::Params { n },
            scale::KERNEL.groups(n),
        )
    });
    let own = [1, 257].map(|n| {
        let (f, x) = buffers(n);
        Case::new(&SHIFT, f, x, &ShiftParams { n: n as u32 }, SHIFT.groups(n))
    });
    check(&ours, 0.0, ("f[0] * x[i]", "f[0] / x[i]"));
    check(&own, 0.0, ("f[0] + x[i]", "f[0] - x[i]"));
}
