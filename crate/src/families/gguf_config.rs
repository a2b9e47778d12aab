//! GGUF metadata → [`ModelConfig`].

use super::config_check::check;
use super::gguf_values::{Divisors, Keys, missing};
use super::refusal::unsupported;
use super::{FAMILIES, gguf_architectures};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::formats::{GgufFile, GgufValue};

/// Returns the model that the metadata describe; `vocab_size` is the number of rows of the embedding. `divisors` are the divisors of the rotary
/// frequencies, if the file has them.
pub(crate) fn config_from_gguf(
    file: &GgufFile,
    name: &str,
    divisors: &Divisors,
    tied: bool,
) -> Result<ModelConfig> {
    let architecture = file.get("general.architecture").and_then(GgufValue::text);
    let family = architecture.ok_or_else(|| missing(name, "general.architecture"))?;
    let keys = Keys {
        file,
        divisors,
        name,
        family,
    };
    match keys.get("attention.causal").map(|value| value.bool()) {
        None | Some(Some(true)) => {}
        Some(Some(false)) => {
            return Err(unsupported(
                &keys.full("attention.causal"),
                "false",
                "true, or absent",
            ));
        }
        Some(None) => return Err(keys.wrong("attention.causal", "a bool")),
    }
    let known = FAMILIES.iter().find(|known| known.gguf.contains(&family));
    let known = known.ok_or_else(|| {
        unsupported(
            "general.architecture",
            family,
            &gguf_architectures().join(", "),
        )
    })?;
    let config = (known.read_gguf)(&keys, tied)?;
    check(&config)?;
    Ok(config)
}
