//! Byte-level tokenizers, whose pre-tokenizer splits a text as one of the rules of llama.cpp.

use std::collections::HashSet;

use serde_json::Value;

use super::super::coverage::letter;
use super::super::parts::{PartsModel, TokenizerParts};
use super::super::pre::{DIGIT, GPT2, NUMBER, Pre, canonical, matches_all};
use super::{Compared, OTHER_RULE, Structure, differs, normalizers};

impl Structure<'_> {
    /// Returns the model of a byte-level vocabulary, with the word for its rule.
    pub(super) fn byte_level(
        &self,
        parts: &TokenizerParts,
        merges: &[(&str, &str)],
    ) -> Compared<PartsModel> {
        let [normalizer, applied] = &self.applied;
        let mut steps = normalizers(normalizer).into_iter();
        if let Some(other) = steps.find(|step| step["type"] != "NFC") {
            let does = "changes texts in a way that llama.cpp does not";
            return differs("normalizer", does, other);
        }
        if says(applied, "add_prefix_space") {
            let does = "puts a space before a text, which llama.cpp does not";
            return differs("pre_tokenizer", does, "add_prefix_space");
        }
        let pre_tokenizer = &self.document["pre_tokenizer"];
        let mut splits = Vec::new();
        let mut to_bytes = false;
        expressions(pre_tokenizer, &mut splits, &mut to_bytes)?;
        if !to_bytes {
            let does = "does not end with ByteLevel, as llama.cpp's rules do";
            return differs("pre_tokenizer", does, pre_tokenizer);
        }
        let model = &self.document["model"];
        let single = parts.tokens.iter().filter_map(|token| token.parse().ok());
        let single: HashSet<char> = single.collect();
        let complete = (0..=u8::MAX).all(|byte| single.contains(&letter(byte)));
        if !complete && (model["unk_token"].is_string() || model["byte_fallback"] == true) {
            let found = format!(
                "unk_token {}, byte_fallback {}",
                model["unk_token"],
                model["byte_fallback"] == true
            );
            let does = "has no token for some bytes, and writes them as llama.cpp does not";
            return differs("model", does, found);
        }
        let whole = model["ignore_merges"] == true;
        let Some((pre, exact)) = Pre::word_for(&splits, whole) else {
            if Pre::word_for(&splits, !whole).is_some() {
                let does = "splits texts by a rule that llama.cpp has only with another value of this setting";
                return differs("pre_tokenizer", does, format!("ignore_merges {whole}"));
            }
            let (does, found) = match splits.as_slice() {
                [] => (
                    "does not split texts, as llama.cpp's rules do",
                    pre_tokenizer.to_string(),
                ),
                splits => (OTHER_RULE, splits.join("  ")),
            };
            return differs("pre_tokenizer", does, found);
        };
        let digit = |character: char| character.is_ascii_digit();
        let both_digits =
            |(left, right): &&(&str, &str)| left.ends_with(digit) && right.starts_with(digit);
        let splits_digits = !exact && splits.last().is_some_and(|last| last == DIGIT);
        let joined = |(left, right): &(&str, &str)| format!("{left} {right}");
        if let Some(merge) = merges.iter().find(both_digits).filter(|_| splits_digits) {
            let does =
                "splits digits apart, which llama.cpp does not where a merge joins two of them";
            return differs("pre_tokenizer", does, joined(merge));
        }
        Ok(PartsModel::ByteLevelBpe {
            merges: merges.iter().map(joined).collect(),
            pre: pre.to_owned(),
        })
    }
}

/// Returns true if a part, or a part of it, has this setting.
fn says(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, inner)| name == key && *inner == true || says(inner, key)),
        Value::Array(items) => items.iter().any(|item| says(item, key)),
        _ => false,
    }
}

/// Collects the expressions of a byte-level pre-tokenizer, each of which isolates its matches.
fn expressions(value: &Value, splits: &mut Vec<String>, to_bytes: &mut bool) -> Compared<()> {
    let other = || differs("pre_tokenizer", OTHER_RULE, value);
    match value["type"].as_str() {
        Some("Sequence") => {
            let Some(items) = value["pretokenizers"].as_array() else {
                return other();
            };
            for item in items {
                expressions(item, splits, to_bytes)?;
            }
        }
        // All that follows would read bytes.
        _ if *to_bytes => return other(),
        Some("ByteLevel") => {
            *to_bytes = true;
            if value["use_regex"] != false {
                splits.push(GPT2.to_owned());
            }
        }
        Some("Digits") if value["individual_digits"] == true => splits.push(DIGIT.to_owned()),
        Some("Digits") => splits.push(NUMBER.to_owned()),
        Some("Split") => {
            let Some(regex) = value["pattern"]["Regex"].as_str() else {
                return other();
            };
            let expression = canonical(regex);
            let isolates = value["behavior"] == "Isolated" && value["invert"] != true;
            let keeps = value["behavior"] == "Removed"
                && value["invert"] == true
                && matches_all(&expression);
            if !isolates && !keeps {
                return other();
            }
            splits.push(expression);
        }
        _ => return other(),
    }
    Ok(())
}
