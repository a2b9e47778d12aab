//! Warnings about files, and limits on the length of lists of warnings and refusals.

use super::mark::Flaw;
use crate::error::{Error, Refusal, Word, shown, word};

/// Something worth knowing about a file that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Stable dotted word.
    pub code: &'static str,
    /// Tensor, key or shard, escaped and shortened.
    pub subject: String,
    /// Error message of a part of the model that was refused, if the model opened without it, or the fault of a document.
    #[serde(skip)]
    refused: Option<String>,
    /// Name of the file that is used instead of the refused part.
    #[serde(skip)]
    served_by: Option<&'static str>,
}

impl Warning {
    /// Creates a warning about `subject`, text of a file.
    #[doc(hidden)]
    pub fn new(code: Word, subject: &str) -> Self {
        Self { code: code.text(), subject: shown(subject), refused: None, served_by: None }
    }

    /// Creates a warning from the refusal of `part`, without which the model opened.
    pub(crate) fn of_error(error: &Error, part: &str) -> Self {
        let subject = if let Error::Refused(list) = error { list.first().and_then(|first| first.subject.clone()) } else { None };
        Self { code: error.code(), subject: subject.unwrap_or_else(|| part.to_string()), refused: Some(error.to_string()), served_by: None }
    }

    /// Creates a warning about the document `name`, in whose place there is something else that is not passed on.
    pub(crate) fn not_carried(name: &str, flaw: &Flaw) -> Self {
        Self { refused: Some(flaw.to_string()), ..Self::new(word!("tokenizer.file.other"), name) }
    }

    /// Records that the file `name` is used instead, if this warning is about a part that was refused.
    pub(crate) fn serve(&mut self, name: &'static str) {
        self.served_by = self.refused.as_ref().map(|_| name);
    }

    /// Returns the warning as a sentence.
    pub fn message(&self) -> String {
        let subject = &self.subject;
        if let Some(refused) = &self.refused {
            if self.code == word!("tokenizer.file.other").text() {
                return format!("{subject} is not carried: {refused}");
            }
            return match self.served_by {
                Some(name) => format!("the tokenizer was refused, and {name} serves in its place: {refused}"),
                None => format!("the tokenizer was refused, and the model goes without it: {refused}"),
            };
        }
        match self.code {
            "bundle.unused" => format!("{subject} lies next to the model and is not used"),
            "model.tensor.extra" => format!("the model has no place for the tensor {subject}: it is left out"),
            "model.config.default" => {
                format!("config.json does not state a key that its family has a default for, which is taken: {subject}")
            }
            "model.tensor.prefix" => {
                format!(
                    "the tensors have other prefixes than those of their family, as {subject} has: they are read under their family's names"
                )
            }
            "model.tied.copy" => format!("{subject} equals the input embedding: one copy is kept"),
            "adapter.untied" => format!("{subject} is tied to a tensor that the adapter changes: it continues with values of its own"),
            "adapter.vocabulary" => {
                format!("the adapter's tables have more rows than the base's and take their place: {subject}")
            }
            "adapter.base.differs" => {
                format!(
                    "the adapter was trained on other weights than these (digest {subject}): what it learned may not fit them; the same model in another type counts as another"
                )
            }
            "adapter.base.unnamed" => {
                format!(
                    "{subject} does not name the base, and PEFT will ask for it: name it in adapter_config.json, or on export with --base-model, in a browser with card.baseModel; or give PEFT the base itself"
                )
            }
            "gguf.key.unread" => format!("nothing is known to read the key {subject}: it is not used"),
            "export.lora.lost" => {
                format!(
                    "{subject} keeps less than half of what the adapter changes: keep the adapter apart, or ask for a type of more digits, if there is one"
                )
            }
            "export.gguf.end" => {
                format!("no document names a token that ends a text: llama.cpp and programs like it will end texts at {subject}")
            }
            "export.gguf.normalizer" => {
                format!(
                    "the tokenizer composes characters ({subject}) before it splits a text, which llama.cpp does not: a text with separate accents has other ids there"
                )
            }
            "export.gguf.token-border" => {
                format!(
                    "GGUF does not say that {subject} takes spaces around it, or is a whole word: texts with it may have other ids there"
                )
            }
            "adapter.zero" => {
                format!("all pairs of the adapter are zero, so that merging it changes none of its {subject}")
            }
            "export.gguf.type-kept" => {
                format!("the base's matrices that nothing changed keep their types: {subject}; convert the result to have all in one type")
            }
            "export.gguf.type-unused" => {
                format!("no matrix has rows of whole blocks of {subject}: all of them are written in the types that they fall back to")
            }
            "adapter.pair.absent" => {
                format!("the adapter names {subject} but has no pair for it, although other blocks have one: it stays as in the base")
            }
            "adapter.target.unmatched" => format!("the adapter's configuration names {subject}, and there is no tensor of it"),
            "adapter.target.excluded" => {
                format!("the adapter's configuration excludes {subject}, which has a pair in its file: like PEFT, the pair is not used")
            }
            "adapter.pattern.invalid" => {
                format!("{subject} has look-around or back references, or is no regular expression: no pair is left out because of it")
            }
            "adapter.rank.large" => format!("the rank of {subject} is larger than the smaller side of its matrix"),
            "model.vocab.padded" => format!("{subject} has more rows than the vocabulary: they are kept, as tokens that never occur"),
            "tokenizer.tokens.beyond" => {
                format!(
                    "the embedding has no row for the added tokens {subject}: they end and pad no text, and one that has them is refused"
                )
            }
            "tokenizer.file.pointer" => {
                format!("{subject} is a pointer of Git LFS and not carried: fetch the real file with git lfs pull")
            }
            "tokenizer.special.absent" => {
                format!(
                    "the files name special tokens that the vocabulary lacks; they have the next ids, for which the model may not have been trained: {subject}"
                )
            }
            "tokenizer.end.default" => {
                format!("the file does not name the token that ends a text: {subject} does, as in llama.cpp")
            }
            "tokenizer.end.ordinary" => {
                format!("config.json names the id {subject} among those that end a text: it is that of a part of texts, and ends none")
            }
            "tokenizer.id.other" => {
                format!("tokens have other ids than a file next to tokenizer.json states, as in transformers: {subject}")
            }
            "tokenizer.template.empty" => format!("the chat template in {subject} is empty, and counts as none"),
            "tokenizer.id.unused" => format!("no token has the {subject} id that the files state: it is not used"),
            "tensor.non-finite" => format!("{subject} has values that are NaN or infinite"),
            "safetensors.field.unknown" | "adapter.field.unknown" => format!("the field {subject} is unknown and not used"),
            "safetensors.name.unusual" => format!("the name {subject} has characters that are not shown as they are"),
            "gguf.value.not-utf8" => format!("the text of {subject} is not UTF-8"),
            "gguf.padding.final-absent" => format!("the padding after {subject} is absent"),
            "tokenizer.template" => format!("the chat template cannot be used, and is passed on as it is: {subject}"),
            "tokenizer.template.conflict" => format!("{subject} counts: tokenizer_config.json has another chat template"),
            "manifest.optimizer.absent" => format!("{subject} has groups, but their optimizer file is absent: the weights alone are used"),
            "select.pattern.unmatched" => format!("the pattern {subject} matches no tensor"),
            "select.exclude.unknown" => format!("{subject} was to be left out, and is not there"),
            "select.result.empty" => format!("nothing of {subject} was taken"),
            "remap.source.unselected" => format!("{subject} was to be renamed, and is not taken"),
            "index.total-size" => format!("{subject} is not the sum of the tensors"),
            code => format!("{subject}: {code}"),
        }
    }
}

/// Maximum number of warnings and of faults that are listed for one file: a file may cause millions.
pub(crate) const MAX_LISTED: usize = 10_000;

/// Adds a warning of a file; the warnings beyond the 10,000th are replaced by one whose subject is `…`.
pub(crate) fn add_warning(warnings: &mut Vec<Warning>, code: Word, subject: &str) {
    if warnings.len() <= MAX_LISTED {
        warnings.push(Warning::new(code, if warnings.len() < MAX_LISTED { subject } else { "…" }));
    }
}

/// Adds a fault of a file; those beyond the 10,000th are left out, and the last one's hint says so.
pub(crate) fn add_refusal(list: &mut Vec<Refusal>, refusal: Refusal) {
    if list.len() < MAX_LISTED {
        list.push(refusal);
    } else if let Some(last) = list.last_mut().filter(|last| last.hint.is_none()) {
        last.hint = Some("there are more of them".to_string());
    }
}
