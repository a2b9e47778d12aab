//! Special tokens of a folder, each of which several files may name.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use tokenizers::AddedToken;

use super::class::TokenizerClass;
use super::{ADDED_FILE, CONFIG_FILE, SPECIALS_FILE, TOKENIZER_FILE, bad};
use crate::error::Result;

/// Keys of the special tokens that every class has, which are also their names in templates, in the order in which they are added.
pub(super) const NAMED: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];
/// Keys of further special tokens: lists, or objects with names.
const MORE: [&str; 3] = [
    "additional_special_tokens",
    "extra_special_tokens",
    "model_specific_special_tokens",
];
/// Tokens with their ids: the list that overrules the files next to `tokenizer_config.json`.
const LISTED: &str = "added_tokens_decoder";
/// Key of our own: named tokens that texts do not have whole, as those of a GGUF file that does not mark them.
pub(super) const LITERAL: &str = "literal_special_tokens";

/// The special tokens of a folder.
pub(super) struct Stated {
    /// Special tokens by name, without repeats of a name.
    named: Vec<(String, AddedToken)>,
    /// Special tokens without a name.
    others: Vec<AddedToken>,
    /// Tokens of a list that are objects, whose flags overrule those of tokenizer.json.
    objects: Vec<AddedToken>,
    /// Tokens with the ids that a file states.
    listed: BTreeMap<u32, AddedToken>,
    /// True if the ids are those of `added_tokens.json`, over which tokenizer.json has precedence.
    beside: bool,
    /// Tokens that no file names, but the class.
    implied: HashSet<String>,
    /// Named tokens that are not searched for in a text.
    literal: HashSet<String>,
}

impl Stated {
    /// Reads what `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json` state, as transformers does: the second and the
    /// third count unless the first has a list of added tokens. `padding` is the token of the padding that tokenizer.json describes.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a special token that is neither a text nor an object with one, and for an id that is no number.
    pub(super) fn of(
        settings: &Value,
        map: &Value,
        beside: &Value,
        class: Option<&TokenizerClass>,
        padding: Option<&str>,
    ) -> Result<Self> {
        let list = settings.get(LISTED).and_then(Value::as_object);
        let map = if Self::overrules(settings) {
            &Value::Null
        } else {
            map
        };
        let literal = settings
            .get(LITERAL)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut stated = Self {
            named: Vec::new(),
            others: Vec::new(),
            listed: BTreeMap::new(),
            beside: list.is_none(),
            objects: Vec::new(),
            implied: HashSet::new(),
            literal: literal
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        };
        for key in NAMED {
            match (map.get(key), settings.get(key)) {
                (Some(value), _) => stated.name(SPECIALS_FILE, key, value)?,
                (None, Some(value)) => stated.name(CONFIG_FILE, key, value)?,
                (None, None) => {
                    let own = class
                        .and_then(|class| class.tokens.iter().find(|(named, _)| *named == key))
                        .map(|(_, text)| *text);
                    if let Some(text) = own.or(padding.filter(|_| key == "pad_token")) {
                        stated
                            .named
                            .push((key.to_owned(), AddedToken::from(text, true)));
                        stated.implied.insert(text.to_owned());
                    }
                }
            }
        }
        for (file, document) in [(CONFIG_FILE, settings), (SPECIALS_FILE, map)] {
            for (key, value) in document
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| !NAMED.contains(&key.as_str()))
            {
                match value {
                    Value::String(_) | Value::Object(_) if key.ends_with("_token") => {
                        stated.name(file, key, value)?
                    }
                    Value::Object(fields) if MORE.contains(&key.as_str()) => {
                        fields
                            .iter()
                            .try_for_each(|(key, value)| stated.name(file, key, value))?;
                    }
                    Value::Array(list) if MORE.contains(&key.as_str()) => {
                        for value in list {
                            let token = token_of(file, key, value)?;
                            stated
                                .objects
                                .extend(token.clone().filter(|_| value.is_object()));
                            stated.others.extend(token);
                        }
                    }
                    _ => {}
                }
            }
        }
        for (id, value) in list.into_iter().flatten() {
            let number = id
                .parse()
                .map_err(|_| bad(CONFIG_FILE, format!("{LISTED}: {id:?} is no id")))?;
            let token = read_token(value, false).filter(|_| value.is_object());
            stated.listed.insert(
                number,
                token.ok_or_else(|| bad(CONFIG_FILE, format!("{LISTED}: {id} has no content")))?,
            );
        }
        for (text, id) in beside
            .as_object()
            .into_iter()
            .flatten()
            .filter(|_| stated.beside)
        {
            let number = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let number = number.ok_or_else(|| {
                bad(
                    ADDED_FILE,
                    format!("{text:?} has the id {id}, which is none"),
                )
            })?;
            let special = stated.texts().any(|special| special == text);
            stated
                .listed
                .insert(number, AddedToken::from(text, special));
        }
        stated.implied.retain(|text| {
            !stated
                .listed
                .values()
                .chain(&stated.others)
                .any(|token| token.content == *text)
        });
        Ok(stated)
    }

    /// Keeps the flags of tokenizer.json, as transformers does where it takes the file as it is.
    pub(super) fn keep_flags(&mut self) {
        self.objects.clear();
    }

    /// Returns true if `tokenizer_config.json` overrules what the files next to it state.
    pub(super) fn overrules(settings: &Value) -> bool {
        settings.get(LISTED).is_some_and(Value::is_object)
    }

    /// Takes a special token for a name, unless the name has one already.
    fn name(&mut self, file: &str, key: &str, value: &Value) -> Result<()> {
        let token = token_of(file, key, value)?
            .filter(|_| !self.named.iter().any(|(named, _)| named == key));
        self.named
            .extend(token.map(|token| (key.to_owned(), token)));
        Ok(())
    }

    /// Returns the texts of all special tokens.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.named
            .iter()
            .map(|(_, token)| token)
            .chain(&self.others)
            .map(|token| token.content.as_str())
    }

    /// Returns the text of the special token of this name.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.named
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, token)| token.content.as_str())
    }

    /// Returns the special tokens by name.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        self.named
            .iter()
            .map(|(key, token)| (key.clone(), token.content.clone()))
            .collect()
    }

    /// Returns the tokens that are searched for in a text before it is split, by id: those that a file states with one, and the special ones
    /// of `vocab`.
    pub(super) fn with_ids(&self, vocab: &BTreeMap<String, u32>) -> BTreeMap<u32, AddedToken> {
        let names: HashSet<&str> = self.texts().collect();
        let special = |token: &AddedToken| token.special || names.contains(token.content.as_str());
        let mut tokens: BTreeMap<u32, AddedToken> = self
            .listed
            .iter()
            .map(|(id, token)| (*id, token.clone().special(special(token))))
            .collect();
        for text in self.texts() {
            if let Some(id) = vocab.get(text) {
                tokens
                    .entry(*id)
                    .or_insert_with(|| AddedToken::from(text, true));
            }
        }
        tokens
    }

    /// Adds the tokens that `inner` lacks, or has with other properties, in transformers' order: those with ids, ascending, then the special
    /// ones. Returns what is unusual about them.
    ///
    /// # Errors
    /// `tokenizer.invalid`.
    pub(super) fn add_to(&self, inner: &mut tokenizers::Tokenizer) -> Result<Unusual> {
        let own = inner.get_added_tokens_decoder();
        let overruled = |id: &u32| self.beside && own.contains_key(id);
        let changed = self
            .listed
            .iter()
            .filter(|(id, token)| !overruled(id) && !own.values().any(|own| own == *token));
        let mut added: Vec<AddedToken> = changed.map(|(_, token)| token.clone()).collect();
        // A token of the file that is named as special is one; an object in a list has flags of its own.
        let names: HashSet<&str> = self.texts().collect();
        let named = own.values().filter(|token| {
            names.contains(token.content.as_str()) && !self.literal.contains(&token.content)
        });
        for token in named {
            let object = self
                .objects
                .iter()
                .find(|object| object.content == token.content);
            let special = object.unwrap_or(token).clone().special(true);
            if special != *token && !added.iter().any(|other| other.content == token.content) {
                added.push(special);
            }
        }
        let mut known: HashSet<String> = own
            .values()
            .chain(&added)
            .map(|token| token.content.clone())
            .collect();
        let special = self
            .named
            .iter()
            .map(|(_, token)| token)
            .chain(&self.others);
        let special = special.filter(|token| !self.literal.contains(&token.content));
        added.extend(
            special
                .filter(|token| known.insert(token.content.clone()))
                .cloned(),
        );
        added
            .iter_mut()
            .for_each(|token| token.special |= names.contains(token.content.as_str()));
        let new = |text: &&str| {
            inner.token_to_id(text).is_none()
                && !self.listed.values().any(|token| token.content == **text)
        };
        let new: Vec<String> = self.texts().filter(new).map(str::to_owned).collect();
        inner
            .add_tokens(added)
            .map_err(|error| bad(TOKENIZER_FILE, error))?;
        let id_of = |text: &str| inner.token_to_id(text);
        let moved = self.listed.iter().filter_map(|(id, token)| {
            let found = id_of(&token.content).filter(|found| found != id)?;
            Some(format!("{} {id}, not {found}", token.content))
        });
        // Byte-level vocabularies do not need an unknown token.
        let unknown = |text: &String| {
            self.text("unk_token") == Some(text)
                && self
                    .named
                    .iter()
                    .all(|(key, token)| key == "unk_token" || token.content != *text)
        };
        let needless = |text: &String| self.implied.contains(text) || unknown(text);
        let (implied, unlisted): (Vec<String>, Vec<String>) = new.into_iter().partition(needless);
        let with_id = |texts: Vec<String>| {
            texts
                .into_iter()
                .filter_map(|text| Some((id_of(&text)?, text)))
                .collect()
        };
        Ok(Unusual {
            moved: moved.collect(),
            unlisted: with_id(unlisted),
            implied: with_id(implied),
            code: Vec::new(),
        })
    }
}

/// Unusual properties of special tokens and of the files.
#[derive(Debug, Clone, Default)]
pub(super) struct Unusual {
    /// Tokens that have another id than a file states, with both.
    pub(super) moved: Vec<String>,
    /// Tokens that files name, but that none has with an id.
    pub(super) unlisted: BTreeMap<u32, String>,
    /// Tokens that only the class names, and unknown ones, that no file has with an id.
    pub(super) implied: BTreeMap<u32, String>,
    /// Files that name Python code of the model's own.
    pub(super) code: Vec<String>,
}

/// Reads the special token under `key` of `file`; `None` for null and for an empty text.
fn token_of(file: &str, key: &str, value: &Value) -> Result<Option<AddedToken>> {
    if value.is_null() {
        return Ok(None);
    }
    let token = read_token(value, file == SPECIALS_FILE);
    let token = token.ok_or_else(|| {
        bad(
            file,
            format!(
                "{key}: expected the text of a token, or an object with its content, found {value}"
            ),
        )
    })?;
    Ok(Some(token).filter(|token| !token.content.is_empty()))
}

/// Reads a token, which is written as a text or as `{"content": text, …}`. An object of special tokens is `special`.
fn read_token(value: &Value, special: bool) -> Option<AddedToken> {
    if let Some(text) = value.as_str() {
        return Some(AddedToken::from(text, true));
    }
    let flag = |key: &str| value.get(key).and_then(Value::as_bool);
    let special = special || flag("special") == Some(true);
    let token = AddedToken::from(value.get("content")?.as_str()?, special)
        .normalized(flag("normalized").unwrap_or(!special));
    let is = |key: &str| flag(key) == Some(true);
    Some(
        token
            .single_word(is("single_word"))
            .lstrip(is("lstrip"))
            .rstrip(is("rstrip")),
    )
}

/// Returns the text of a special token, which is written as a text or as `{"content": text, …}`.
pub(super) fn special_text(value: &Value) -> Option<String> {
    read_token(value, true).map(|token| token.content)
}
