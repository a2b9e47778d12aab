//! The tokens that `tokenizer_config.json` puts around a text.

use serde_json::Value;

/// Classes of tokenizers in which `add_bos_token` and `add_eos_token` override the post-processor of `tokenizer.json`: their fast
/// tokenizers build a new one from the two keys (transformers 4.44, `update_post_processor`). Programs that read the keys when they write a
/// GGUF file agree with them. transformers 5 reads the keys only if there is no `tokenizer.json`.
const CLASSES: [&str; 5] = ["LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer", "GPTNeoXTokenizer"];

/// Ids before and after a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

impl Frame {
    /// Returns the tokens that the keys of `config` put around a text, in place of those that the post-processor puts around an empty text,
    /// `wrapped`; `None` if the keys are absent or do not apply.
    pub(super) fn stated(config: &Value, wrapped: &[u32], bos: &[u32], eos: &[u32]) -> Option<Self> {
        let named = config.get("tokenizer_class").and_then(Value::as_str).unwrap_or_default();
        let key = |key: &str| config.get(key).and_then(Value::as_bool);
        let (begins, ends) = (key("add_bos_token"), key("add_eos_token"));
        if !CLASSES.contains(&named.strip_suffix("Fast").unwrap_or(named)) || (begins, ends) == (None, None) {
            return None;
        }
        let first = |stated: Option<bool>, ids: &[u32], found: bool| {
            let wanted = stated.unwrap_or(found);
            ids.first().copied().filter(|_| wanted).into_iter().collect()
        };
        let begun = wrapped.first().is_some_and(|id| bos.contains(id));
        let ended = wrapped.last().is_some_and(|id| eos.contains(id));
        Some(Self { before: first(begins, bos, begun), after: first(ends, eos, ended) })
    }
}
