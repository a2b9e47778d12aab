//! Reads the vocabulary of a GGUF file, with what llama.cpp takes where the file says nothing.

use crate::error::{Error, Refusal, Result, Warning, Word, word};
use crate::formats::{GgufFile, GgufValue};
use crate::tokenizer::{
    FILLS, GgufIds, PartsModel, TOKENIZER_JSON_SERVES, Tokenizer, TokenizerParts,
};

const NORMAL: i32 = 1;
const UNUSED: u64 = 5;

/// Value of the model key in a file without a tokenizer, as llama.cpp expects it.
pub(super) const NONE: &str = "none";
/// Prefix of the keys of a vocabulary.
pub(super) const PREFIX: &str = "tokenizer.ggml.";
/// Key of the chat template without a name.
pub(super) const TEMPLATE: &str = "tokenizer.chat_template";
/// Prefix of the keys of named chat templates.
pub(super) const NAMED_TEMPLATE: &str = "tokenizer.chat_template.";

/// Roles whose ids the metadata may state as `<role>_token_id`, and the word that messages use.
pub(super) const IDS: [(&str, &str); 10] = [
    ("bos", "bos"),
    ("eos", "eos"),
    ("eot", "eot"),
    ("eom", "eom"),
    ("unknown", "unk"),
    ("padding", "pad"),
    ("seperator", "sep"),
    ("separator", "sep"),
    ("cls", "cls"),
    ("mask", "mask"),
];

/// Roles of tokens around code that is to be filled in, each also by the name that files had before.
pub(super) const FILL_IDS: [&[&str]; FILLS] = [
    &["fim_pre", "prefix"],
    &["fim_suf", "suffix"],
    &["fim_mid", "middle"],
    &["fim_pad"],
    &["fim_rep"],
    &["fim_sep"],
];

pub(super) fn refuse(code: Word) -> Refusal {
    Refusal::new(code).stage("bind")
}

/// Metadata of the tokenizer of a GGUF file, by keys without [`PREFIX`].
#[derive(Clone, Copy)]
pub(super) struct Metadata<'a>(pub(super) &'a GgufFile);

impl<'a> Metadata<'a> {
    /// Lists the keys and values of the vocabulary.
    pub(super) fn entries(self) -> impl Iterator<Item = &'a (String, GgufValue)> {
        let entries = self.0.metadata.iter();
        entries.filter(|(key, _)| key.starts_with(PREFIX))
    }

    pub(super) fn get(self, key: &str) -> Option<&'a GgufValue> {
        self.0.get(&format!("{PREFIX}{key}"))
    }

    /// The word of its rule; `None` if the file has no tokenizer or does not say.
    pub(super) fn model(self) -> Option<&'a str> {
        self.get("model")?.text()
    }

    pub(super) fn flag(self, key: &str) -> Option<bool> {
        self.get(key)?.bool()
    }

    /// The value of the id of a role, of whatever type.
    pub(super) fn stated_id(self, role: &str) -> Option<&'a GgufValue> {
        self.get(&format!("{role}_token_id"))
    }

    /// The id of a role, which may be beyond the vocabulary.
    pub(super) fn id(self, role: &str) -> Option<u32> {
        u32::try_from(self.stated_id(role)?.count()?).ok()
    }

    /// Number of tokens.
    pub(super) fn count(self) -> u64 {
        let tokens = self.get("tokens").and_then(GgufValue::array);
        tokens.map_or(0, |(_, count)| count)
    }

    /// Type of each token; none if all are normal.
    pub(super) fn types(self) -> Vec<u64> {
        let types = self.get("token_type").and_then(GgufValue::counts);
        types.unwrap_or_default()
    }

    /// The id that pads a text, if a token has it.
    pub(super) fn pad(self) -> Option<u32> {
        self.id("padding")
            .filter(|id| u64::from(*id) < self.count())
    }

    /// The ids that end a text or a turn: eos, eot, eom without repeats.
    pub(super) fn ends(self) -> Vec<u32> {
        let mut ids = Vec::new();
        for id in ["eos", "eot", "eom"]
            .into_iter()
            .filter_map(|role| self.id(role))
        {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// Lists the named chat templates, declared or not.
    pub(super) fn named_templates(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let entries = self.0.metadata.iter();
        entries.filter_map(|(key, value)| Some((key.strip_prefix(NAMED_TEMPLATE)?, value.text()?)))
    }

    /// The texts of a list; none if it is absent.
    fn texts(self, key: &str) -> Result<Vec<String>> {
        let list = self.get(key).and_then(GgufValue::texts).unwrap_or_default();
        let text = |text: &[u8]| match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_string()),
            Err(error) => Err(Error::Tokenizer {
                what: format!("{PREFIX}{key}"),
                reason: error.to_string(),
            }),
        };
        list.into_iter().map(text).collect()
    }
}

/// Backslash in the spelling of a vocabulary of `rwkv`, where it begins an escape.
pub(super) const ESCAPED: &str = "\\\\";

/// Tells if a token of `rwkv` is one character in the spelling that tabtune writes.
fn is_character(token: &str) -> bool {
    token == ESCAPED || token != "\\" && token.chars().count() == 1
}

/// Creates the tokenizer of metadata that passed [`check_tokenizer`]; `None` if the file has none. The warning is about a file that names no
/// end of a text, where llama.cpp takes a token for it that is a part of texts.
pub(super) fn read_tokenizer(
    file: &GgufFile,
    name: &str,
) -> Result<Option<(Tokenizer, Option<Warning>)>> {
    let Some(parts) = tokenizer_parts(file, name)? else {
        return Ok(None);
    };
    let is_text = |id: &usize| parts.types.get(*id).is_none_or(|kind| *kind == NORMAL);
    let unnamed = Metadata(file).stated_id("eos").is_none();
    let end = parts.eos.first().map(|id| *id as usize);
    let end = end.filter(|id| unnamed && is_text(id));
    let warning = end.and_then(|id| {
        let subject = format!("{} (id {id})", parts.tokens.get(id)?);
        Some(Warning::new(word!("tokenizer.end.default"), &subject))
    });
    Ok(Some((Tokenizer::from_parts(parts)?, warning)))
}

/// Reads the vocabulary of metadata that passed [`check_tokenizer`]; `None` if the file has none.
pub(super) fn tokenizer_parts(file: &GgufFile, name: &str) -> Result<Option<TokenizerParts>> {
    let metadata = Metadata(file);
    let Some(model) = metadata.model().filter(|model| *model != NONE) else {
        return Ok(None);
    };
    let unsupported = || {
        refuse(word!("tokenizer.model.unsupported"))
            .of(name)
            .expected("gpt2, llama, rwkv of characters")
            .found(model)
            .hint(TOKENIZER_JSON_SERVES)
    };
    if !["gpt2", "llama", "rwkv"].contains(&model) {
        return Err(unsupported().into());
    }
    let mut tokens = metadata.texts("tokens")?;
    for (id, token) in tokens.iter_mut().enumerate() {
        if token.is_empty() {
            // As in llama.cpp.
            *token = format!("[EMPTY_{id}]");
        }
    }
    let types = metadata.types();
    let rule = match model {
        "gpt2" => PartsModel::ByteLevelBpe {
            merges: metadata.texts("merges")?,
            pre: metadata
                .get("pre")
                .and_then(GgufValue::text)
                .unwrap_or("absent")
                .to_string(),
        },
        "llama" => PartsModel::SentencePiece {
            scores: metadata
                .get("scores")
                .and_then(GgufValue::floats)
                .unwrap_or_default(),
            add_space_prefix: metadata.flag("add_space_prefix").unwrap_or(true),
        },
        _ => {
            for (id, token) in tokens.iter_mut().enumerate() {
                if types.get(id) != Some(&UNUSED) && !is_character(token) {
                    return Err(unsupported().into());
                }
                if token == ESCAPED {
                    token.truncate(1);
                }
            }
            PartsModel::Characters
        }
    };
    let title = file.get("general.name").and_then(GgufValue::text);
    let stated = GgufIds {
        bos: metadata.id("bos"),
        eos: metadata.id("eos"),
        turns: ["eot", "eom"].map(|role| metadata.id(role)),
        unk: metadata.id("unknown"),
        fills: FILL_IDS.map(|roles| roles.iter().find_map(|role| metadata.id(role))),
        title: title.unwrap_or_default().to_string(),
    };
    let named = metadata.named_templates();
    let parts = TokenizerParts {
        model: rule,
        tokens,
        types: types
            .into_iter()
            .map(|kind| i32::try_from(kind).unwrap_or(0))
            .collect(),
        bos: None,
        eos: Vec::new(),
        pad: metadata.pad(),
        unk: None,
        add_bos: metadata.flag("add_bos_token"),
        add_eos: metadata.flag("add_eos_token"),
        chat_template: file
            .get(TEMPLATE)
            .or_else(|| file.get("tokenizer.chat_template.default"))
            .and_then(GgufValue::text)
            .map(str::to_string),
        named_templates: named
            .filter(|(name, _)| *name != "default")
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .collect(),
        lstrip: Vec::new(),
        rstrip: Vec::new(),
    };
    Ok(Some(parts.completed(&stated)))
}
