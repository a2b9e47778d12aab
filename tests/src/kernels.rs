//! Runs one kernel on raw words, on the device and as its twin, and measures the difference.

use burn::tensor::{Tensor, TensorData};
use tabtune::gpu::launch::with_bounded_loops;
use tabtune::gpu::noise::{Noise, Rounding};
use tabtune::gpu::{AnyKernel, Buffer, Chunk, Kernel, KernelParams, StorageType, run_any};

/// Value of an unwritten output: a NaN that no computation produces.
pub const POISON: u32 = 0x7fc0_dead;

/// One launch: buffers in the order of the bindings, parameters, workgroups.
#[derive(Clone)]
pub struct Case {
    /// Kernel to launch.
    pub kernel: &'static AnyKernel,
    /// Contents of each buffer. Buffers that the kernel fills are poisoned.
    pub buffers: Vec<Vec<u32>>,
    /// Words of the kernel's `Params`.
    pub params: Vec<u32>,
    /// Number of workgroups.
    pub groups: u32,
}

/// Returns f32 values as words.
pub fn words(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Returns a poisoned output of `n` words.
pub fn poisoned(n: usize) -> Vec<u32> {
    vec![POISON; n]
}

/// Returns `n` repeatable pseudo-random values in (−1, 1).
pub fn noise(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| {
            let mut z = (i.wrapping_add(seed.wrapping_mul(0x9e37_79b9))).wrapping_mul(0x85eb_ca6b);
            z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
            (z ^ (z >> 16)) as f32 / 2_147_483_648.0 - 1.0
        })
        .collect()
}

/// Returns the noise that rounds the writes of a kernel under test; both words of its step are used.
pub fn place(rounding: u32) -> Noise {
    Noise {
        key: [7, 11],
        step: 3 | 1 << 32,
        rounding: Rounding::from_word(rounding),
        first_pair: 0,
    }
}

/// Returns the values as packed bf16, rounded to nearest, and the same values widened again.
pub fn packed(values: &[f32]) -> (Vec<u32>, Vec<f32>) {
    let halves: Vec<half::bf16> = values.iter().map(|&v| half::bf16::from_f32(v)).collect();
    let words = halves
        .chunks(2)
        .map(|p| u32::from(p[0].to_bits()) | u32::from(p.get(1).map_or(0, |h| h.to_bits())) << 16)
        .collect();
    (words, halves.iter().map(|h| h.to_f32()).collect())
}

impl Case {
    /// Makes a launch of `kernel` from the contents of the buffers that it reads and writes; buffers that it only fills are poisoned.
    pub fn new<P: KernelParams, const R: usize, const W: usize>(
        kernel: &'static Kernel<P, R, W>,
        read: [Vec<u32>; R],
        written: [Vec<u32>; W],
        params: &P,
        groups: u32,
    ) -> Self {
        let buffers = read.into_iter().chain(written).collect();
        Self {
            kernel: kernel.any(),
            buffers,
            params: params.words(),
            groups,
        }
    }

    /// Returns the written buffers as computed by the twin.
    pub fn twin(&self) -> Vec<Vec<u32>> {
        let mut read = self.buffers.clone();
        let mut written = read.split_off(self.kernel.reads());
        let views = read.iter().map(Vec::as_slice).collect();
        self.kernel.define(
            views,
            written.iter_mut().map(Vec::as_mut_slice).collect(),
            &self.params,
        );
        written
    }

    /// Returns the written buffers as computed by `kernel` (this case's own, or a mutant of it) on `device`.
    pub fn device(
        &self,
        kernel: &'static AnyKernel,
        device: &burn::tensor::Device,
    ) -> Vec<Vec<u32>> {
        let buffers = self
            .buffers
            .iter()
            .map(|words| upload(words, device))
            .collect();
        run_any(kernel, buffers, &self.params, self.groups)
            .expect("one device")
            .into_iter()
            .map(|b| download(b.float::<1>()))
            .collect()
    }

    /// Returns the largest difference between `kernel` on `device` and the twin, as [`worst`] measures it.
    pub fn difference(&self, kernel: &'static AnyKernel, device: &burn::tensor::Device) -> f64 {
        worst(&self.device(kernel, device), &self.twin())
    }
}

/// Returns the largest difference of written buffers, each relative to the RMS of the expected one. It is infinite if only one of two values
/// is finite; two NaN, or the same infinity, are equal.
fn worst(found: &[Vec<u32>], expected: &[Vec<u32>]) -> f64 {
    found
        .iter()
        .zip(expected)
        .map(|(found, expected)| difference(&floats(found), &floats(expected)))
        .fold(0.0, f64::max)
}

/// Returns words as f32.
pub fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&w| f32::from_bits(w)).collect()
}

/// Returns the largest difference relative to the RMS of `expected`.
pub fn difference(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let finite: Vec<f64> = expected
        .iter()
        .filter(|v| v.is_finite())
        .map(|&v| f64::from(v))
        .collect();
    let rms = (finite.iter().map(|v| v * v).sum::<f64>() / finite.len().max(1) as f64)
        .sqrt()
        .max(1e-30);
    let pairs = found.iter().zip(expected);
    pairs
        .map(|(&f, &e)| match (f.is_finite(), e.is_finite()) {
            (true, true) => (f64::from(f) - f64::from(e)).abs() / rms,
            _ if f.to_bits() == POISON && e.to_bits() == POISON => 0.0,
            _ if f.to_bits() == POISON || e.to_bits() == POISON => f64::INFINITY,
            _ if (f.is_nan() && e.is_nan()) || f == e => 0.0,
            _ => f64::INFINITY,
        })
        .fold(0.0, f64::max)
}

/// Returns the relative L2 distance.
pub fn relative_l2(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let distance: f64 = found
        .iter()
        .zip(expected)
        .map(|(&f, e)| (f64::from(f) - e).powi(2))
        .sum();
    let size: f64 = expected.iter().map(|e| e * e).sum();
    if found.iter().any(|f| !f.is_finite()) {
        f64::INFINITY
    } else {
        (distance / size.max(1e-300)).sqrt()
    }
}

fn upload(words: &[u32], device: &burn::tensor::Device) -> Buffer {
    let values = floats(words);
    let n = values.len();
    Tensor::<1>::from_data(TensorData::new(values, [n]), device).into()
}

fn download(tensor: Tensor<1>) -> Vec<u32> {
    let data = crate::block_on(tensor.into_data_async()).expect("a read of an f32 tensor");
    words(data.as_slice::<f32>().expect("f32 data"))
}

/// Returns the kernel under another name, with the first `from` in its stem, its shared entry point or its chunk replaced by `to`.
pub fn mutant(kernel: &'static AnyKernel, from: &str, to: &str) -> &'static AnyKernel {
    let flipped = |text: &'static str| -> &'static str { text.replacen(from, to, 1).leak() };
    let name = format!("{} with {to:?} for {from:?}", kernel.name).leak();
    let mut mutant = AnyKernel { name, ..*kernel };
    match (kernel.entry, kernel.chunk) {
        _ if kernel.source.contains(from) => mutant.source = flipped(kernel.source),
        (Some(entry), _) if entry.contains(from) => mutant.entry = Some(flipped(entry)),
        (_, Some(chunk)) if chunk.texts.iter().any(|text| text.contains(from)) => {
            let texts = chunk
                .texts
                .iter()
                .map(|text| flipped(text))
                .collect::<Vec<_>>()
                .leak();
            mutant.chunk = Some(Box::leak(Box::new(Chunk { texts, ..*chunk })))
        }
        _ => panic!("{}: nothing to flip: {from:?}", kernel.name),
    }
    Box::leak(Box::new(mutant))
}

/// Length in bytes of a text that llvmpipe compiles for 20 s in each form; only `linear_block` is that long. Natively such a kernel runs
/// unchanged only. With bounded loops, and as a mutant, it runs in the browser, which compiles it in half a second, and here with
/// `TABTUNE_FULL=1`.
const LONG_TEXT: usize = 14_000;

/// Asserts that device and twin agree within `bound` on every case, that bounded loops give the same bits, and that the flipped kernel
/// disagrees on at least one case. Loops are part of a stem, so they are bounded for one storage type; with `TABTUNE_FULL=1` for all.
pub fn check(cases: &[Case], bound: f64, flip: (&str, &str)) {
    let flipped = |case: &Case| mutant(case.kernel, flip.0, flip.1);
    let twins: Vec<_> = cases.iter().map(Case::twin).collect();
    let Some(device) = crate::gpu() else { return };
    let device = device.inner();
    let long = |kernel: &AnyKernel| kernel.source.len() > LONG_TEXT && !crate::in_full();
    let bounds = |kernel: &AnyKernel| {
        crate::in_full()
            || !long(kernel)
                && kernel
                    .chunk
                    .is_none_or(|chunk| chunk.storage == StorageType::F32)
    };
    for (case, twin) in cases.iter().zip(&twins) {
        let found = case.device(case.kernel, &device);
        if bounds(case.kernel) {
            let bounded = with_bounded_loops(|| case.device(case.kernel, &device));
            assert!(
                found == bounded,
                "{} with {:?}: other bits with bounded loops",
                case.kernel.name,
                case.params
            );
        }
        let off = worst(&found, twin);
        assert!(
            off <= bound,
            "{} with {:?}: differs by {off:e}, bound {bound:e}",
            case.kernel.name,
            case.params
        );
    }
    let mutated = !long(cases[0].kernel);
    let caught = mutated.then(|| {
        cases
            .iter()
            .zip(&twins)
            .position(|(case, twin)| worst(&case.device(flipped(case), &device), twin) > bound)
    });
    let caught = caught.map(|found| {
        found.unwrap_or_else(|| panic!("{}: the mutant {flip:?} passed", cases[0].kernel.name))
    });
    crate::record::record(cases, &twins, bound, flipped(&cases[0]), caught);
}
