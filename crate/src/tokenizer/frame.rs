//! The tokens around a text.

use serde_json::Value;
use tokenizers::{Encoding, PostProcessor, Token};

use super::class::{Framing, TokenizerClass};
use super::{TOKENIZER_FILE, bad};
use crate::error::Result;

/// Id of no token, used in place of a text.
const TEXT: u32 = u32::MAX;

/// Ids before and after a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub before: Vec<u32>,
    pub after: Vec<u32>,
}

impl Frame {
    /// Returns the tokens that the post-processor puts around a text, or those that the class and the keys of `tokenizer_config.json` put in
    /// their place: `bos` and `eos`.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a post-processor that cannot be applied.
    pub fn of(
        inner: &tokenizers::Tokenizer,
        class: Option<&TokenizerClass>,
        settings: &Value,
        bos: &[u32],
        eos: &[u32],
    ) -> Result<Self> {
        let written = Self::written(inner)?;
        let framing = class.map_or(Framing::Processor, |class| class.framing);
        let settled = |key: &str, written: Vec<u32>, own: &[u32], begins: bool| match (
            framing,
            settings.get(key),
        ) {
            (Framing::Processor, _) => written,
            (_, Some(Value::Bool(true))) => own.to_vec(),
            (_, Some(Value::Bool(false))) | (Framing::Keys, _) => Vec::new(),
            (Framing::Begun, None) if begins && written.is_empty() => own.to_vec(),
            (Framing::Begun, _) => written,
        };
        Ok(Self {
            before: settled("add_bos_token", written.before, bos, true),
            after: settled("add_eos_token", written.after, eos, false),
        })
    }

    /// Returns the tokens that the post-processor puts around a text.
    fn written(inner: &tokenizers::Tokenizer) -> Result<Self> {
        let Some(processor) = inner.get_post_processor() else {
            return Ok(Self::default());
        };
        let token = Token::new(TEXT, String::new(), (0, 0));
        let around = processor.process(Encoding::from_tokens(vec![token], 0), None, true);
        let around = around.map_err(|error| bad(TOKENIZER_FILE, error))?;
        let parts = around
            .get_ids()
            .split(|id| *id == TEXT)
            .map(<[u32]>::to_vec);
        match <[Vec<u32>; 2]>::try_from(parts.collect::<Vec<_>>()) {
            Ok([before, after]) => Ok(Self { before, after }),
            Err(_) => {
                let reason = "the post-processor writes a text twice, or not at all";
                Err(bad(TOKENIZER_FILE, reason))
            }
        }
    }
}
