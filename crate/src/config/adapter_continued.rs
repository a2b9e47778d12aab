//! Settings of a trained adapter whose training continues.

use serde_json::{Value, json};

use super::{AdapterConfig, TrainConfig};
use crate::error::{Error, Refusal, Result, word};

/// Settings that a continued run may change: the factors exist, so nothing is initialised.
const FREE: [&str; 2] = ["dropout", "init"];

#[doc(hidden)]
impl AdapterConfig {
    /// Returns these settings, read from an adapter's files, with the dropout from `given`. Other keys of `given` may only repeat the
    /// files' values; null is ignored. The order of lists does not matter.
    ///
    /// # Errors
    /// `config.invalid` for unknown keys and invalid values; `adapter.settings` for each key that contradicts the files.
    pub fn continued(&self, given: &Value) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| Error::invalid("adapter", "an object", error);
        let Some(keys) = given.as_object() else {
            return Err(wrong(given));
        };
        let asked = TrainConfig::default()
            .overlaid(json!({ "adapter": given }))?
            .adapter
            .unwrap_or_default();
        let plain = |settings: &Self| serde_json::to_value(settings).map_err(|error| wrong(&error));
        let (own, asked) = (plain(self)?, plain(&asked)?);
        let differs = |key: &&String| {
            !FREE.contains(&key.as_str()) && settled(&own[*key]) != settled(&asked[*key])
        };
        let refuse = |key: &String| {
            let refusal = Refusal::new(word!("adapter.settings"))
                .stage("bind")
                .subject(key);
            refusal
                .expected(&own[key])
                .found(&asked[key])
                .hint("leave it out: the adapter's files say it")
        };
        let refusals: Vec<Refusal> = keys
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, _)| key)
            .filter(differs)
            .map(refuse)
            .collect();
        if !refusals.is_empty() {
            return Err(Error::Refused(refusals));
        }
        let dropout = asked["dropout"]
            .as_f64()
            .filter(|_| keys.contains_key("dropout"));
        Ok(Self {
            dropout: dropout.unwrap_or(self.dropout),
            ..self.clone()
        })
    }
}

/// A list in a fixed order, and one number as a list.
fn settled(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items = items.clone();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Number(number) => json!([number]),
        other => other.clone(),
    }
}
