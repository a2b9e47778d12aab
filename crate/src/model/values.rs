//! Sources of a model's parameters: files, or a seed. Both provide values piece by piece.

use burn::tensor::{DType, Device};

use super::adaptation::Adaptation;
use super::frozen_weights::FrozenWeights;
use super::load::{Loaded, packed_rows};
use super::parameter_request::{Kind, ParameterRequest};
use super::part::Role;
use super::weight::{Matrix, Weight};
use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::gpu::transfer::{PIECE_BYTES, RUN_BYTES, Upload, settled};
use crate::gpu::{PackedUpload, StorageType};
use crate::interrupt::Interrupt;
use crate::ops::PackedMatrix;
use crate::random;

/// Parameters that are being loaded onto a device.
pub(super) struct Loading<'a> {
    pub config: &'a ModelConfig,
    pub precision: Precision,
    /// Adapter of the model, if it gets one.
    pub adaptation: Option<&'a Adaptation>,
    /// Storage of the constants of a model with an adapter.
    pub base_storage: BaseStorage,
    pub device: &'a Device,
    pub interrupt: &'a Interrupt,
}

impl<'a> Loading<'a> {
    /// The dtype in which the values of a parameter are stored. Vectors are f32.
    fn dtype(&self, request: &ParameterRequest, source: &impl Values) -> DType {
        let packed = match (request.kind.is_matrix(), request.trained, self.base_storage) {
            (false, ..) | (_, false, BaseStorage::F32) => false,
            (true, true, _) => self.precision == Precision::Bf16,
            (true, false, BaseStorage::Bf16) => true,
            (true, false, BaseStorage::Stored) => source.stored_as_bf16(request),
        };
        if packed { DType::BF16 } else { DType::F32 }
    }

    /// The constant `request` as its file stores it, if the kernels can read that.
    async fn packed(
        &self,
        request: &ParameterRequest,
        source: &mut impl Values,
    ) -> Result<Option<Matrix>> {
        let stays = !request.trained
            && request.kind.is_matrix()
            && self.base_storage == BaseStorage::Stored;
        if stays {
            source
                .give_packed(request, self.device, self.interrupt)
                .await
        } else {
            Ok(None)
        }
    }

    /// The stored type of a matrix that should stay as it is stored, but cannot.
    fn widened(&self, request: &ParameterRequest, source: &impl Values) -> Option<String> {
        let stays = request.kind.is_matrix() && self.base_storage == BaseStorage::Stored;
        source.stored_blocks(request).filter(|_| stays)
    }

    /// Loads the parameters `request` from `source`.
    ///
    /// # Errors
    /// The errors of `source`, and `call.aborted`.
    pub async fn run(
        &self,
        requests: &[ParameterRequest],
        source: &mut impl Values,
    ) -> Result<(Loaded<'a>, FrozenWeights)> {
        let mut loaded = Loaded {
            adaptation: self.adaptation,
            ..Loaded::default()
        };
        let mut frozen_weights = FrozenWeights::default();
        let mut unsettled = 0;
        for request in requests {
            self.interrupt.check()?;
            if let Some(packed) = self.packed(request, source).await? {
                frozen_weights.count(&packed);
                loaded.as_stored.insert(request.name.clone(), packed);
                continue;
            }
            let elements = request.elements();
            let dtype = self.dtype(request, source);
            let mut upload = Upload::new(elements, dtype, self.device);
            source.give(request, &mut upload, self.interrupt).await?;
            let tensor = upload.finish()?;
            unsettled += elements * dtype.size();
            if unsettled >= PIECE_BYTES {
                settled(tensor.clone()).await?;
                self.interrupt.pause().await?;
                unsettled = 0;
            }
            if !request.trained {
                frozen_weights.widened.extend(self.widened(request, source));
                frozen_weights.add(
                    request.kind.is_matrix().then_some(StorageType::of(dtype)),
                    elements * dtype.size(),
                );
            }
            match request.shape.as_slice() {
                &[input, out] if source.turns(request) => {
                    let weight = Weight::Frozen(tensor.reshape([out, input]));
                    loaded.as_stored.insert(
                        request.name.clone(),
                        Matrix::Dense {
                            weight,
                            transposed: true,
                        },
                    );
                }
                _ => drop(loaded.tensors.insert(request.name.clone(), tensor)),
            }
        }
        Ok((loaded, frozen_weights))
    }
}

/// Source of the values of parameters.
pub(super) trait Values {
    /// Returns whether the constant `request` `[in, out]` is given as `[out, in]`, as its file stores it. The products of a constant then run
    /// the same kernels whether it stays packed or is widened.
    fn turns(&self, _asked: &ParameterRequest) -> bool {
        false
    }

    /// Adds the values of `request` to the upload.
    async fn give(
        &mut self,
        request: &ParameterRequest,
        upload: &mut Upload,
        interrupt: &Interrupt,
    ) -> Result<()>;

    /// The constant `request` in the form in which its source stores it; `None` if the kernels cannot read that.
    async fn give_packed(
        &mut self,
        _asked: &ParameterRequest,
        _device: &Device,
        _interrupt: &Interrupt,
    ) -> Result<Option<Matrix>> {
        Ok(None)
    }

    /// The type of the blocks in which the values of `request` are stored, if they are stored in blocks.
    fn stored_blocks(&self, _asked: &ParameterRequest) -> Option<String> {
        None
    }

    /// Returns whether the source stores the values of `request` as bf16.
    fn stored_as_bf16(&self, _asked: &ParameterRequest) -> bool {
        false
    }
}

/// Parameters read from files.
pub(super) struct BundleValues<'a> {
    bundle: &'a Bundle,
    /// Seed of the factors that the files do not have.
    seed: u64,
    /// Tensors with NaN or infinite values, and the number of these values.
    pub non_finite: Vec<(String, u64)>,
}

impl<'a> BundleValues<'a> {
    /// Reads from `bundle`, and generates the factors that it lacks from `seed`.
    ///
    /// # Errors
    /// `model.tensor.missing` for other tensors that the files lack, `model.tensor.shape`, and `model.tensor.unexpected` for tensors that
    /// do not belong to the model. Missing and unexpected tensors are all listed.
    pub fn new(bundle: &'a Bundle, planned: &[ParameterRequest], seed: u64) -> Result<Self> {
        let absent = |request: &&ParameterRequest| {
            !request.kind.is_factor() && bundle.shape(&request.name).is_none()
        };
        let missing: Vec<String> = planned
            .iter()
            .filter(absent)
            .map(|request| request.name.clone())
            .collect();
        if !missing.is_empty() {
            return Err(Error::MissingTensors(missing));
        }
        for ParameterRequest { name, shape, .. } in planned {
            if let Some(found) = bundle.shape(name).filter(|found| found != shape) {
                return Err(Error::TensorShape {
                    name: name.clone(),
                    expected: shape.clone(),
                    found,
                });
            }
        }
        // Buffers that some exporters write next to the weights; they hold nothing trained.
        let ignored = |name: &String| {
            name.ends_with(".attn.bias")
                || name.ends_with(".attn.masked_bias")
                || name.ends_with("rotary_emb.inv_freq")
        };
        let known: std::collections::BTreeSet<&String> =
            planned.iter().map(|request| &request.name).collect();
        let unexpected: Vec<String> = bundle
            .names()
            .into_iter()
            .filter(|name| !known.contains(name) && !ignored(name))
            .collect();
        if unexpected.is_empty() {
            Ok(Self {
                bundle,
                seed,
                non_finite: Vec::new(),
            })
        } else {
            Err(Error::UnexpectedTensors(unexpected))
        }
    }
}

impl Values for BundleValues<'_> {
    async fn give_packed(
        &mut self,
        request: &ParameterRequest,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Option<Matrix>> {
        let Some((form, mut rows)) = packed_rows(self.bundle, request) else {
            return Ok(None);
        };
        let mut upload = PackedUpload::new(form, device);
        let mut non_finite = 0;
        while let Some(bytes) = rows.next_piece()? {
            non_finite += form.storage.non_finite_scales(&bytes);
            upload.put_bytes(&bytes)?;
            upload.settle(interrupt).await?;
        }
        if non_finite > 0 {
            self.non_finite.push((request.name.clone(), non_finite));
        }
        Ok(Some(Matrix::Packed {
            matrix: PackedMatrix::of(upload)?,
            transposed: rows.transposed,
        }))
    }

    fn turns(&self, request: &ParameterRequest) -> bool {
        !request.trained && self.bundle.is_transposed(&request.name)
    }

    fn stored_blocks(&self, request: &ParameterRequest) -> Option<String> {
        self.bundle
            .dtype(&request.name)?
            .strip_prefix("GGML:")
            .map(String::from)
    }

    fn stored_as_bf16(&self, request: &ParameterRequest) -> bool {
        self.bundle.dtype(&request.name).as_deref() == Some("BF16")
    }

    async fn give(
        &mut self,
        request: &ParameterRequest,
        upload: &mut Upload,
        interrupt: &Interrupt,
    ) -> Result<()> {
        if self.bundle.shape(&request.name).is_none() {
            return give_fresh(request, self.seed, &self.bundle.config, upload, interrupt).await;
        }
        let mut pieces = self.bundle.exact_pieces(&request.name, RUN_BYTES / 4)?;
        if self.turns(request) {
            pieces = pieces.in_file_order();
        }
        while let Some((_, values)) = pieces.next_piece()? {
            upload.put(values)?;
            upload.settle(interrupt).await?;
        }
        if pieces.non_finite() > 0 {
            self.non_finite
                .push((request.name.clone(), pieces.non_finite()));
        }
        Ok(())
    }
}

/// Parameters of a new model, a pure function of the seed and each parameter's name: norms 1, biases 0, matrices with mean 0 and standard
/// deviation `initializer_range`, divided by √(2·layers) if they write to the residual stream (GPT-2's rule). A value is the sum of eight
/// uniform 16-bit draws, scaled: nearly normal, and bit-identical on every machine.
pub(super) struct FreshValues<'a> {
    pub config: &'a ModelConfig,
    pub seed: u64,
}

/// The sum of eight uniforms on (0, 1) minus its mean 4; its variance is 8/12.
fn near_normal(words: [u32; 4]) -> f64 {
    let halves: u32 = words.iter().map(|w| (w & 0xFFFF) + (w >> 16)).sum();
    (f64::from(halves) + 4.0) / 65536.0 - 4.0
}

/// Computes one new value of a matrix from four words of noise.
type Draw = Box<dyn Fn([u32; 4]) -> f32>;

/// Draws nearly normal values with this standard deviation.
fn normal(deviation: f64) -> Draw {
    let scale = deviation / (8.0f64 / 12.0).sqrt();
    Box::new(move |words| (near_normal(words) * scale) as f32)
}

/// Draws uniform values in ±bound.
fn uniform(bound: f64) -> Draw {
    Box::new(move |[word, ..]| (((f64::from(word) + 0.5) / 2f64.powi(31) - 1.0) * bound) as f32)
}

/// Adds a new tensor to the upload: constant, or drawn by Philox from the seed, the tensor's name and each element's index.
async fn give_fresh(
    request: &ParameterRequest,
    seed: u64,
    config: &ModelConfig,
    upload: &mut Upload,
    interrupt: &Interrupt,
) -> Result<()> {
    let draw = match (request.kind, request.shape.as_slice()) {
        (Kind::Vector(fresh), _) => {
            return upload.put(&vec![fresh; request.elements()]);
        }
        (Kind::Rates, _) => {
            let heads = request.elements();
            let rate = |head: usize| 16.0 * (head as f64 + 0.5) / heads as f64;
            let logarithms: Vec<f32> = (0..heads).map(|head| rate(head).ln() as f32).collect();
            return upload.put(&logarithms);
        }
        (Kind::Zero, _) => Box::new(|_| 0.0),
        (Kind::Uniform, [.., input]) => uniform(1.0 / (*input as f64).sqrt()),
        (Kind::Gaussian, [rank, ..]) => normal(1.0 / *rank as f64),
        (Kind::Matrix(Role::Residual), _) => {
            normal(config.initializer_range / (2.0 * config.num_hidden_layers as f64).sqrt())
        }
        _ => normal(config.initializer_range),
    };
    let key = random::key("init:", seed, &request.name);
    let elements = request.shape.iter().map(|&dim| dim as u64).product();
    let mut at: u64 = 0;
    while at < elements {
        let end = elements.min(at + (RUN_BYTES / 4) as u64);
        let values: Vec<f32> = (at..end)
            .map(|i| draw(random::philox([i as u32, (i >> 32) as u32, 0, 0], key)))
            .collect();
        upload.put(&values)?;
        upload.settle(interrupt).await?;
        at = end;
    }
    Ok(())
}

impl Values for FreshValues<'_> {
    async fn give(
        &mut self,
        request: &ParameterRequest,
        upload: &mut Upload,
        interrupt: &Interrupt,
    ) -> Result<()> {
        give_fresh(request, self.seed, self.config, upload, interrupt).await
    }
}
