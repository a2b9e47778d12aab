//! Fields of `adapter_config.json`, each checked by itself.

use std::borrow::Cow;
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
    let refused = || {
        Refusal::new(word!("adapter.rank"))
            .subject(path)
            .expected(format!("an integer from 1 to {MAX_RANK}"))
    };
    Ok(value
        .count()
        .filter(|rank| (1..=MAX_RANK).contains(rank))
        .ok_or_else(refused)?)
}

pub(super) fn alpha_of(path: &str, value: Json<'_>) -> Result<f64> {
    let number = if let Json::Number(digits) = value {
        digits.parse::<f64>().ok()
    } else {
        None
    };
    let refused = || {
        Refusal::new(word!("adapter.alpha"))
            .subject(path)
            .expected("finite and positive")
    };
    Ok(number
        .filter(|alpha| alpha.is_finite() && *alpha > 0.0)
        .ok_or_else(refused)?)
}

/// Reads the targets: one pattern, or a list of names.
pub(super) fn targets_of(value: Json<'_>) -> Result<Targets> {
    let key = "target_modules";
    let none = || Refusal::new(word!("adapter.target.none")).subject(key);
    match value.text().as_deref() {
        Some("") => Err(none().into()),
        Some(text) if is_all_linear(text) => Ok(Targets::AllLinear),
        Some(text) => Pattern::whole(key, text).map(Targets::Pattern),
        None => {
            let names = names(key, value)?;
            if names.is_empty() {
                Err(none().into())
            } else {
                Ok(Targets::Names(names.into_iter().collect()))
            }
        }
    }
}

/// Reads a list of module names.
pub(super) fn names(key: &str, value: Json<'_>) -> Result<Vec<String>> {
    let list = value.list().ok_or_else(|| typed(key, "a list of texts"))?;
    check_count(key, list.clone().count())?;
    let name = |(at, value): (usize, Json<'_>)| {
        let path = format!("{key}/{at}");
        let text = value.text().ok_or_else(|| typed(&path, "text"))?;
        check_length(&path, &text)?;
        Ok(text.into_owned())
    };
    list.enumerate().map(name).collect()
}

/// The fields of the document.
pub(super) struct Fields<'a>(pub(super) Json<'a>);

impl<'a> Fields<'a> {
    /// Returns the value of `key`, if there is one other than null.
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
        let text =
            |value: Json<'_>| Ok(value.text().ok_or_else(|| typed(key, "text"))?.into_owned());
        self.get(key).map(text).transpose()
    }

    pub(super) fn digest(&self, key: &str) -> Result<Option<Digest>> {
        let digest = |text: String| {
            Ok(Digest::from_hex(&text).ok_or_else(|| typed(key, "a SHA-256 in lower-case hex"))?)
        };
        self.text(key)?.map(digest).transpose()
    }

    /// Reads the layers: one number, or a list of numbers; an empty list means all.
    pub(super) fn layers(&self) -> Result<Option<BTreeSet<u64>>> {
        let key = "layers_to_transform";
        let number = |path: &str, value: Json<'_>| {
            Ok(value
                .count()
                .ok_or_else(|| typed(path, "an integer of 0 or more"))?)
        };
        match self.get(key) {
            None => Ok(None),
            Some(value) => {
                let Some(list) = value.list() else {
                    return number(key, value).map(|layer| Some(BTreeSet::from([layer])));
                };
                check_count(key, list.clone().count())?;
                let layers = list
                    .enumerate()
                    .map(|(at, value)| number(&format!("{key}/{at}"), value));
                layers
                    .collect::<Result<BTreeSet<u64>>>()
                    .map(|layers| (!layers.is_empty()).then_some(layers))
            }
        }
    }

    /// Reads a list of names, or one text. It is not checked further: merging follows the tensors.
    pub(super) fn names(&self, key: &str) -> Result<Option<Names>> {
        let read = |value: Json<'_>| match value.text() {
            Some(text) => Ok(Names::One(text.into_owned())),
            None => names(key, value).map(Names::Many),
        };
        self.get(key).map(read).transpose()
    }

    /// Reads a number; 0 if it is absent.
    pub(super) fn number(&self, key: &str) -> Result<f64> {
        match self.get(key) {
            None => Ok(0.0),
            Some(Json::Number(digits)) => Ok(digits.parse().map_err(|_| typed(key, "a number"))?),
            Some(_) => Err(typed(key, "a number").into()),
        }
    }

    pub(super) fn pattern<T>(
        &self,
        key: &str,
        rule: fn(&str, Json<'_>) -> Result<T>,
    ) -> Result<Vec<(Pattern, T)>> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let of = |(module, value): (Cow<'_, str>, Json<'_>)| {
            let path = format!("{key}/{module}");
            Ok((Pattern::end(&path, &module)?, rule(&path, value)?))
        };
        let entries = value.object().ok_or_else(|| typed(key, "an object"))?;
        check_count(key, entries.clone().count())?;
        entries.map(of).collect()
    }

    /// Refuses features that change the arithmetic of a plain LoRA, and initialisations that change the base, so that the adapter fits no
    /// other.
    pub(super) fn check_features(&self) -> Result<()> {
        let refuse = |key: &str| Refusal::new(word!("adapter.feature.unsupported")).subject(key);
        for key in ["use_dora", "use_qalora", "use_bdlora", "lora_bias"] {
            if self
                .get(key)
                .is_some_and(|value| value != Json::Bool(false))
            {
                return Err(refuse(key).into());
            }
        }
        if self
            .get("bias")
            .is_some_and(|value| value.text().as_deref() != Some("none"))
        {
            return Err(refuse("bias").expected("none").into());
        }
        for key in [
            "layer_replication",
            "target_parameters",
            "trainable_token_indices",
            "alora_invocation_tokens",
            "arrow_config",
        ] {
            let items = |value: Json<'_>| {
                value
                    .list()
                    .map(Iterator::count)
                    .or_else(|| value.object().map(Iterator::count))
            };
            if self.get(key).is_some_and(|value| items(value) != Some(0)) {
                return Err(refuse(key).into());
            }
        }
        let start = self
            .get("init_lora_weights")
            .and_then(Json::text)
            .unwrap_or_default();
        if changes_base(&start) {
            return Err(refuse("init_lora_weights").found(start).into());
        }
        Ok(())
    }
}
