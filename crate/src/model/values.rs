//! Sources of a model's parameters: files, or a seed. Both provide values piece by piece.

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor};

use super::adaptation::Adaptation;
use super::fresh_values::give_fresh;
use super::frozen_weights::FrozenWeights;
use super::load::{Loaded, packed_rows};
use super::matrix::Matrix;
use super::parameter_request::ParameterRequest;
use super::weight::Weight;
use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::gpu::launch::binding_limit;
use crate::gpu::transfer::{PIECE_BYTES, RUN_BYTES, Upload, settled};
use crate::gpu::{PackedUpload, StorageType, StoredMatrix};
use crate::interrupt::Interrupt;
use crate::ops::PackedMatrix;

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
            let rows = request.row_parts(dtype, binding_limit(self.device));
            let mut upload = match &rows {
                Some(rows) => {
                    let width = request.shape[1];
                    let elements = rows.iter().map(|rows| rows * width).collect();
                    Upload::in_parts(elements, dtype, self.device)
                }
                None => Upload::new(elements, dtype, self.device),
            };
            source.give(request, &mut upload, self.interrupt).await?;
            let mut tensors = upload.finish_all()?;
            let tensor = tensors[0].clone();
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
            if let Some(rows) = rows {
                let weight = |tensor: Tensor<1>, rows: usize| {
                    let tensor = tensor.reshape([rows, request.shape[1]]);
                    let weight = if request.trained {
                        Param::from_tensor(tensor).into()
                    } else {
                        Weight::Frozen(tensor)
                    };
                    Matrix::Dense {
                        weight,
                        transposed: false,
                    }
                };
                let parts = tensors.drain(..).zip(rows);
                let parts = parts.map(|(tensor, rows)| (rows, weight(tensor, rows)));
                let name = request.name.clone();
                loaded.as_stored.insert(name, Matrix::of_parts(parts));
                continue;
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
        let parts = request
            .packed_row_parts(form, binding_limit(device))
            .unwrap_or_else(|| vec![form.rows]);
        let mut uploads = parts.into_iter().map(|rows| {
            let part = StoredMatrix { rows, ..form };
            PackedUpload::new(part, device)
        });
        let (mut upload, mut matrices) = (uploads.next(), Vec::new());
        let (transposed, mut non_finite) = (rows.transposed, 0);
        while let Some(piece) = rows.next_piece()? {
            non_finite += form.storage.non_finite_scales(&piece);
            let mut bytes = piece.as_slice();
            while let Some(now) = upload.as_mut().filter(|_| !bytes.is_empty()) {
                let (own, rest) = bytes.split_at(bytes.len().min(now.room()));
                now.put_bytes(own)?;
                now.settle(interrupt).await?;
                bytes = rest;
                if now.room() == 0 {
                    let full = std::mem::replace(&mut upload, uploads.next());
                    matrices.extend(full.map(PackedMatrix::of).transpose()?);
                }
            }
        }
        if non_finite > 0 {
            self.non_finite.push((request.name.clone(), non_finite));
        }
        let packed = |matrix: PackedMatrix| {
            let rows = matrix.form().rows;
            (rows, Matrix::Packed { matrix, transposed })
        };
        Ok(Some(Matrix::of_parts(matrices.into_iter().map(packed))))
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
