//! A tensor of a model or of an optimizer: its description, and where its bytes are.

use std::cell::OnceCell;
use std::rc::Rc;

use burn::tensor::DType;

use super::reordering::Reordering;
use super::tensor_manifest::{ModelStateTensorManifest, TensorRole, default_path, numel};
use crate::error::Result;
use crate::formats::{
    ByteSource, Digest, FileTensor, GgmlType, SourceSpan, TensorType, refuse_if, too_large,
};
use crate::gpu::transfer::Flat;

/// Maximum number of values in a piece: 8 MiB of f32.
pub const PIECE_ELEMENTS: usize = 2 << 20;

/// A tensor with its stored bytes: little-endian, row-major, contiguous, in Hugging Face's order. They are read on demand, by pieces of at
/// most 8 MiB. Clones share their digest once it is known.
///
/// ```
/// use tabtune::state::{Bytes, Tensor};
///
/// let tensor = Tensor::parameter("head.weight", "BF16", &[4, 2], Bytes::host(vec![0; 16]));
/// assert_eq!(tensor.manifest().model_tree_path, ["head", "weight"]);
/// assert_eq!(tensor.len(), 16);
/// ```
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Unique name; for a parameter the Hugging Face name.
    pub name: String,
    /// dtype: a word of safetensors, or `GGML:<type>` for blocks.
    pub dtype: String,
    /// Row-major shape; empty for a scalar.
    pub shape: Vec<u64>,
    /// Purpose of the tensor.
    pub role: TensorRole,
    /// Path in the module tree, if it is not the one that follows from the name.
    path: Option<Box<[String]>>,
    pub(super) bytes: Bytes,
    /// Digest shared among clones; allocated when it is first requested, since an opened file has many tensors that are never read.
    pub(super) sum: Sum,
}

/// Place where the bytes of a tensor are. They are read from there when they are needed.
///
/// ```
/// use std::rc::Rc;
/// use tabtune::formats::MemorySource;
/// use tabtune::state::{Bytes, Tensor};
///
/// let file = Rc::new(MemorySource::new("weights.bin", vec![0; 100]));
/// assert_eq!(Tensor::parameter("w", "F32", &[2], Bytes::of_source(file, 20, 8)).len(), 8);
/// ```
#[derive(Clone)]
pub enum Bytes {
    /// In a file.
    #[doc(hidden)]
    Span(Span),
    /// In memory.
    #[doc(hidden)]
    Host(Rc<[u8]>),
    /// On the device, flat: F32, or packed BF16.
    #[doc(hidden)]
    Device(Flat),
    /// Nowhere yet: a tensor of a base with the product of a pair added.
    #[doc(hidden)]
    Merged(Rc<Merged>),
    /// Nowhere yet: a tensor of a base with the words of a delta added.
    #[doc(hidden)]
    Moved(Rc<Moved>),
    /// Nowhere yet: the values of another tensor in another type or order.
    #[doc(hidden)]
    Encoded(Rc<Encoded>),
}

/// Bytes in a file.
#[derive(Debug, Clone)]
pub struct Span {
    pub(crate) stored: SourceSpan,
    /// Order of the elements in the file.
    pub(crate) order: Reordering,
    /// Name in the file, if the tensor has another one.
    pub(crate) own_name: Option<Box<str>>,
}

/// A tensor of a base, and the pair whose product is added to its values.
#[derive(Debug)]
pub struct Merged {
    pub(crate) base: Tensor,
    pub(crate) pair: Pair,
}

/// A tensor of a base, and a tensor of the same bytes, which are added to it, or subtracted, as unsigned words of `width` bytes, wrapping.
#[derive(Debug)]
pub struct Moved {
    pub(crate) base: Tensor,
    pub(crate) words: Tensor,
    pub(crate) width: u64,
    pub(crate) subtract: bool,
}

/// A pair that is added to a tensor, W + scale·(B·A) with A [r, in] and B [out, r].
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    /// Name of the tensor.
    pub(crate) name: String,
    /// The factors, in files or in memory.
    pub(crate) a: Tensor,
    pub(crate) b: Tensor,
    pub(crate) scale: f32,
    /// True if the tensor is [in, out], so that the product is transposed.
    pub(crate) transposed: bool,
    /// True if the sum stays as it is in f32, whatever the tensor's dtype.
    pub(crate) exact: bool,
}

/// Values of a tensor in the type and the order of a file.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The values, in Hugging Face's order.
    pub(crate) values: Tensor,
    /// Order of the file.
    pub(crate) order: Reordering,
    /// Type in the file; rows are whole blocks of it.
    pub(crate) to: TensorType,
    /// Factor of every value.
    pub(crate) factor: f32,
}

/// Digest of the bytes, once it is known.
#[derive(Debug, Default)]
pub(super) struct Sum(OnceCell<Rc<OnceCell<Digest>>>);

impl Clone for Sum {
    fn clone(&self) -> Self {
        Self(OnceCell::from(Rc::clone(self.cell())))
    }
}

impl Sum {
    pub(super) fn cell(&self) -> &Rc<OnceCell<Digest>> {
        self.0.get_or_init(Rc::default)
    }
}

impl Tensor {
    /// Creates the tensor that `manifest` describes.
    pub fn new(manifest: ModelStateTensorManifest, bytes: Bytes) -> Self {
        let ModelStateTensorManifest {
            state_key: name,
            model_tree_path: path,
            role,
            dtype,
            shape,
        } = manifest;
        let path = (default_path(&name, role) != path).then(|| path.into());
        Self {
            name,
            dtype,
            shape,
            role,
            path,
            bytes,
            sum: Sum::default(),
        }
    }

    /// Creates the parameter `name`.
    pub fn parameter(name: &str, dtype: &str, shape: &[u64], bytes: Bytes) -> Self {
        Self {
            name: name.to_string(),
            dtype: dtype.to_string(),
            shape: shape.to_vec(),
            role: TensorRole::Parameter,
            path: None,
            bytes,
            sum: Sum::default(),
        }
    }

    /// Creates the parameter that `record` describes, with the bytes that it has in `source`.
    pub(crate) fn in_file(record: &FileTensor, source: &Rc<dyn ByteSource>) -> Self {
        let bytes = Bytes::of_source(
            Rc::clone(source),
            record.begin,
            record.bytes.unwrap_or_default(),
        );
        Self::parameter(&record.name, &record.dtype, &record.shape, bytes)
    }

    /// Creates the tensor `name` with the role that its name shows: `<parameter>:<state word>` is a state tensor, everything else a parameter.
    pub fn of_name(name: &str, dtype: &str, shape: &[u64], bytes: Bytes) -> Self {
        let role = TensorRole::of_name(name);
        Self {
            role,
            ..Self::parameter(name, dtype, shape, bytes)
        }
    }

    /// Creates the tensor `name` of a flat tensor on the device, F32 or packed BF16.
    pub(crate) fn on(name: &str, shape: &[usize], flat: Flat) -> Self {
        let dtype = match flat.dtype() {
            DType::BF16 => "BF16",
            _ => "F32",
        };
        let shape: Vec<u64> = shape.iter().map(|&dim| dim as u64).collect();
        Self::of_name(name, dtype, &shape, Bytes::Device(flat))
    }

    /// Appends rows that follow those of a tensor on the device.
    pub(crate) fn append_rows(&mut self, rows: usize, flat: Flat) {
        if let Bytes::Device(own) = &mut self.bytes {
            own.append(flat);
            self.shape[0] += rows as u64;
        }
    }

    /// Creates the tensor `name` of a model from its record in the header of `source`, where its elements have this order.
    ///
    /// # Errors
    /// `source.too-large` for a shape that this machine cannot address.
    pub(crate) fn of_file(
        name: String,
        record: &FileTensor,
        order: Reordering,
        source: &Rc<dyn ByteSource>,
    ) -> Result<Self> {
        let shape = order.shape_of_file(&record.shape);
        let is_large = shape.iter().any(|&dim| usize::try_from(dim).is_err());
        refuse_if(is_large, || {
            too_large()
                .of(source.name())
                .subject(&record.name)
                .found(format!("{shape:?}"))
        })?;
        let stored = SourceSpan {
            source: Rc::clone(source),
            begin: record.begin,
            bytes: record.bytes.unwrap_or(0),
        };
        let bytes = Bytes::Span(Span {
            stored,
            order,
            own_name: (record.name != name).then(|| record.name.as_str().into()),
        });
        Ok(Self::parameter(&name, &record.dtype, &shape, bytes))
    }

    /// Creates the tensor `name` of a file, whose bytes are the values of `encoded` in the order of the file.
    pub(crate) fn encoded(name: &str, shape: &[u64], encoded: Encoded) -> Self {
        let dtype = encoded.to.ggml().dtype();
        Self::parameter(name, &dtype, shape, Bytes::Encoded(Rc::new(encoded)))
    }

    /// Describes the tensor: everything but its bytes.
    pub fn manifest(&self) -> ModelStateTensorManifest {
        let path = self.path.as_ref().map(|path| path.to_vec());
        ModelStateTensorManifest {
            state_key: self.name.clone(),
            model_tree_path: path.unwrap_or_else(|| default_path(&self.name, self.role)),
            role: self.role,
            dtype: self.dtype.clone(),
            shape: self.shape.clone(),
        }
    }

    /// Place of its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Replaces the bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn with_bytes(self, bytes: Bytes) -> Self {
        Self {
            bytes,
            sum: Sum::default(),
            ..self
        }
    }

    /// Replaces the description.
    #[must_use]
    pub(crate) fn described(self, manifest: ModelStateTensorManifest) -> Self {
        let Self { bytes, sum, .. } = self;
        Self {
            sum,
            ..Self::new(manifest, bytes)
        }
    }

    /// Number of values; `None` beyond 64 bits.
    pub fn numel(&self) -> Option<u64> {
        numel(&self.shape)
    }

    /// Replaces the name; the one in its file stays.
    #[must_use]
    pub(crate) fn renamed(self, name: &str) -> Self {
        let mut tensor = self;
        if let Bytes::Span(span) = &mut tensor.bytes {
            let own = span.own_name.take();
            let own = own.unwrap_or_else(|| tensor.name.as_str().into());
            span.own_name = Some(own).filter(|own| **own != *name);
        }
        tensor.name = name.to_string();
        tensor
    }

    /// True if an optimizer keeps it.
    pub fn is_state(&self) -> bool {
        self.role.is_state()
    }

    /// True if its values are stored in blocks.
    pub fn is_blocks(&self) -> bool {
        self.dtype.starts_with("GGML:")
    }

    /// Shape in memory, which can address every dimension of a tensor that was opened or is on a device.
    #[doc(hidden)]
    pub fn dims(&self) -> Vec<usize> {
        let dim = |&dim| usize::try_from(dim).unwrap_or(usize::MAX);
        self.shape.iter().map(dim).collect()
    }

    /// Its dtype as a type of GGUF files; `None` for one that ggml does not have.
    pub(crate) fn ggml_type(&self) -> Option<GgmlType> {
        GgmlType::of_word(&self.dtype)
    }
}
