//! The space before the first word of a text, on which `add_prefix_space` of `tokenizer_config.json` decides.

use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::normalizers::Sequence as Normalizers;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use super::bad;
use super::class::TokenizerClass;
use crate::error::Result;

/// Applies `stated` as transformers does: for classes that settle the space themselves, wherever the byte level is, without it if nothing is
/// stated; for a vocabulary of pieces of Llama's class, to the marks of spaces; otherwise to a pre-tokenizer that is the byte level alone.
pub(super) fn settle(inner: &mut Tokenizer, class: Option<&TokenizerClass>, stated: Option<bool>) -> Result<()> {
    let settles = class.is_some_and(|class| class.settles_space);
    let Some(wanted) = stated.or(settles.then_some(false)) else { return Ok(()) };
    let pieces = class.is_some_and(|class| class.of_pieces);
    let set = |part: &mut PreTokenizerWrapper| match part {
        PreTokenizerWrapper::ByteLevel(level) => level.add_prefix_space = wanted,
        PreTokenizerWrapper::Metaspace(space) if pieces => set_scheme(space, wanted),
        _ => {}
    };
    let changed = match inner.get_pre_tokenizer().cloned() {
        Some(PreTokenizerWrapper::Sequence(parts)) if settles || pieces => {
            let mut parts: Vec<PreTokenizerWrapper> = parts.into_iter().collect();
            parts.iter_mut().for_each(set);
            Some(PreTokenizerWrapper::Sequence(PreTokenizers::new(parts)))
        }
        one => one.map(|mut part| {
            set(&mut part);
            part
        }),
    };
    inner.with_pre_tokenizer(changed);
    if pieces && !wanted {
        if let Some(NormalizerWrapper::Sequence(parts)) = inner.get_normalizer().cloned() {
            let kept = parts.into_iter().filter(|part| !matches!(part, NormalizerWrapper::Prepend(_))).collect();
            inner.with_normalizer(Some(Normalizers::new(kept))).map_err(|error| bad("normalizer", error))?;
        }
        if let Some(DecoderWrapper::Sequence(parts)) = inner.get_decoder() {
            let kept = parts.get_decoders().iter().filter(|part| !matches!(part, DecoderWrapper::Strip(strip) if strip.content == ' '));
            let kept = Decoders::new(kept.cloned().collect());
            inner.with_decoder(Some(kept));
        }
    }
    Ok(())
}

fn set_scheme(space: &mut tokenizers::pre_tokenizers::metaspace::Metaspace, wanted: bool) {
    match (wanted, space.get_prepend_scheme()) {
        (false, _) => space.set_prepend_scheme(PrependScheme::Never),
        (true, PrependScheme::Never) => space.set_prepend_scheme(PrependScheme::First),
        (true, _) => {}
    }
}
