//! Sources of a model's parameters: files, or a seed. Both give them piece by piece.

use burn::tensor::{DType, Device};

use super::family::Role;
use super::load::{Asked, Kind, Loaded};
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::gpu::transfer::{PIECE_BYTES, RUN_BYTES, Upload, settled};
use crate::interrupt::Interrupt;
use crate::random;

/// Parameters on their way to a device.
pub(super) struct Loading<'a> {
    pub config: &'a ModelConfig,
    pub precision: Precision,
    pub device: &'a Device,
    pub interrupt: &'a Interrupt,
}

impl Loading<'_> {
    /// The parameters in `source`.
    pub async fn run(&self, asked: Vec<Asked>, source: &mut impl Values) -> Result<Loaded> {
        let mut loaded = Loaded::default();
        let mut unsettled = 0;
        for asked in asked {
            self.interrupt.check()?;
            let elements = asked.shape.iter().product();
            let packed = self.precision == Precision::Bf16 && matches!(asked.kind, Kind::Matrix(_));
            let dtype = if packed { DType::BF16 } else { DType::F32 };
            let mut upload = Upload::new(elements, dtype, self.device);
            source.give(&asked, &mut upload, self.interrupt).await?;
            let tensor = upload.finish()?;
            unsettled += elements * dtype.size();
            if unsettled >= PIECE_BYTES {
                settled(tensor.clone()).await?;
                self.interrupt.pause().await?;
                unsettled = 0;
            }
            loaded.0.insert(asked.name, tensor);
        }
        Ok(loaded)
    }
}

/// Gives the values of parameters.
pub(super) trait Values {
    /// Adds the values of `asked` to the upload.
    async fn give(&mut self, asked: &Asked, upload: &mut Upload, interrupt: &Interrupt) -> Result<()>;
}

/// Parameters read from files.
pub(super) struct BundleValues<'a> {
    bundle: &'a Bundle,
    /// Tensors with NaN or infinite values, and how many.
    pub non_finite: Vec<(String, u64)>,
}

impl<'a> BundleValues<'a> {
    /// Reads from `bundle`. Refuses tensors that the files lack, different shapes, and tensors that do not belong to the model;
    /// all of a kind are listed.
    pub fn new(bundle: &'a Bundle, planned: &[Asked]) -> Result<Self> {
        let missing: Vec<String> = planned.iter().filter(|asked| bundle.shape(&asked.name).is_none()).map(|a| a.name.clone()).collect();
        if !missing.is_empty() {
            return Err(Error::MissingTensors(missing));
        }
        for Asked { name, shape, .. } in planned {
            if let Some(found) = bundle.shape(name).filter(|found| found != shape) {
                return Err(Error::TensorShape { name: name.clone(), expected: shape.clone(), found });
            }
        }
        // Buffers that some exporters write next to the weights; they hold nothing trained.
        let ignored =
            |name: &String| name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq");
        let known: std::collections::BTreeSet<&String> = planned.iter().map(|asked| &asked.name).collect();
        let unexpected: Vec<String> = bundle.names().into_iter().filter(|name| !known.contains(name) && !ignored(name)).collect();
        if unexpected.is_empty() { Ok(Self { bundle, non_finite: Vec::new() }) } else { Err(Error::UnexpectedTensors(unexpected)) }
    }
}

impl Values for BundleValues<'_> {
    async fn give(&mut self, asked: &Asked, upload: &mut Upload, interrupt: &Interrupt) -> Result<()> {
        let mut pieces = self.bundle.pieces(&asked.name, RUN_BYTES / 4)?;
        while let Some((_, values)) = pieces.next_piece()? {
            upload.put(values)?;
            upload.settle(interrupt).await?;
        }
        if pieces.non_finite() > 0 {
            self.non_finite.push((asked.name.clone(), pieces.non_finite()));
        }
        Ok(())
    }
}

/// Parameters of a new model, a pure function of the seed and each parameter's name: norms 1, biases 0, matrices with mean 0 and standard
/// deviation `initializer_range`, divided by √(2·layers) where they write to the residual stream (GPT-2's rule). A value is the sum of eight
/// uniform 16-bit draws, scaled: near normal, and bit-identical on every machine.
pub(super) struct FreshValues<'a> {
    pub config: &'a ModelConfig,
    pub seed: u64,
}

/// Sum of eight uniforms on (0, 1) less its mean 4: variance 8/12.
fn near_normal(words: [u32; 4]) -> f64 {
    let halves: u32 = words.iter().map(|w| (w & 0xFFFF) + (w >> 16)).sum();
    (f64::from(halves) + 4.0) / 65536.0 - 4.0
}

impl Values for FreshValues<'_> {
    async fn give(&mut self, asked: &Asked, upload: &mut Upload, interrupt: &Interrupt) -> Result<()> {
        let role = match asked.kind {
            Kind::Vector(fresh) => {
                return upload.put(&vec![fresh; asked.shape.iter().product()]);
            }
            Kind::Matrix(role) => role,
        };
        let spread = match role {
            Role::Inner => self.config.initializer_range,
            Role::Residual => self.config.initializer_range / (2.0 * self.config.num_hidden_layers as f64).sqrt(),
        };
        let scale = spread / (8.0f64 / 12.0).sqrt();
        let key = random::key("init:", self.seed, &asked.name);
        let value = |i: u64| (near_normal(random::philox([i as u32, (i >> 32) as u32, 0, 0], key)) * scale) as f32;
        let elements = asked.shape.iter().map(|&dim| dim as u64).product();
        let mut at: u64 = 0;
        while at < elements {
            let end = elements.min(at + (RUN_BYTES / 4) as u64);
            upload.put(&(at..end).map(value).collect::<Vec<f32>>())?;
            upload.settle(interrupt).await?;
            at = end;
        }
        Ok(())
    }
}
