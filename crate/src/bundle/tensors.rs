//! An opened model: configuration, tokenizer, and its tensors by their Hugging Face names, read one at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::adapter::{LoraConfig, MergedAdapter};
use super::files::Files;
use super::refusals::refused;
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Warning, Word, word};
use crate::families::half;
use crate::formats::{ByteSource, GgufValue, base_name};
use crate::state::{Base, Bytes, PIECE_ELEMENTS, Pieces, SelectionReport, SourceFormat, Tensor};
use crate::tokenizer::Tokenizer;

/// Maximum number of names in the list of one finding.
pub(super) const MAX_NAMES: usize = 8;

/// One model: the contents of its files, and access to its tensors ([example](crate)).
pub struct Bundle {
    /// Shape of the model.
    pub config: ModelConfig,
    /// Tokenizer, if the files have one.
    pub tokenizer: Option<Tokenizer>,
    pub(super) tokenizer_refused: Option<Error>,
    /// Format of the files that the model came from.
    #[doc(hidden)]
    pub source_format: SourceFormat,
    /// The weight files with their checksums.
    pub base: Base,
    /// Tensors that a request took and left, by their names in the files; empty without a request.
    #[doc(hidden)]
    pub selection: SelectionReport,
    /// `config.json` byte for byte, if the model came as a folder.
    #[doc(hidden)]
    pub config_json: Option<Vec<u8>>,
    /// `generation_config.json` byte for byte, if present.
    #[doc(hidden)]
    pub generation_config_json: Option<Vec<u8>>,
    /// Documents of the tokenizer other than those that it holds itself, by name, byte for byte.
    pub(super) tokenizer_documents: Vec<(String, Vec<u8>)>,
    /// Keys of a GGUF file about the origin of the model, which a new one gets again.
    pub(super) origin: Vec<(String, GgufValue)>,
    /// Unusual but allowed properties of the files.
    pub warnings: Vec<Warning>,
    pub(super) files: Vec<Rc<dyn ByteSource>>,
    pub(super) tensors: BTreeMap<String, Tensor>,
    /// The merged or attached adapter; its file is the last one.
    pub(super) adapter: Option<MergedAdapter>,
    /// The factors of an attached adapter.
    pub(super) factors: BTreeMap<String, Tensor>,
    /// Tensors of the base in whose place the adapter has its own.
    pub(super) replaced: BTreeMap<String, Tensor>,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Bundle");
        out.field("config", &self.config)
            .field("source_format", &self.source_format)
            .field("tensors", &self.tensors.len());
        out.finish_non_exhaustive()
    }
}

impl Bundle {
    /// Creates a model without tensors or anything else, in files of this format.
    pub(super) fn new(config: ModelConfig, source_format: SourceFormat, files: Files) -> Self {
        Self {
            config,
            tokenizer: None,
            tokenizer_refused: None,
            source_format,
            base: Base::default(),
            selection: SelectionReport::default(),
            config_json: None,
            generation_config_json: None,
            tokenizer_documents: Vec::new(),
            origin: Vec::new(),
            warnings: Vec::new(),
            tensors: BTreeMap::new(),
            files,
            adapter: None,
            factors: BTreeMap::new(),
            replaced: BTreeMap::new(),
        }
    }

    /// Adds the tensors.
    ///
    /// # Errors
    /// `model.tensor.name-twice`.
    pub(super) fn with_tensors(mut self, tensors: Vec<Tensor>) -> Result<Self> {
        for tensor in tensors {
            let refusal = refused(
                word!("model.tensor.name-twice"),
                artifact(&tensor),
                &tensor.name,
            );
            if self.tensors.insert(tensor.name.clone(), tensor).is_some() {
                return Err(refusal.into());
            }
        }
        Ok(self)
    }

    /// Creates a model of this shape without files, whose tensors come from a state ([`Self::with_values`]).
    #[doc(hidden)]
    pub fn without_files(config: ModelConfig) -> Self {
        Self::new(config, SourceFormat::HfFolder, Vec::new())
    }

    /// The model with `values` in the place of its tensors of these names, or in addition to them: shape and tensors, without documents.
    pub(crate) fn with_values(&self, values: Vec<Tensor>) -> Self {
        let mut model = Self::new(self.config.clone(), self.source_format, self.files.clone());
        model.tensors.clone_from(&self.tensors);
        model.factors.clone_from(&self.factors);
        for tensor in values {
            let list = match half(&tensor.name) {
                Some(_) => &mut model.factors,
                None => &mut model.tensors,
            };
            list.insert(tensor.name.clone(), tensor);
        }
        model
    }

    /// Adds a warning about `subject`.
    pub(super) fn warn(&mut self, code: Word, subject: &str) {
        self.warnings.push(Warning::new(code, subject));
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// The reason why there is none: its refusal, or that the files have none.
    pub fn need_tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer
            .as_ref()
            .ok_or_else(|| no_tokenizer(self.tokenizer_refused.as_ref()))
    }

    /// The reason why the files' tokenizer was refused; `None` if they have none or it is used.
    #[doc(hidden)]
    pub fn tokenizer_refused(&self) -> Option<&Error> {
        self.tokenizer_refused.as_ref()
    }

    /// Lists name and size of each file of the model, without that of a merged adapter.
    #[doc(hidden)]
    pub fn sources(&self) -> impl Iterator<Item = (&str, u64)> {
        let files = self.own_files().iter();
        files.map(|file| (file.name(), file.len()))
    }

    /// Its own files, without that of an adapter.
    pub(crate) fn own_files(&self) -> &[Rc<dyn ByteSource>] {
        &self.files[..self.files.len() - usize::from(self.adapter.is_some())]
    }

    /// Its own files, if an adapter was merged into the model; else none.
    pub(crate) fn merged_files(&self) -> &[Rc<dyn ByteSource>] {
        self.merged().map_or(&[], |_| self.own_files())
    }

    /// Lists the names of the files that hold tensors.
    pub(crate) fn weight_files(&self) -> Vec<&str> {
        let files = self.files.iter();
        let homes = files.filter(|file| self.tensors.values().any(|tensor| is_home(file, tensor)));
        homes.map(|home| base_name(home.name())).collect()
    }

    /// Lists the Hugging Face names of all tensors in ascending order, without a tied head.
    pub fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    /// Iterates over the tensors of the model, in the order of their names.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.values()
    }

    /// Finds the tensor of this name, of the model or of the attached adapter.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name).or_else(|| self.factors.get(name))
    }

    /// Finds the tensor of this name.
    ///
    /// # Errors
    /// `model.tensor.missing` if there is none.
    pub(crate) fn need_tensor(&self, name: &str) -> Result<&Tensor> {
        let absent = || Refusal::new(word!("model.tensor.missing")).stage("read");
        Ok(self.tensor(name).ok_or_else(|| absent().subject(name))?)
    }

    /// Finds the tensor of the model's own files that this one is or was made of. The name is one of the model's.
    pub(super) fn stored(&self, name: &str) -> &Tensor {
        let tensor = self.replaced.get(name).unwrap_or(&self.tensors[name]);
        tensor.merged().map_or(tensor, |merged| &merged.base)
    }

    /// Configuration of the attached adapter; `None` if there is none or it is merged.
    #[doc(hidden)]
    pub fn attached(&self) -> Option<&LoraConfig> {
        let attached = self.adapter.as_ref().filter(|_| !self.factors.is_empty());
        attached.map(|adapter| &adapter.config)
    }

    /// Adapter that was merged or attached on opening, if any.
    #[doc(hidden)]
    pub fn merged_adapter(&self) -> Option<&MergedAdapter> {
        self.adapter.as_ref()
    }

    /// Adapter that is merged into the model; `None` if there is none or it is attached.
    pub(super) fn merged(&self) -> Option<&MergedAdapter> {
        self.adapter.as_ref().filter(|_| self.factors.is_empty())
    }

    /// Shape in Hugging Face's layout; `None` without such a tensor.
    #[doc(hidden)]
    pub fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensor(name).map(Tensor::dims)
    }

    /// Stored dtype: a safetensors word, or `GGML:<type>` for blocks. Blocks that an adapter was merged into are F32.
    #[doc(hidden)]
    pub fn dtype(&self, name: &str) -> Option<String> {
        self.tensor(name).map(|tensor| tensor.dtype.clone())
    }

    /// Reads the tensor's values, row-major in Hugging Face's layout, in pieces of at most `max_elements` values; blocks are dequantised, and
    /// the pair of a merged adapter is added.
    ///
    /// # Errors
    /// `model.tensor.missing`, a dtype without a decoder, `source.too-large`, and errors of reading a merged adapter's pair.
    #[doc(hidden)]
    pub fn pieces(&self, name: &str, max_elements: usize) -> Result<Pieces> {
        self.need_tensor(name)?.pieces(max_elements)
    }

    /// Reads the values like [`Self::pieces`], but sums with an adapter as they are in f32, whatever the dtype of the tensor.
    pub(crate) fn exact_pieces(&self, name: &str, max_elements: usize) -> Result<Pieces> {
        let tensor = self.need_tensor(name)?.clone();
        tensor.summed_exactly(true).pieces(max_elements)
    }

    /// Reads the values of the base's own tensor, even if an attached adapter replaced it.
    pub(crate) fn base_pieces(&self, name: &str, max_elements: usize) -> Result<Pieces> {
        match self.replaced.get(name) {
            Some(replaced) => replaced.pieces(max_elements),
            None => self.pieces(name, max_elements),
        }
    }

    /// Counts the NaN and infinite values of a tensor; reads all of it.
    ///
    /// # Errors
    /// The errors of [`Self::pieces`] and of reading.
    #[doc(hidden)]
    pub fn non_finite(&self, name: &str) -> Result<u64> {
        let mut pieces = self.pieces(name, PIECE_ELEMENTS)?;
        while pieces.next_piece()?.is_some() {}
        Ok(pieces.non_finite())
    }

    /// Reads all values of a tensor that is known to be small.
    ///
    /// # Errors
    /// The errors of [`Self::pieces`] and of reading.
    pub fn read_f32(&self, name: &str) -> Result<Vec<f32>> {
        self.pieces(name, PIECE_ELEMENTS)?.collect()
    }
}

/// Finds the file that a tensor is in.
fn home(tensor: &Tensor) -> Option<&Rc<dyn ByteSource>> {
    match tensor.bytes() {
        Bytes::Span(span) => Some(&span.stored.source),
        Bytes::Merged(merged) => home(&merged.base),
        Bytes::Moved(moved) => home(&moved.base),
        _ => None,
    }
}

/// Tells if a tensor is in this file.
pub(super) fn is_home(file: &Rc<dyn ByteSource>, tensor: &Tensor) -> bool {
    home(tensor).is_some_and(|home| Rc::ptr_eq(home, file))
}

/// Names the file that a tensor is in.
pub(super) fn artifact(tensor: &Tensor) -> &str {
    home(tensor).map_or("", |file| file.name())
}

/// Explains why a text cannot be converted to ids.
pub(super) fn no_tokenizer(refused: Option<&Error>) -> Error {
    let absent = || Error::Tokenizer {
        what: "model files".into(),
        reason: "there is no tokenizer.json among them".into(),
    };
    refused.cloned().unwrap_or_else(absent)
}
