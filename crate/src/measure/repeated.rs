//! Makes recorded launches again, on buffers of the same sizes.

use burn::tensor::{DType, Device};

use crate::error::Result;
use crate::gpu::trace::Launched;
use crate::gpu::transfer::{RUN_BYTES, Upload, settled};
use crate::gpu::{Access, Buffer, run_any};
use crate::interrupt::Interrupt;

/// Recorded launches that are made again and again. Their buffers hold values from 1/256 to 1, both as f32 and as two bf16: no value that
/// hardware treats specially, and enough bits that differ. They are not valid token ids, so the kernels of the embedding add nothing.
#[derive(Debug)]
pub struct Repeated(Vec<(Launched, Vec<Buffer>)>);

/// Returns `count` words.
fn filled(count: usize) -> impl Iterator<Item = f32> {
    (0..count).map(|i| {
        let half = ((i % 256 + 1) as f32 / 256.0).to_bits() >> 16;
        f32::from_bits(half << 16 | half)
    })
}

impl Repeated {
    /// Creates buffers for these launches.
    ///
    /// # Errors
    /// The errors of the device, and `call.aborted`.
    pub async fn new(
        launches: &[Launched],
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let run: Vec<f32> = filled(RUN_BYTES / 4).collect();
        let mut made = Vec::with_capacity(launches.len());
        for launched in launches {
            let mut buffers = Vec::with_capacity(launched.words.len());
            for &words in &launched.words {
                let words = words.max(1);
                let mut upload = Upload::new(words, DType::F32, device);
                for start in (0..words).step_by(run.len()) {
                    upload.put(&run[..run.len().min(words - start)])?;
                    upload.settle(interrupt).await?;
                }
                buffers.push(Buffer::from(upload.finish()?));
            }
            made.push((launched.clone(), buffers));
        }
        Ok(Self(made))
    }

    /// Makes every launch once.
    ///
    /// # Errors
    /// The errors of the launches.
    pub fn pass(&mut self) -> Result<()> {
        for (launched, buffers) in &mut self.0 {
            // Moved in and out again, so that the buffers stay uniquely owned and are written in place.
            let held = std::mem::take(buffers);
            let is_read = |access: Access| access == Access::Read;
            let read: Vec<_> = held
                .iter()
                .zip(launched.kernel.bindings)
                .map(|(b, binding)| is_read(binding.access).then(|| b.clone()))
                .collect();
            let mut written =
                run_any(launched.kernel, held, &launched.params, launched.groups)?.into_iter();
            *buffers = read
                .into_iter()
                .filter_map(|kept| kept.or_else(|| written.next()))
                .collect();
        }
        Ok(())
    }

    /// Waits until the device has finished all submitted work.
    ///
    /// # Errors
    /// The errors of the device.
    pub async fn settled(&self) -> Result<()> {
        match self.0.last().and_then(|(_, buffers)| buffers.last()) {
            Some(buffer) => settled(buffer.clone().float()).await,
            None => Ok(()),
        }
    }
}
