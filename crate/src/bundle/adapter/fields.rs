//! Fields of `adapter_config.json`, each checked by itself.

use std::collections::BTreeSet;

use crate::config::{
    MAX_RANK, Names, Pattern, changes_base, check_count, check_length, is_all_linear,
};
use crate::error::{Refusal, Result, word};
use crate::families::Targets;
use crate::formats::{Digest, Json};

pub(super) fn typed(path: &str, expected: &str) -> Refusal {
    Refusal::new(word!("adapter.field.type"))
        .subject(path)
        .expected(expected)
}

pub(super) fn rank(path: &str, value: Json<'_>) -> Result<u64> {
    let rank = value.count().filter(|rank| (1..=MAX_RANK).contains(rank));
    Ok(rank.ok_or_else(|| {
        Refusal::new(word!("adapter.rank"))
            .subject(path)
            .expected(format!("an integer from 1 to {MAX_RANK}"))
    })?)
}

pub(super) fn alpha_of(path: &str, value: Json<'_>) -> Result<f64> {
    let alpha = number(value).filter(|alpha| alpha.is_finite() && *alpha > 0.0);
    Ok(alpha.ok_or_else(|| {
        Refusal::new(word!("adapter.alpha"))
            .subject(path)
            .expected("finite and positive")
    })?)
}

/// The value of a number.
fn number(value: Json<'_>) -> Option<f64> {
    match value {
        Json::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}

/// Reads the targets: one pattern, or a list of names.
pub(super) fn targets_of(value: Json<'_>) -> Result<Targets> {
    let key = "target_modules";
    let none = || Refusal::new(word!("adapter.target.none")).subject(key);
    match value.text().as_deref() {
        Some("") => Err(none().into()),
        Some(text) if is_all_linear(text) => Ok(Targets::AllLinear),
        Some(text) => Pattern::whole(key, text).map(Targets::Pattern),
        None => match names(key, value)? {
            names if names.is_empty() => Err(none().into()),
            names => Ok(Targets::Names(names.into_iter().collect())),
        },
    }
}

/// Reads a list of module names.
pub(super) fn names(key: &str, value: Json<'_>) -> Result<Vec<String>> {
    let list = value.list().ok_or_else(|| typed(key, "a list of texts"))?;
    check_count(key, list.clone().count())?;
    let mut names = Vec::new();
    for (at, value) in list.enumerate() {
        let path = format!("{key}/{at}");
        let text = value.text().ok_or_else(|| typed(&path, "text"))?;
        check_length(&path, &text)?;
        names.push(text.into_owned());
    }
    Ok(names)
}

/// The fields of the document.
pub(super) struct Fields<'a>(pub(super) Json<'a>);

impl<'a> Fields<'a> {
    /// The value of `key`, if there is one other than null.
    pub(super) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.0.get(key).filter(|value| *value != Json::Null)
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool> {
        match self.get(key) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(_) => Err(typed(key, "true or false").into()),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.text().ok_or_else(|| typed(key, "text"))?;
        Ok(Some(text.into_owned()))
    }

    pub(super) fn digest(&self, key: &str) -> Result<Option<Digest>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let digest = Digest::from_hex(&text);
        Ok(Some(digest.ok_or_else(|| {
            typed(key, "a SHA-256 in lower-case hex")
        })?))
    }

    /// Reads the layers: one number, or a list of numbers; an empty list means all.
    pub(super) fn layers(&self) -> Result<Option<BTreeSet<u64>>> {
        let key = "layers_to_transform";
        let number = |path: &str, value: Json<'_>| {
            Ok(value
                .count()
                .ok_or_else(|| typed(path, "an integer of 0 or more"))?)
        };
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let Some(list) = value.list() else {
            return Ok(Some([number(key, value)?].into()));
        };
        check_count(key, list.clone().count())?;
        let layers = list
            .enumerate()
            .map(|(at, value)| number(&format!("{key}/{at}"), value));
        let layers = layers.collect::<Result<BTreeSet<u64>>>()?;
        Ok(Some(layers).filter(|layers| !layers.is_empty()))
    }

    /// Reads a list of names, or one text. It is not checked further: merging follows the tensors.
    pub(super) fn names(&self, key: &str) -> Result<Option<Names>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        Ok(Some(match value.text() {
            Some(text) => Names::One(text.into_owned()),
            None => Names::Many(names(key, value)?),
        }))
    }

    /// Reads a number; 0 if it is absent.
    pub(super) fn number(&self, key: &str) -> Result<f64> {
        let Some(value) = self.get(key) else {
            return Ok(0.0);
        };
        Ok(number(value).ok_or_else(|| typed(key, "a number"))?)
    }

    pub(super) fn pattern<T>(
        &self,
        key: &str,
        rule: fn(&str, Json<'_>) -> Result<T>,
    ) -> Result<Vec<(Pattern, T)>> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let entries = value.object().ok_or_else(|| typed(key, "an object"))?;
        check_count(key, entries.clone().count())?;
        let mut patterns = Vec::new();
        for (module, value) in entries {
            let path = format!("{key}/{module}");
            patterns.push((Pattern::end(&path, &module)?, rule(&path, value)?));
        }
        Ok(patterns)
    }

    /// Refuses features that change the arithmetic of a plain LoRA, and an initialisation, `start`, that changes the base, so that the adapter
    /// fits no other.
    pub(super) fn check_features(&self, start: &str) -> Result<()> {
        let refuse = |key: &str| Refusal::new(word!("adapter.feature.unsupported")).subject(key);
        for key in ["use_dora", "use_qalora", "use_bdlora", "lora_bias"] {
            let value = self.get(key);
            if value.is_some_and(|value| value != Json::Bool(false)) {
                return Err(refuse(key).into());
            }
        }
        let bias = self.get("bias");
        if bias.is_some_and(|bias| bias.text().as_deref() != Some("none")) {
            return Err(refuse("bias").expected("none").into());
        }
        for key in [
            "layer_replication",
            "target_parameters",
            "trainable_token_indices",
            "alora_invocation_tokens",
            "arrow_config",
        ] {
            let holds = |value: Json<'_>| match value {
                Json::List(_) | Json::Object(_) => value.values() > 0,
                _ => true,
            };
            if self.get(key).is_some_and(holds) {
                return Err(refuse(key).into());
            }
        }
        if changes_base(start) {
            return Err(refuse("init_lora_weights").found(start).into());
        }
        Ok(())
    }
}
