//! The settings of `tokenizer_config.json` for a text before it is split: the space before its first word, and the case of its letters.

use serde_json::Value;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::normalizers::Sequence as Normalizers;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use super::bad;
use super::class::TokenizerClass;
use crate::error::Result;

/// Applies `add_prefix_space` of the `settings` as transformers 4.57 does: to a pre-tokenizer that is the byte level alone, which has no space
/// if the key is absent, unless the class is Llama's; and for a vocabulary of pieces of that class, to the marks of spaces.
pub(super) fn settle(
    inner: &mut Tokenizer,
    class: Option<&TokenizerClass>,
    settings: &Value,
) -> Result<()> {
    let pieces = class.is_some_and(|class| class.of_pieces);
    let name = settings["tokenizer_class"].as_str();
    let of_llama = name.map_or(class.is_none(), |name| name.contains("Llama"));
    let stated = settings["add_prefix_space"].as_bool();
    let Some(wanted) = stated.or((!of_llama).then_some(false)) else {
        return Ok(());
    };
    let set = |part: &mut PreTokenizerWrapper| {
        if let (PreTokenizerWrapper::Metaspace(space), true) = (part, pieces) {
            match (wanted, space.get_prepend_scheme()) {
                (false, _) => space.set_prepend_scheme(PrependScheme::Never),
                (true, PrependScheme::Never) => space.set_prepend_scheme(PrependScheme::First),
                (true, _) => {}
            }
        }
    };
    let changed = match inner.get_pre_tokenizer().cloned() {
        Some(PreTokenizerWrapper::Sequence(parts)) => {
            let mut parts: Vec<PreTokenizerWrapper> = parts.into_iter().collect();
            parts.iter_mut().for_each(set);
            Some(PreTokenizerWrapper::Sequence(PreTokenizers::new(parts)))
        }
        Some(PreTokenizerWrapper::ByteLevel(mut level)) => {
            level.add_prefix_space = wanted;
            Some(PreTokenizerWrapper::ByteLevel(level))
        }
        one => one.map(|mut part| {
            set(&mut part);
            part
        }),
    };
    inner.with_pre_tokenizer(changed);
    if pieces && !wanted {
        if let Some(NormalizerWrapper::Sequence(parts)) = inner.get_normalizer().cloned() {
            let is_kept = |part: &NormalizerWrapper| !matches!(part, NormalizerWrapper::Prepend(_));
            let kept = Normalizers::new(parts.into_iter().filter(is_kept).collect());
            inner
                .with_normalizer(Some(kept))
                .map_err(|error| bad("normalizer", error))?;
        }
        if let Some(DecoderWrapper::Sequence(parts)) = inner.get_decoder() {
            let kept = parts.get_decoders().iter().filter(
                |part| !matches!(part, DecoderWrapper::Strip(strip) if strip.content == ' '),
            );
            let kept = Decoders::new(kept.cloned().collect());
            inner.with_decoder(Some(kept));
        }
    }
    Ok(())
}

/// Sets what a class of BERT takes from the `settings`: lower case, accents, and spaces around Chinese characters.
pub(super) fn settle_bert(inner: &mut Tokenizer, settings: &Value) -> Result<()> {
    let Some(NormalizerWrapper::BertNormalizer(mut own)) = inner.get_normalizer().cloned() else {
        return Ok(());
    };
    own.lowercase = settings["do_lower_case"].as_bool().unwrap_or(true);
    own.strip_accents = settings["strip_accents"].as_bool();
    own.handle_chinese_chars = settings["tokenize_chinese_chars"].as_bool().unwrap_or(true);
    let settled = inner.with_normalizer(Some(own));
    settled.map(drop).map_err(|error| bad("normalizer", error))
}
