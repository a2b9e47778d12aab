//! Every dotted word that Rust raises. An unlisted one does not compile: [`word!`](crate::word) looks it up while compiling.

/// A dotted word of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(&'static str);

/// A word of the list; any other text does not compile.
#[macro_export]
macro_rules! word {
    ($text:literal) => {{
        const WORD: $crate::error::Word = $crate::error::Word::listed($text);
        WORD
    }};
}
pub use crate::word;

impl Word {
    /// The word `text` of the list.
    ///
    /// # Panics
    /// Where the list lacks it, or no class covers it.
    pub const fn listed(text: &'static str) -> Self {
        let mut at = 0;
        while at < WORDS.len() {
            if WORDS[at].len() == text.len() && starts(text.as_bytes(), WORDS[at].as_bytes()) {
                assert!(!class(text).is_empty(), "no class covers this word");
                return Self(text);
            }
            at += 1;
        }
        panic!("not a word of crate/src/error/words.rs")
    }

    /// The text.
    pub const fn text(self) -> &'static str {
        self.0
    }
}

const fn starts(text: &[u8], start: &[u8]) -> bool {
    let mut at = 0;
    while at < start.len() {
        if at >= text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The upper-case class of a word: that of the longest row of the table that begins it, at a dot. Empty where there is none.
pub const fn class(word: &str) -> &'static str {
    let (mut at, mut best, mut found) = (0, 0, "");
    while at < CLASSES.len() {
        let (start, class) = CLASSES[at];
        let whole = word.len() == start.len() || word.len() > start.len() && word.as_bytes()[start.len()] == b'.';
        if start.len() > best && whole && starts(word.as_bytes(), start.as_bytes()) {
            best = start.len();
            found = class;
        }
        at += 1;
    }
    found
}

/// Beginnings of words, and the class of those that have no longer beginning here.
pub const CLASSES: &[(&str, &str)] = &[
    ("adapter", "BAD_MODEL_FILE"),
    ("bundle", "BAD_MODEL_FILE"),
    ("call.aborted", "ABORTED"),
    ("checkpoint", "CHECKPOINT_CORRUPT"),
    ("checkpoint.version", "CHECKPOINT_VERSION"),
    ("cli", "BAD_OPTION"),
    ("config", "BAD_OPTION"),
    ("data", "BAD_OPTION"),
    ("device.limit", "LIMIT_EXCEEDED"),
    ("device.lost", "DEVICE_LOST"),
    ("device.no-adapter", "NO_ADAPTER"),
    ("digest", "INTEGRITY"),
    ("export", "BAD_OPTION"),
    ("format", "BAD_MODEL_FILE"),
    ("gguf", "BAD_MODEL_FILE"),
    ("gguf.tensor.type-unknown", "UNSUPPORTED_QUANT"),
    ("gguf.tensor.type-unsupported", "UNSUPPORTED_QUANT"),
    ("index", "BAD_MODEL_FILE"),
    ("integrity", "INTEGRITY"),
    ("json", "BAD_MODEL_FILE"),
    ("kernel", "SHADER_FAILED"),
    ("model.arch", "UNSUPPORTED_ARCH"),
    ("model.config", "UNSUPPORTED_ARCH"),
    ("model.config.type", "BAD_MODEL_FILE"),
    ("model.context", "BAD_OPTION"),
    ("model.non-finite", "NON_FINITE"),
    ("model.tensor", "BAD_MODEL_FILE"),
    ("model.tied", "BAD_MODEL_FILE"),
    ("model.token-range", "BAD_OPTION"),
    ("model.vocab", "BAD_MODEL_FILE"),
    ("optim.groups", "BAD_OPTION"),
    ("optim.resume-mismatch", "CHECKPOINT_MISMATCH"),
    ("optim.state-dropped", "CHECKPOINT_MISMATCH"),
    ("optim.state-mismatch", "CHECKPOINT_MISMATCH"),
    ("safetensors", "BAD_MODEL_FILE"),
    ("session.busy", "BUSY"),
    ("sink", "STORAGE_FAILED"),
    ("source", "BAD_MODEL_FILE"),
    ("source.too-large", "LIMIT_EXCEEDED"),
    ("template", "BAD_MODEL_FILE"),
    ("tensor.non-finite", "BAD_MODEL_FILE"),
    ("tokenizer", "BAD_MODEL_FILE"),
    ("tokenizer.text", "BAD_OPTION"),
    ("train.non-finite", "NON_FINITE"),
];

/// The words, sorted. They are never renamed.
pub const WORDS: &[&str] = &[
    "adapter.alpha",
    "adapter.depth",
    "adapter.feature.unsupported",
    "adapter.field.missing",
    "adapter.field.type",
    "adapter.field.unknown",
    "adapter.json",
    "adapter.key.duplicate",
    "adapter.pattern.length",
    "adapter.rank",
    "adapter.target.none",
    "adapter.type.unsupported",
    "bundle.adapter",
    "bundle.ambiguous",
    "bundle.config.json",
    "bundle.config.key-missing",
    "bundle.config.missing",
    "bundle.empty",
    "bundle.unused",
    "bundle.weights.missing",
    "call.aborted",
    "checkpoint.chunk.hash",
    "checkpoint.container.chunk",
    "checkpoint.container.head",
    "checkpoint.container.length",
    "checkpoint.container.magic",
    "checkpoint.container.name",
    "checkpoint.corrupt",
    "checkpoint.data.changed",
    "checkpoint.environment",
    "checkpoint.file.length",
    "checkpoint.version",
    "cli.internal",
    "cli.json",
    "cli.stdout",
    "cli.usage",
    "config.invalid",
    "data.line",
    "data.no-targets",
    "data.tokens",
    "data.too-short",
    "data.utf8",
    "device.limit",
    "device.lost",
    "device.no-adapter",
    "digest.mismatch",
    "export.name.invalid",
    "export.tensor.size",
    "format.mismatch",
    "format.unsupported",
    "gguf.alignment.invalid",
    "gguf.array.limit",
    "gguf.count.limit",
    "gguf.data.trailing",
    "gguf.data.truncated",
    "gguf.header.truncated",
    "gguf.key.duplicate",
    "gguf.key.empty",
    "gguf.key.length",
    "gguf.key.utf8",
    "gguf.magic.invalid",
    "gguf.name.duplicate",
    "gguf.name.invalid",
    "gguf.name.length",
    "gguf.name.utf8",
    "gguf.offset.gap",
    "gguf.offset.misaligned",
    "gguf.offset.order",
    "gguf.offset.out-of-file",
    "gguf.offset.overlap",
    "gguf.padding.final-absent",
    "gguf.split.incomplete",
    "gguf.split.mismatch",
    "gguf.string.limit",
    "gguf.tensor.block-row",
    "gguf.tensor.dim-range",
    "gguf.tensor.rank",
    "gguf.tensor.size-overflow",
    "gguf.tensor.type-unknown",
    "gguf.tensor.type-unsupported",
    "gguf.value.bool",
    "gguf.value.nested-array",
    "gguf.value.not-utf8",
    "gguf.value.type",
    "gguf.version.big-endian",
    "gguf.version.unsupported",
    "index.count.limit",
    "index.depth",
    "index.field.missing",
    "index.field.type",
    "index.json",
    "index.key.duplicate",
    "index.shard.missing",
    "index.shard.name",
    "index.tensor.duplicate",
    "index.tensor.missing",
    "index.tensor.unlisted",
    "index.tensor.wrong-shard",
    "index.total-size",
    "json.base64",
    "json.depth",
    "json.dtype",
    "json.encoding",
    "json.field.type",
    "json.format",
    "json.key.duplicate",
    "json.shape",
    "json.size",
    "json.syntax",
    "json.tensor.length",
    "json.value.range",
    "json.value.type",
    "json.version",
    "kernel.mixed-devices",
    "model.arch.unsupported",
    "model.config.context",
    "model.config.heads",
    "model.config.kv-heads",
    "model.config.layers",
    "model.config.rope",
    "model.config.type",
    "model.config.unsupported",
    "model.context",
    "model.non-finite",
    "model.tensor.dtype",
    "model.tensor.extra",
    "model.tensor.missing",
    "model.tensor.name-twice",
    "model.tensor.shape",
    "model.tensor.unexpected",
    "model.tied.conflict",
    "model.tied.copy",
    "model.token-range",
    "model.vocab.padded",
    "model.vocab.rows",
    "optim.groups",
    "optim.resume-mismatch",
    "optim.state-dropped",
    "optim.state-mismatch",
    "safetensors.count.limit",
    "safetensors.data.trailing",
    "safetensors.data.truncated",
    "safetensors.dtype.sub-byte",
    "safetensors.dtype.unknown",
    "safetensors.field.missing",
    "safetensors.field.type",
    "safetensors.field.unknown",
    "safetensors.header.depth",
    "safetensors.header.json",
    "safetensors.header.past-end",
    "safetensors.header.start",
    "safetensors.header.too-large",
    "safetensors.header.truncated",
    "safetensors.header.utf8",
    "safetensors.key.duplicate",
    "safetensors.metadata.type",
    "safetensors.name.invalid",
    "safetensors.name.unusual",
    "safetensors.number.invalid",
    "safetensors.offset.gap",
    "safetensors.offset.order",
    "safetensors.offset.overlap",
    "safetensors.payload.bool",
    "safetensors.shape.overflow",
    "safetensors.shape.rank",
    "safetensors.tensor.size-mismatch",
    "session.busy",
    "sink.write",
    "source.read",
    "source.too-large",
    "source.truncated",
    "template.budget",
    "tensor.non-finite",
    "tokenizer.budget",
    "tokenizer.id.range",
    "tokenizer.invalid",
    "tokenizer.merge.unknown-part",
    "tokenizer.merges.missing",
    "tokenizer.model.missing",
    "tokenizer.model.unsupported",
    "tokenizer.scores.length",
    "tokenizer.scores.type",
    "tokenizer.size.mismatch",
    "tokenizer.template",
    "tokenizer.template.missing",
    "tokenizer.text",
    "tokenizer.token.byte-form",
    "tokenizer.token.duplicate",
    "tokenizer.tokens.missing",
    "tokenizer.types.length",
    "train.non-finite",
];
