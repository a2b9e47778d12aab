//! The variants of the one error type: each names the thing, the expected value and the value that was found.

use super::{Fault, Refusal, Word};

/// Everything that can go wrong in tabtune. [`Error::code`] is the stable code, [`Error::kind`] the class shown in TypeScript. Variants that have
/// only a text for people are left out of this page: tell them apart by their code ([example](crate)).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    // config
    /// A configuration that breaks rules; all of them are listed.
    InvalidConfig(Vec<Fault>),
    /// A model that asks for something tabtune does not have.
    #[doc(hidden)]
    UnsupportedModel {
        /// The key or part.
        what: String,
        /// Its value.
        found: String,
        /// Supported values.
        supported: String,
    },

    // device
    /// No usable GPU adapter.
    #[doc(hidden)]
    NoAdapter {
        /// Reason.
        reason: String,
    },
    /// A device limit that is too small for the model.
    #[doc(hidden)]
    LimitExceeded {
        /// Name of the limit in WebGPU.
        limit: &'static str,
        /// Needed value.
        need: u64,
        /// Value of the device.
        have: u64,
    },
    /// The device was lost or a read failed.
    DeviceLost {
        /// Message of the driver.
        reason: String,
    },

    // files
    /// One or more files were refused.
    Refused(Vec<Refusal>),
    /// A source could not be read.
    #[doc(hidden)]
    SourceRead {
        /// Name of the source.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A sink could not be written.
    #[doc(hidden)]
    SinkWrite {
        /// Name of the sink.
        name: String,
        /// Reason.
        reason: String,
    },

    // model
    /// Tensors that the configuration calls for are not in the files.
    #[doc(hidden)]
    MissingTensors(Vec<String>),
    /// A tensor has another shape than the configuration says.
    #[doc(hidden)]
    TensorShape {
        /// Name of the tensor.
        name: String,
        /// Shape by the configuration.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A tensor of the files has no place in the model.
    #[doc(hidden)]
    UnexpectedTensors(Vec<String>),
    /// A token id outside the vocabulary.
    #[doc(hidden)]
    TokenRange {
        /// The id.
        id: i64,
        /// Its index.
        position: usize,
        /// Size of the vocabulary.
        vocab_size: usize,
    },
    /// A sequence that is longer than the model's context.
    #[doc(hidden)]
    ContextExceeded {
        /// Requested length.
        found: usize,
        /// `max_position_embeddings`.
        max: usize,
    },

    // tokenizer
    /// A tokenizer file that cannot be used.
    #[doc(hidden)]
    Tokenizer {
        /// Operation that was tried, or the thing that failed.
        what: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The tokenizer cannot turn a text into ids.
    #[doc(hidden)]
    TextNotEncodable {
        /// Reason.
        reason: String,
    },
    /// A chat template failed.
    #[doc(hidden)]
    Template {
        /// Message of the template engine.
        reason: String,
    },

    // data
    /// Too little text for the settings.
    #[doc(hidden)]
    DataTooShort {
        /// Tokens needed.
        need: usize,
        /// Tokens present.
        have: usize,
    },
    /// No example has anything to learn within the sequence length.
    #[doc(hidden)]
    DataNoTargets {
        /// Examples of the training part.
        examples: usize,
        /// T.
        seq_len: usize,
    },
    /// A text is neither UTF-8 nor UTF-16 with a byte order mark.
    #[doc(hidden)]
    DataEncoding {
        /// Name of the file.
        file: String,
        /// Position of the first bad byte, from 0.
        byte_offset: usize,
        /// The first bad byte.
        byte: u8,
        /// Encoding that the bytes seem to have.
        looks_like: Option<&'static str>,
    },
    /// A file of token ids is wrong.
    #[doc(hidden)]
    DataTokens {
        /// Reason.
        reason: String,
    },

    // optim
    /// A saved optimizer state does not fit; every difference is listed.
    StateMismatch(Vec<Fault>),
    /// A resumed run was given settings that contradict the checkpoint; all are listed.
    ResumeMismatch(Vec<Fault>),
    /// Parameter groups do not cover the model.
    Groups(Vec<Fault>),

    // train
    /// The loss or the gradient norm of a step is not finite, and nothing was changed; or the logits of a generated token are not finite.
    NonFinite {
        /// The step that was refused; in generation, the number of tokens so far.
        step: u64,
        /// `loss`, `gradient of` a parameter, or `grad_norm` where only the sum overflows; `logits` in generation.
        tensor: String,
        /// The value.
        value: f64,
    },
    /// The gradient norm of a step with gradient release is not finite, which is known only after parameters have been updated.
    #[doc(hidden)]
    NonFiniteReleased {
        /// The step that failed.
        step: u64,
        /// The norm.
        value: f64,
    },

    // checkpoint
    /// A checkpoint is damaged or incomplete.
    #[doc(hidden)]
    CheckpointCorrupt {
        /// File or field.
        what: String,
        /// Reason.
        reason: String,
    },
    /// A checkpoint of another format.
    #[doc(hidden)]
    CheckpointVersion {
        /// Format of the file.
        found: u64,
        /// Format that this version reads.
        supported: u64,
    },
    /// A file of a checkpoint whose length is not the one in its manifest.
    #[doc(hidden)]
    CheckpointLength {
        /// The file.
        file: String,
        /// Length in bytes according to the manifest.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// A piece of a checkpoint's file whose bytes are not those that were saved.
    #[doc(hidden)]
    CheckpointHash {
        /// The file.
        file: String,
        /// Index of the piece, from 0.
        piece: u64,
        /// SHA-256 in the manifest.
        expected: String,
        /// SHA-256 of the bytes that were read.
        found: String,
    },
    /// A checkpoint in one file that is not whole.
    #[doc(hidden)]
    CheckpointContainer {
        /// `checkpoint.container.` and the part that is wrong: `magic`, `head`, `name`, `chunk` or `length`.
        word: Word,
        /// Reason.
        reason: String,
    },

    // kernels
    /// A tensor of a backend on which these kernels do not run.
    #[doc(hidden)]
    ForeignBackend {
        /// Device of the tensor.
        found: String,
    },
    /// One launch with buffers of different devices.
    #[doc(hidden)]
    MixedDevices {
        /// Name of the kernel.
        kernel: &'static str,
        /// Each buffer with its device.
        found: Vec<String>,
    },

    // session
    /// The caller asked for the work to end; the state is that of the last complete step.
    Aborted,
    /// A command that the present state does not allow.
    Busy {
        /// Work that is in progress.
        doing: &'static str,
    },
}
