//! The variants of the one error type: each names the thing, the expected value and the value that was found.

use super::refusal::first_of;
use super::shown::{escaped, listed, shown, shown_list};
use super::{Fault, Refusal, Word};

/// Everything that can go wrong in tabtune. [`Error::code`] is the stable code, [`Error::kind`] the class shown in TypeScript. Variants that have
/// only a text for people are left out of this page: tell them apart by their code.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // config
    /// A configuration that breaks rules; all of them are listed.
    #[error("invalid configuration: {}", listed(.0))]
    InvalidConfig(Vec<Fault>),
    /// A model that asks for something tabtune does not have.
    #[doc(hidden)]
    #[error("unsupported model: {what} is {found}; supported: {supported}")]
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
    #[error("no GPU adapter: {reason}")]
    NoAdapter {
        /// Reason.
        reason: String,
    },
    /// A device limit that is too small for the model.
    #[doc(hidden)]
    #[error("device limit {limit}: need {need}, have {have}")]
    LimitExceeded {
        /// Name of the limit in WebGPU.
        limit: &'static str,
        /// Needed value.
        need: u64,
        /// Value of the device.
        have: u64,
    },
    /// The device was lost or a read failed.
    #[error("device lost: {reason}")]
    DeviceLost {
        /// Message of the driver.
        reason: String,
    },

    // files
    /// One or more files were refused.
    #[error("{}", first_of(.0))]
    Refused(Vec<Refusal>),
    /// A source could not be read.
    #[doc(hidden)]
    #[error("cannot read {}: {}", escaped(name), escaped(reason))]
    SourceRead {
        /// Name of the source.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A sink could not be written.
    #[doc(hidden)]
    #[error("cannot write {}: {}", escaped(name), escaped(reason))]
    SinkWrite {
        /// Name of the sink.
        name: String,
        /// Reason.
        reason: String,
    },

    // model
    /// Tensors that the configuration calls for are not in the files.
    #[doc(hidden)]
    #[error("missing tensors: {}", shown_list(.0))]
    MissingTensors(Vec<String>),
    /// A tensor has another shape than the configuration says.
    #[doc(hidden)]
    #[error("tensor \"{}\": expected {expected:?}, found {found:?}", shown(name))]
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
    #[error("tensors without a place in the model: {}", shown_list(.0))]
    UnexpectedTensors(Vec<String>),
    /// A token id outside the vocabulary.
    #[doc(hidden)]
    #[error("token id {id} at position {position}: expected less than {vocab_size}")]
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
    #[error("sequence of {found} tokens: the model's context is {max}")]
    ContextExceeded {
        /// Requested length.
        found: usize,
        /// `max_position_embeddings`.
        max: usize,
    },

    // tokenizer
    /// A tokenizer file that cannot be used.
    #[doc(hidden)]
    #[error("tokenizer: {}: {}", escaped(what), escaped(reason))]
    Tokenizer {
        /// Operation that was tried, or the thing that failed.
        what: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The tokenizer cannot turn a text into ids.
    #[doc(hidden)]
    #[error("text: {}", escaped(reason))]
    TextNotEncodable {
        /// Reason.
        reason: String,
    },
    /// A chat template failed.
    #[doc(hidden)]
    #[error("chat template: {}", escaped(reason))]
    Template {
        /// Message of the template engine.
        reason: String,
    },

    // data
    /// Too little text for the settings.
    #[doc(hidden)]
    #[error("training data too short: need {need} tokens, have {have}")]
    DataTooShort {
        /// Tokens needed.
        need: usize,
        /// Tokens present.
        have: usize,
    },
    /// No example has anything to learn within the sequence length.
    #[doc(hidden)]
    #[error("none of {examples} examples has a target within seq_len {seq_len}")]
    DataNoTargets {
        /// Examples of the training part.
        examples: usize,
        /// T.
        seq_len: usize,
    },
    /// A text is neither UTF-8 nor UTF-16 with a byte order mark.
    #[doc(hidden)]
    #[error(
        "{}: expected UTF-8, or UTF-16 with a byte order mark, found the byte {byte:#04x} at {byte_offset}; convert it: iconv -f ENCODING -t UTF-8",
        escaped(file)
    )]
    DataEncoding {
        /// Name of the file.
        file: String,
        /// Position of the first bad byte, from 0.
        byte_offset: usize,
        /// The first bad byte.
        byte: u8,
    },
    /// A file of token ids is wrong.
    #[doc(hidden)]
    #[error("token ids: {reason}")]
    DataTokens {
        /// Reason.
        reason: String,
    },

    // optim
    /// A saved optimizer state does not fit; every difference is listed.
    #[error("optimizer state does not fit: {}", listed(.0))]
    StateMismatch(Vec<Fault>),
    /// A resumed run was given settings that contradict the checkpoint; all are listed.
    #[error("settings contradict the checkpoint: {}", listed(.0))]
    ResumeMismatch(Vec<Fault>),
    /// Parameter groups do not cover the model.
    #[error("parameter groups: {}", listed(.0))]
    Groups(Vec<Fault>),

    // train
    /// The loss or the gradient norm of a step is not finite, and nothing was changed; or the logits of a generated token are not finite.
    #[error("step {step}: {tensor} is {value}; nothing was changed")]
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
    #[error(
        "step {step}: grad_norm is {value}; with gradient_release parameters were updated before it was known: only a checkpoint continues this run"
    )]
    NonFiniteReleased {
        /// The step that failed.
        step: u64,
        /// The norm.
        value: f64,
    },

    // checkpoint
    /// A checkpoint is damaged or incomplete.
    #[doc(hidden)]
    #[error("checkpoint is damaged: {}: {}", escaped(what), escaped(reason))]
    CheckpointCorrupt {
        /// File or field.
        what: String,
        /// Reason.
        reason: String,
    },
    /// A checkpoint of another format.
    #[doc(hidden)]
    #[error("checkpoint format {found}: this version reads {supported}")]
    CheckpointVersion {
        /// Format of the file.
        found: u64,
        /// Format that this version reads.
        supported: u64,
    },
    /// A file of a checkpoint whose length is not the one in its manifest.
    #[doc(hidden)]
    #[error("checkpoint is damaged: {}: expected {expected} bytes, found {found}", escaped(file))]
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
    #[error("checkpoint is damaged: {}, piece {piece}: expected SHA-256 {}, found {found}", escaped(file), shown(expected))]
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
    #[error("not a whole tabtune checkpoint file: {}", escaped(reason))]
    CheckpointContainer {
        /// `checkpoint.container.` and the part that is wrong: `magic`, `head`, `name`, `chunk` or `length`.
        word: Word,
        /// Reason.
        reason: String,
    },

    // kernels
    /// A tensor of a backend on which these kernels do not run.
    #[doc(hidden)]
    #[error("expected a tensor on wgpu, or on Burn's CPU backend with the feature `cpu`, found one on {}", shown(found))]
    ForeignBackend {
        /// Device of the tensor.
        found: String,
    },
    /// One launch with buffers of different devices.
    #[doc(hidden)]
    #[error("kernel {kernel}: expected buffers of one device, found {}", .found.join(", "))]
    MixedDevices {
        /// Name of the kernel.
        kernel: &'static str,
        /// Each buffer with its device.
        found: Vec<String>,
    },

    // session
    /// The caller asked for the work to end; the state is that of the last complete step.
    #[error("ended because the caller asked for it")]
    Aborted,
    /// A command that the present state does not allow.
    #[error("busy: {doing}")]
    Busy {
        /// Work that is in progress.
        doing: &'static str,
    },
}
