//! Reads the keys below the architecture of a GGUF file.

use super::refusal::unsupported;
use crate::config::RopeScaling;
use crate::error::{Refusal, Result, word};
use crate::formats::{GgufFile, GgufValue};

/// Name of GGUF's divisors of the rotary frequencies, which become part of the configuration.
pub(crate) const ROPE_FREQS: &str = "rope_freqs.weight";

pub(super) fn missing(name: &str, key: &str) -> crate::error::Error {
    Refusal::new(word!("bundle.config.key-missing"))
        .of(name)
        .subject(key)
        .into()
}

/// GGUF's names of the divisors of LongRoPE, for short and for long sequences.
pub(crate) const ROPE_FACTORS: [&str; 2] =
    ["rope_factors_short.weight", "rope_factors_long.weight"];

/// Tensors of a GGUF file that are part of the configuration: divisors of the rotary frequencies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Divisors {
    /// Divisors of [`ROPE_FREQS`].
    pub freqs: Option<Vec<f32>>,
    /// Divisors of [`ROPE_FACTORS`].
    pub factors: [Option<Vec<f32>>; 2],
}

pub(super) struct Keys<'a> {
    pub file: &'a GgufFile,
    pub divisors: &'a Divisors,
    pub name: &'a str,
    pub family: &'a str,
}

impl<'a> Keys<'a> {
    pub fn get(&self, key: &str) -> Option<&'a GgufValue> {
        let family = self.family;
        self.file
            .metadata
            .iter()
            .find(|(name, _)| {
                name.strip_prefix(family).and_then(|n| n.strip_prefix('.')) == Some(key)
            })
            .map(|(_, v)| v)
    }

    pub fn wrong(&self, key: &str, expected: &str) -> crate::error::Error {
        Refusal::new(word!("model.config.type"))
            .of(self.name)
            .subject(&self.full(key))
            .expected(expected)
            .into()
    }

    /// The value of a key that may be absent, as `of` reads it.
    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        of: impl Fn(&'a GgufValue) -> Option<T>,
    ) -> Result<Option<T>> {
        self.get(key)
            .map(|value| of(value).ok_or_else(|| self.wrong(key, expected)))
            .transpose()
    }

    /// The error of a key that the file lacks.
    pub fn absent(&self, key: &str) -> crate::error::Error {
        missing(self.name, &self.full(key))
    }

    pub fn count(&self, key: &str) -> Result<Option<usize>> {
        self.read(key, "a count", |value| usize::try_from(value.count()?).ok())
    }

    pub fn need(&self, key: &str) -> Result<usize> {
        self.count(key)?.ok_or_else(|| self.absent(key))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.read(key, "a number", GgufValue::number)
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.read(key, "text", GgufValue::text)
    }

    /// The width of a head where the file does not state it: the width of the model divided by the number of heads.
    pub fn head_dim(&self, hidden_size: usize, heads: usize) -> Result<usize> {
        if heads > 0 && hidden_size.is_multiple_of(heads) {
            return Ok(hidden_size / heads);
        }
        let refusal = Refusal::new(word!("model.config.heads"))
            .of(self.name)
            .subject(&self.full("attention.head_count"));
        Err(refusal
            .expected(format!("a divisor of {hidden_size}"))
            .found(heads)
            .into())
    }

    /// A count, given as one number or as a list with the same count for every layer.
    pub fn uniform(&self, key: &str) -> Result<Option<usize>> {
        match self.get(key).and_then(GgufValue::counts) {
            Some(list) => match list.split_first() {
                Some((first, rest)) if rest.iter().all(|n| n == first) => usize::try_from(*first)
                    .map(Some)
                    .map_err(|_| self.wrong(key, "a count")),
                _ => Err(unsupported(
                    &self.full(key),
                    "different per layer",
                    "one number",
                )),
            },
            None => self.count(key),
        }
    }

    /// A count like [`Self::uniform`], which must be there.
    pub fn need_uniform(&self, key: &str) -> Result<usize> {
        self.uniform(key)?.ok_or_else(|| self.absent(key))
    }

    /// Refuses widths of keys and values that differ from those of these heads, and another scale of their products unless it is `scaled`.
    pub fn check_heads(&self, head_dim: usize, scaled: bool) -> Result<()> {
        for key in ["attention.key_length", "attention.value_length"] {
            if let Some(other) = self.count(key)?.filter(|n| *n != head_dim) {
                return Err(unsupported(&self.full(key), other, &head_dim.to_string()));
            }
        }
        let own = 1.0 / (head_dim as f64).sqrt();
        let other = self
            .number("attention.scale")?
            .filter(|scale| !scaled && *scale != 0.0 && (scale / own - 1.0).abs() > 1e-6);
        other.map_or(Ok(()), |scale| {
            Err(unsupported(
                &self.full("attention.scale"),
                scale,
                &format!("{own}, or absent"),
            ))
        })
    }

    pub fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.family)
    }

    /// The number of rows of the embedding.
    pub fn vocab_size(&self) -> Result<usize> {
        let tensor = self.file.tensor("token_embd.weight");
        let rows = tensor
            .filter(|t| t.shape.len() == 2)
            .and_then(|t| t.shape.first())
            .copied();
        let absent = || {
            Refusal::new(word!("model.tensor.missing"))
                .of(self.name)
                .subject("token_embd.weight")
        };
        let rows = rows.ok_or_else(absent)?;
        match self.count("vocab_size")? {
            Some(stated) if stated as u64 > rows => {
                let refusal = Refusal::new(word!("model.vocab.rows"))
                    .of(self.name)
                    .subject("token_embd.weight");
                Err(refusal
                    .expected(format!("at least {stated} rows"))
                    .found(rows)
                    .into())
            }
            _ => usize::try_from(rows).map_err(|_| self.wrong("vocab_size", "a count")),
        }
    }

    /// The stretching of the frequencies of `rotated` dimensions in a model of this context.
    pub fn rope_scaling(&self, rotated: usize, theta: f64, context: usize) -> Result<RopeScaling> {
        let fast = self.number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0);
        let slow = self.number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0);
        let original = self.count("rope.scaling.original_context_length")?;
        let original = original.filter(|length| *length > 0).unwrap_or(context);
        if let [Some(short), Some(long)] = &self.divisors.factors {
            return self.longrope([short, long], rotated, original);
        }
        let own = match self.number("rope.scaling.factor")? {
            Some(factor) => Some(factor),
            None => self.number("rope.scale_linear")?,
        };
        // As in llama.cpp, a factor without a type scales linearly, and 0 means none.
        let factor = own.filter(|factor| *factor != 0.0);
        let word = self.text("rope.scaling.type")?.unwrap_or(
            if factor.is_some_and(|factor| factor != 1.0) {
                "linear"
            } else {
                "none"
            },
        );
        if let Some(attention) = self
            .number("rope.scaling.attn_factor")?
            .filter(|factor| *factor != 1.0)
        {
            return Err(unsupported(
                &self.full("rope.scaling.attn_factor"),
                attention,
                "1, or absent",
            ));
        }
        // Divisors of 1 change nothing.
        let freqs = self.divisors.freqs.as_ref();
        if let Some(factors) = freqs.filter(|factors| factors.iter().any(|factor| *factor != 1.0)) {
            let found = llama3_of(factors, rotated, theta).filter(|_| word == "none");
            return found.ok_or_else(|| {
                unsupported(ROPE_FREQS, "of an unknown rule", "the factors of Llama 3.1")
            });
        }
        match word {
            "none" => Ok(RopeScaling::Default),
            "linear" => match own {
                Some(factor) if factor.is_finite() && factor > 0.0 => {
                    Ok(RopeScaling::Linear { factor })
                }
                Some(factor) => Err(unsupported(
                    &self.full("rope.scaling.factor"),
                    factor,
                    "a number above 0",
                )),
                None => Err(self.absent("rope.scaling.factor")),
            },
            "yarn" => Ok(RopeScaling::Yarn {
                factor: own.ok_or_else(|| self.absent("rope.scaling.factor"))?,
                original_max_position_embeddings: original,
                beta_fast: fast,
                beta_slow: slow,
                truncate: true,
                attention_factor: None,
                mscale: None,
                mscale_all_dim: None,
                llama_4_scaling_beta: None,
            }),
            _ => Err(unsupported(
                &self.full("rope.scaling.type"),
                word,
                "none, linear, yarn",
            )),
        }
    }

    /// LongRoPE of these divisors.
    fn longrope(
        &self,
        factors: [&Vec<f32>; 2],
        rotated: usize,
        original: usize,
    ) -> Result<RopeScaling> {
        for (name, factors) in ROPE_FACTORS.into_iter().zip(factors) {
            if factors.len() != rotated / 2 {
                let expected = format!("{} values", rotated / 2);
                return Err(unsupported(name, factors.len(), &expected));
            }
        }
        let [short_factor, long_factor] =
            factors.map(|list| list.iter().map(|&factor| f64::from(factor)).collect());
        Ok(RopeScaling::LongRope {
            short_factor,
            long_factor,
            original_max_position_embeddings: original,
            attention_factor: Some(self.number("rope.scaling.attn_factor")?.unwrap_or(1.0)),
            factor: None,
        })
    }
}

/// Finds the rule whose divisors these are, if there is one with the published bounds: GGUF stores Llama 3.1's rule as one divisor per
/// frequency.
pub(crate) fn llama3_of(factors: &[f32], head_dim: usize, theta: f64) -> Option<RopeScaling> {
    let (low, high) = (1.0, 4.0);
    let stretch = f64::from(*factors.last()?);
    let divisor = |j: usize, original: f64| {
        let wavelength = std::f64::consts::TAU * theta.powf(2.0 * j as f64 / head_dim as f64);
        let smooth = ((original / wavelength - low) / (high - low)).clamp(0.0, 1.0);
        1.0 / ((1.0 - smooth) / stretch + smooth)
    };
    let fits = |original: f64| {
        let close = |(j, &factor): (usize, &f32)| {
            (divisor(j, original) - f64::from(factor)).abs() <= 1e-4 * f64::from(factor)
        };
        factors.len() == head_dim / 2 && stretch > 1.0 && factors.iter().enumerate().all(close)
    };
    let original = [2048usize, 4096, 8192, 16384, 32768]
        .into_iter()
        .find(|&original| fits(original as f64))?;
    Some(RopeScaling::Llama3 {
        // An F32 tensor holds the factor that config.json states.
        factor: stretch,
        low_freq_factor: low,
        high_freq_factor: high,
        original_max_position_embeddings: original,
    })
}
