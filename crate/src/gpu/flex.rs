//! Runs kernels on Burn's CPU backend: their twins, on the tensors' own bytes.

use burn::tensor::{DType, Shape};
use burn_flex::{Flex, FlexTensor, Layout};
use burn_std::Bytes;
use std::sync::Arc;

use crate::gpu::launch::{Launch, words_for};
use crate::gpu::{Access, AnyKernel};

/// The bytes of a tensor while a twin runs; `copy` is set where they cannot be read as words in place (an odd number of bf16 elements).
struct TwinBuffer {
    bytes: Arc<Bytes>,
    copy: Option<Vec<u32>>,
    shape: Shape,
    dtype: DType,
}

impl TwinBuffer {
    fn new(tensor: FlexTensor, access: Access) -> Self {
        let shape = tensor.layout().shape().clone();
        let dtype = tensor.dtype();
        let expected = shape.num_elements() * dtype.size();
        let whole = tensor.is_contiguous()
            && tensor.layout().start_offset() == 0
            && tensor.bytes().len() == expected;
        let tensor = if whole {
            tensor
        } else {
            tensor.to_contiguous()
        };
        let mut bytes = tensor.data_arc();
        drop(tensor);
        if access != Access::Read && Arc::get_mut(&mut bytes).is_none() {
            bytes = Arc::new(Bytes::from_elems(bytes.to_vec()));
        }
        let fits = bytemuck::try_cast_slice::<u8, u32>(&bytes).is_ok();
        let copy = (!fits).then(|| {
            let mut words = vec![0u32; words_for(shape.num_elements(), dtype)];
            bytemuck::cast_slice_mut::<u32, u8>(&mut words)[..bytes.len()].copy_from_slice(&bytes);
            words
        });
        Self {
            bytes,
            copy,
            shape,
            dtype,
        }
    }

    fn words(&self) -> &[u32] {
        self.copy
            .as_deref()
            .unwrap_or_else(|| bytemuck::cast_slice(&self.bytes))
    }

    fn words_mut(&mut self) -> &mut [u32] {
        match &mut self.copy {
            Some(copy) => copy,
            None => bytemuck::cast_slice_mut(
                Arc::get_mut(&mut self.bytes)
                    .expect("bytes to be written were made this buffer's own"),
            ),
        }
    }

    fn finish(self) -> FlexTensor {
        let bytes = match self.copy {
            Some(words) => {
                let all: &[u8] = bytemuck::cast_slice(&words);
                Bytes::from_bytes_vec(all[..self.shape.num_elements() * self.dtype.size()].to_vec())
            }
            None => {
                return FlexTensor::from_arc(
                    self.bytes,
                    Layout::contiguous(self.shape),
                    self.dtype,
                );
            }
        };
        FlexTensor::new(bytes, Layout::contiguous(self.shape), self.dtype)
    }
}

impl Launch for Flex {
    const TWINS: bool = true;

    fn software(_of: &FlexTensor) -> bool {
        false
    }

    fn empty(_like: &FlexTensor, shape: Shape, dtype: DType) -> FlexTensor {
        FlexTensor::empty(shape, dtype)
    }

    fn parts<const N: usize>(whole: FlexTensor, shapes: [Shape; N]) -> [FlexTensor; N] {
        use burn::backend::ops::FloatTensorOps;
        let all = Self::float_reshape(
            whole.clone(),
            [whole.layout().shape().num_elements()].into(),
        );
        let mut first = 0;
        shapes.map(|shape| {
            let elements = first..first + shape.num_elements();
            first = elements.end;
            Self::float_reshape(Self::float_slice(all.clone(), &[elements.into()]), shape)
        })
    }

    fn ids(ids: FlexTensor) -> FlexTensor {
        match ids.dtype() {
            DType::I32 | DType::U32 => ids,
            _ => <Self as burn::backend::ops::IntTensorOps<Self>>::int_cast(
                ids,
                burn::tensor::IntDType::I32,
            ),
        }
    }

    fn launch_any(
        kernel: &'static AnyKernel,
        buffers: Vec<FlexTensor>,
        params: &[u32],
        groups: u32,
    ) -> Vec<FlexTensor> {
        let mut read: Vec<TwinBuffer> = buffers
            .into_iter()
            .zip(kernel.bindings)
            .map(|(t, b)| TwinBuffer::new(t, b.access))
            .collect();
        let mut written = read.split_off(kernel.reads());
        if groups > 0 {
            kernel.define(
                read.iter().map(TwinBuffer::words).collect(),
                written.iter_mut().map(TwinBuffer::words_mut).collect(),
                params,
            );
        }
        written.into_iter().map(TwinBuffer::finish).collect()
    }
}
