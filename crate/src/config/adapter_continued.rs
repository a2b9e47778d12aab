//! Settings of an adapter that was trained before and is trained on.

use serde_json::{Value, json};

use super::{AdapterConfig, TrainConfig};
use crate::error::{Error, Fault, Refusal, Result, word};

/// Settings that a run which goes on may have of its own: the factors are there, so that nothing is initialised.
const FREE: [&str; 2] = ["dropout", "init"];

impl AdapterConfig {
    /// These settings, which are those of an adapter's files, with the dropout that is given. Other `given` keys may only repeat them; null
    /// says nothing. The order of lists does not count.
    ///
    /// # Errors
    /// `config.invalid` for keys and values that are no settings; `adapter.settings` for each key that contradicts the files.
    pub fn continued(&self, given: &Value) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| Error::InvalidConfig(vec![Fault::new("adapter", "an object", error)]);
        let Some(keys) = given.as_object() else { return Err(wrong(given)) };
        let asked = TrainConfig::default().overlaid(json!({ "adapter": given }))?.adapter.unwrap_or_default();
        let plain = |settings: &Self| serde_json::to_value(settings).map_err(|error| wrong(&error));
        let (own, asked) = (plain(self)?, plain(&asked)?);
        let differs = |key: &&String| !FREE.contains(&key.as_str()) && settled(&own[*key]) != settled(&asked[*key]);
        let refuse = |key: &String| {
            let refusal = Refusal::new(word!("adapter.settings")).stage("bind").subject(key);
            refusal.expected(&own[key]).found(&asked[key]).hint("leave it out: the adapter's files say it")
        };
        let refusals: Vec<Refusal> =
            keys.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).filter(differs).map(refuse).collect();
        if !refusals.is_empty() {
            return Err(Error::Refused(refusals));
        }
        let dropout = asked["dropout"].as_f64().filter(|_| keys.contains_key("dropout"));
        Ok(Self { dropout: dropout.unwrap_or(self.dropout), ..self.clone() })
    }
}

/// A list in a fixed order; one number as a list.
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
