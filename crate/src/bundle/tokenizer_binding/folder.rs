//! Reads the tokenizer of a Hugging Face folder: `tokenizer.json` and the documents next to it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{PortableTokenizerBinding, UNNAMED, id_range};
use crate::bundle::files::{GENERATION, MAX_DOCUMENT_BYTES, document};
use crate::error::{Error, Result, Warning, shown, word};
use crate::formats::{ByteSource, base_name, read_document};
use crate::state::{AssetFormat, TokenizerFamily, TokenizerRecord, template_digest};
use crate::tokenizer::{
    CONFIG_FILE as SETTINGS, SPECIALS_FILE as SPECIAL, TEMPLATE_FILE as TEMPLATE,
    TOKENIZER_FILE as TOKENIZER, read_json,
};

impl PortableTokenizerBinding {
    /// Reads the tokenizer among the files of a Hugging Face folder, with its warnings; `None` without a `tokenizer.json`.
    ///
    /// # Errors
    /// The errors of [`Self::from_documents`] and of reading.
    pub fn from_hf_folder<S: ByteSource>(files: &[S]) -> Result<Option<(Self, Vec<Warning>)>> {
        let mut documents = BTreeMap::new();
        for name in [TOKENIZER, SETTINGS, SPECIAL, TEMPLATE, GENERATION] {
            documents.extend(document(files, name)?.map(|bytes| (name.to_string(), bytes)));
        }
        for file in files {
            let name = base_name(file.name());
            if name.ends_with(".jinja") && name != TEMPLATE {
                documents.insert(name.to_owned(), read_document(file, MAX_DOCUMENT_BYTES)?);
            }
        }
        Self::from_documents(&documents)
    }

    /// Reads the tokenizer from these documents by file name. Assets are `tokenizer.json`, `tokenizer_config.json` and
    /// `special_tokens_map.json`, as present. The ids that end a text are `eos_token` of `tokenizer_config.json`, then `eos_token_id` of
    /// `generation_config.json`, without repeats. The chat template is `chat_template.jinja`, then `chat_template` of `tokenizer_config.json`,
    /// a text or a list of named ones; if both are present and differ, the file takes precedence, with the warning
    /// `tokenizer.template.conflict`.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a document that is not the expected JSON or text, `tokenizer.id.range` for an id outside the vocabulary.
    pub fn from_documents(
        documents: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Option<(Self, Vec<Warning>)>> {
        let Some(bytes) = documents.get(TOKENIZER) else {
            return Ok(None);
        };
        let document: Document = read_json(TOKENIZER, bytes)?;
        let settings = object(documents, SETTINGS)?;
        let generation = object(documents, GENERATION)?;
        let vocabulary = document.vocabulary();
        let id_of = |key: &str| vocabulary.id(token_text(settings.get(key)?)?);
        let flag = |key: &str| settings.get(key)?.as_bool();
        let mut eos: Vec<u32> = id_of("eos_token").into_iter().collect();
        for id in end_ids(&generation, vocabulary.size)? {
            if !eos.contains(&id) {
                eos.push(id);
            }
        }
        let (family, asset_format) = if document.is_characters() {
            (TokenizerFamily::Character, AssetFormat::CharacterTable)
        } else {
            (family(&document.model.kind), AssetFormat::TokenizerJson)
        };
        let record = TokenizerRecord {
            family,
            asset_format,
            asset_version: document.version.clone().unwrap_or_default(),
            vocab_size: vocabulary.size,
            add_bos: flag("add_bos_token"),
            add_eos: flag("add_eos_token"),
            bos: id_of("bos_token"),
            eos,
            pad: id_of("pad_token"),
            unk: id_of("unk_token").or_else(|| document.model.unknown(&vocabulary)),
        };
        let of_settings = named_templates(&settings)?;
        let mut templates = of_settings.clone();
        let (mut warnings, mut overruled) = (Vec::new(), None);
        let text = |name: &str, bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(bad(name, error)),
        };
        if let Some(bytes) = documents.get(TEMPLATE) {
            let text = text(TEMPLATE, bytes)?;
            if of_settings.get(UNNAMED).is_some_and(|other| *other != text) {
                warnings.push(Warning::new(word!("tokenizer.template.conflict"), TEMPLATE));
                overruled = Some(template_digest(&of_settings));
            }
            templates.insert(UNNAMED.to_string(), text);
        }
        for (name, bytes) in documents.iter().filter(|(name, _)| *name != TEMPLATE) {
            if let Some(named) = base_name(name).strip_suffix(".jinja") {
                templates.insert(named.to_owned(), text(name, bytes)?);
            }
        }
        let mut assets = documents.clone();
        assets.retain(|name, _| [TOKENIZER, SETTINGS, SPECIAL].contains(&name.as_str()));
        let mut binding =
            Self::new(record, assets, templates).map_err(|error| error.in_file(TOKENIZER))?;
        binding.overruled_template_digest = overruled;
        Ok(Some((binding, warnings)))
    }
}

fn bad(what: &str, reason: impl fmt::Display) -> Error {
    // The parser's messages may quote the file.
    Error::Tokenizer {
        what: what.to_string(),
        reason: shown(&reason.to_string()),
    }
}

/// Reads the object of the document `name`; an empty one if it is absent.
fn object(documents: &BTreeMap<String, Vec<u8>>, name: &str) -> Result<Map<String, Value>> {
    match documents.get(name) {
        Some(bytes) => read_json(name, bytes),
        None => Ok(Map::new()),
    }
}

/// The text of a special token, which is written as its text or as `{"content": text, …}`.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// Reads `eos_token_id` of generation_config.json: a number or a list of numbers.
fn end_ids(generation: &Map<String, Value>, vocab_size: u64) -> Result<Vec<u32>> {
    let stated = match generation.get("eos_token_id") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let id = |value: &Value| {
        let id = value.as_u64().filter(|id| *id < vocab_size);
        let id = id.and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| id_range("eos", vocab_size, value).of(GENERATION).into())
    };
    stated.iter().map(id).collect()
}

/// Reads `chat_template` of tokenizer_config.json by name; among templates of the same name the last one counts.
fn named_templates(settings: &Map<String, Value>) -> Result<BTreeMap<String, String>> {
    let named = |entry: &Value| {
        let part = |key: &str| {
            let text = entry.get(key).and_then(Value::as_str).map(str::to_string);
            text.ok_or_else(|| bad(SETTINGS, "a chat template without name"))
        };
        Ok((part("name")?, part("template")?))
    };
    match settings.get("chat_template") {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::String(text)) => Ok([(UNNAMED.to_string(), text.clone())].into()),
        Some(Value::Array(list)) => list.iter().map(named).collect(),
        Some(object) => BTreeMap::deserialize(object).map_err(|_| {
            bad(
                SETTINGS,
                "chat_template: expected a text, or templates by name",
            )
        }),
    }
}

fn family(kind: &str) -> TokenizerFamily {
    match kind {
        "BPE" => TokenizerFamily::BytePairEncoding,
        "Unigram" => TokenizerFamily::Unigram,
        "WordPiece" => TokenizerFamily::WordPiece,
        _ => TokenizerFamily::Custom,
    }
}

/// The parts of tokenizer.json that are read.
#[derive(serde::Deserialize)]
struct Document {
    version: Option<String>,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Option<IgnoredAny>,
    #[serde(default)]
    pre_tokenizer: Option<IgnoredAny>,
    #[serde(default)]
    post_processor: Option<IgnoredAny>,
    model: Model,
}

#[derive(serde::Deserialize)]
struct Added {
    id: u64,
    content: String,
}

#[derive(serde::Deserialize)]
struct Model {
    /// Kind of the model; old files omit it for BPE.
    #[serde(rename = "type", default = "bpe")]
    kind: String,
    vocab: Tokens,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    unk_id: Option<u64>,
    #[serde(default)]
    merges: Count,
}

fn bpe() -> String {
    "BPE".to_string()
}

/// Every token with its id, and the highest id + 1.
struct Vocabulary<'a> {
    tokens: BTreeMap<&'a str, u64>,
    size: u64,
}

impl Vocabulary<'_> {
    fn id(&self, token: &str) -> Option<u32> {
        self.tokens
            .get(token)
            .and_then(|&id| u32::try_from(id).ok())
    }
}

impl Document {
    fn vocabulary(&self) -> Vocabulary<'_> {
        let own = self.model.vocab.0.iter();
        let own = own.map(|(token, id)| (token.as_str(), *id));
        let added = self.added_tokens.iter();
        let added = added.map(|token| (token.content.as_str(), token.id));
        let tokens: BTreeMap<&str, u64> = own.chain(added).collect();
        let size = tokens.values().max().map_or(0, |id| id.saturating_add(1));
        Vocabulary { tokens, size }
    }

    /// Tells if each token is a single character and nothing else changes the text.
    fn is_characters(&self) -> bool {
        let steps = [self.normalizer, self.pre_tokenizer, self.post_processor];
        let mut tokens = self.model.vocab.0.iter();
        steps.iter().all(Option::is_none)
            && self.model.kind == "BPE"
            && self.model.merges.0 == 0
            && self.added_tokens.is_empty()
            && tokens.all(|(token, _)| token.chars().count() == 1)
    }
}

impl Model {
    fn unknown(&self, vocabulary: &Vocabulary<'_>) -> Option<u32> {
        let named = self.unk_token.as_deref();
        let named = named.and_then(|token| vocabulary.id(token));
        named.or_else(|| u32::try_from(self.unk_id?).ok())
    }
}

/// A vocabulary: an object of ids by token, or Unigram's list of tokens with their scores.
struct Tokens(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Tokens;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of ids or a list of scored tokens")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tokens, A::Error> {
                let entries = std::iter::from_fn(|| map.next_entry().transpose());
                entries.collect::<Result<_, _>>().map(Tokens)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tokens, A::Error> {
                let scored = std::iter::from_fn(|| list.next_element().transpose());
                let numbered = scored.zip(0..).map(|(scored, id)| {
                    let (token, _): (String, IgnoredAny) = scored?;
                    Ok((token, id))
                });
                numbered.collect::<Result<_, _>>().map(Tokens)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Number of items of a list that is not kept.
#[derive(Default)]
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
                let mut count = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Count(count))
            }
        }
        deserializer.deserialize_seq(Items)
    }
}
