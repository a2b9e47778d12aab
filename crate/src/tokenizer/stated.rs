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
    pub fn of(
        settings: &Value,
        map: &Value,
        beside: &Value,
        class: Option<&TokenizerClass>,
        padding: Option<&str>,
    ) -> Result<Self> {
        let list = settings[LISTED].as_object();
        let map = if list.is_some() { &Value::Null } else { map };
        let literal = settings[LITERAL].as_array().into_iter().flatten();
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
                    let own = class.map_or(&[][..], |class| class.tokens).iter();
                    let own = own.copied().find(|(named, _)| *named == key);
                    let padding = padding.filter(|_| key == "pad_token");
                    if let Some(text) = own.map(|(_, text)| text).or(padding) {
                        let token = AddedToken::from(text, true);
                        stated.named.push((key.to_owned(), token));
                        stated.implied.insert(text.to_owned());
                    }
                }
            }
        }
        for (file, document) in [(CONFIG_FILE, settings), (SPECIALS_FILE, map)] {
            let fields = document.as_object().into_iter().flatten();
            for (key, value) in fields.filter(|(key, _)| !NAMED.contains(&key.as_str())) {
                match value {
                    Value::String(_) | Value::Object(_) if key.ends_with("_token") => {
                        stated.name(file, key, value)?
                    }
                    Value::Object(fields) if MORE.contains(&key.as_str()) => {
                        for (key, value) in fields {
                            stated.name(file, key, value)?;
                        }
                    }
                    Value::Array(list) if MORE.contains(&key.as_str()) => {
                        for value in list {
                            let token = token_of(file, key, value)?;
                            let object = token.clone().filter(|_| value.is_object());
                            stated.objects.extend(object);
                            stated.others.extend(token);
                        }
                    }
                    _ => {}
                }
            }
        }
        for (id, value) in list.into_iter().flatten() {
            let wrong = |reason: String| bad(CONFIG_FILE, format!("{LISTED}: {reason}"));
            let number = id.parse().map_err(|_| wrong(format!("{id:?} is no id")))?;
            let token = read_token(value, false).filter(|_| value.is_object());
            let token = token.ok_or_else(|| wrong(format!("{id} has no content")))?;
            stated.listed.insert(number, token);
        }
        let numbers = beside.as_object().filter(|_| stated.beside);
        for (text, id) in numbers.into_iter().flatten() {
            let number = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let none = || {
                bad(
                    ADDED_FILE,
                    format!("{text:?} has the id {id}, which is none"),
                )
            };
            let number = number.ok_or_else(none)?;
            let special = stated.texts().any(|special| special == text);
            stated
                .listed
                .insert(number, AddedToken::from(text, special));
        }
        stated.implied.retain(|text| {
            let mut named = stated.listed.values().chain(&stated.others);
            !named.any(|token| token.content == *text)
        });
        Ok(stated)
    }

    /// Keeps the flags of tokenizer.json, as transformers does where it takes the file as it is.
    pub fn keep_flags(&mut self) {
        self.objects.clear();
    }

    /// Returns true if `tokenizer_config.json` overrules what the files next to it state.
    pub fn overrules(settings: &Value) -> bool {
        settings[LISTED].is_object()
    }

    /// Takes a special token for a name, unless the name has one already.
    fn name(&mut self, file: &str, key: &str, value: &Value) -> Result<()> {
        let token = token_of(file, key, value)?.filter(|_| self.text(key).is_none());
        self.named
            .extend(token.map(|token| (key.to_owned(), token)));
        Ok(())
    }

    /// Returns the texts of all special tokens.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.special().map(|token| token.content.as_str())
    }

    /// All special tokens: those with names, then the others.
    fn special(&self) -> impl Iterator<Item = &AddedToken> {
        let named = self.named.iter().map(|(_, token)| token);
        named.chain(&self.others)
    }

    /// Returns the text of the special token of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (_, token) = self.named.iter().find(|(key, _)| key == name)?;
        Some(&token.content)
    }

    /// Returns the special tokens by name.
    pub fn names(&self) -> Vec<(String, String)> {
        let named = self.named.iter();
        named
            .map(|(key, token)| (key.clone(), token.content.clone()))
            .collect()
    }

    /// Returns the tokens that are searched for in a text before it is split, by id: those that a file states with one, and the special ones
    /// of `vocab`.
    pub fn with_ids(&self, vocab: &BTreeMap<String, u32>) -> BTreeMap<u32, AddedToken> {
        let names: HashSet<&str> = self.texts().collect();
        let special = |token: &AddedToken| token.special || names.contains(token.content.as_str());
        let listed = self.listed.iter();
        let listed = listed.map(|(id, token)| (*id, token.clone().special(special(token))));
        let mut tokens: BTreeMap<u32, AddedToken> = listed.collect();
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
    pub fn add_to(&self, inner: &mut tokenizers::Tokenizer) -> Result<Unusual> {
        let own = inner.get_added_tokens_decoder();
        let overruled = |id: &u32| self.beside && own.contains_key(id);
        let is_changed = |(id, token): &(&u32, &AddedToken)| {
            !overruled(id) && !own.values().any(|own| own == *token)
        };
        let changed = self.listed.iter().filter(is_changed);
        let mut added: Vec<AddedToken> = changed.map(|(_, token)| token.clone()).collect();
        // A token of the file that is named as special is one; an object in a list has flags of its own.
        let names: HashSet<&str> = self.texts().collect();
        let named = own.values().filter(|token| {
            names.contains(token.content.as_str()) && !self.literal.contains(&token.content)
        });
        for token in named {
            let same = |other: &AddedToken| other.content == token.content;
            let object = self.objects.iter().find(|object| same(object));
            let special = object.unwrap_or(token).clone().special(true);
            if special != *token && !added.iter().any(same) {
                added.push(special);
            }
        }
        let known = own
            .values()
            .chain(&added)
            .map(|token| token.content.clone());
        let mut known: HashSet<String> = known.collect();
        let special = self
            .special()
            .filter(|token| !self.literal.contains(&token.content));
        added.extend(
            special
                .filter(|token| known.insert(token.content.clone()))
                .cloned(),
        );
        for token in &mut added {
            token.special |= names.contains(token.content.as_str());
        }
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
            let mut named = self.named.iter();
            self.text("unk_token") == Some(text)
                && named.all(|(key, token)| key == "unk_token" || token.content != *text)
        };
        let needless = |text: &String| self.implied.contains(text) || unknown(text);
        let (implied, unlisted): (Vec<String>, Vec<String>) = new.into_iter().partition(needless);
        let with_id = |texts: Vec<String>| {
            let texts = texts.into_iter();
            texts
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
    pub moved: Vec<String>,
    /// Tokens that files name, but that none has with an id.
    pub unlisted: BTreeMap<u32, String>,
    /// Tokens that only the class names, and unknown ones, that no file has with an id.
    pub implied: BTreeMap<u32, String>,
    /// Files that name Python code of the model's own.
    pub code: Vec<String>,
}

/// Reads the special token under `key` of `file`; `None` for null and for an empty text.
fn token_of(file: &str, key: &str, value: &Value) -> Result<Option<AddedToken>> {
    if value.is_null() {
        return Ok(None);
    }
    let wrong = || {
        let expected = "the text of a token, or an object with its content";
        bad(file, format!("{key}: expected {expected}, found {value}"))
    };
    let token = read_token(value, file == SPECIALS_FILE).ok_or_else(wrong)?;
    Ok(Some(token).filter(|token| !token.content.is_empty()))
}

/// Reads a token, which is written as a text or as `{"content": text, …}`. An object of special tokens is `special`.
fn read_token(value: &Value, special: bool) -> Option<AddedToken> {
    if let Some(text) = value.as_str() {
        return Some(AddedToken::from(text, true));
    }
    let is = |key: &str| value[key] == true;
    let special = special || is("special");
    let token = AddedToken::from(value["content"].as_str()?, special)
        .normalized(value["normalized"].as_bool().unwrap_or(!special))
        .single_word(is("single_word"))
        .lstrip(is("lstrip"))
        .rstrip(is("rstrip"));
    Some(token)
}

/// Returns the text of a special token, which is written as a text or as `{"content": text, …}`.
pub(super) fn special_text(value: &Value) -> Option<String> {
    read_token(value, true).map(|token| token.content)
}
