//! Byte-level tokenizers, whose pre-tokenizer splits a text as one of the rules of llama.cpp.

use std::collections::HashSet;

use serde_json::Value;

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
        if let Some(other) = normalizers(&self.applied[0])
            .into_iter()
            .find(|step| step["type"] != "NFC")
        {
            return Err(differs(
                "normalizer",
                "changes texts in a way that llama.cpp does not",
                other,
            ));
        }
        if says(&self.applied[1], "add_prefix_space") {
            return Err(differs(
                "pre_tokenizer",
                "puts a space before a text, which llama.cpp does not",
                "add_prefix_space",
            ));
        }
        let mut splits = Vec::new();
        let mut to_bytes = false;
        expressions(&self.document["pre_tokenizer"], &mut splits, &mut to_bytes)?;
        if !to_bytes {
            return Err(differs(
                "pre_tokenizer",
                "does not end with ByteLevel, as llama.cpp's rules do",
                &self.document["pre_tokenizer"],
            ));
        }
        let model = &self.document["model"];
        let single: HashSet<char> = parts
            .tokens
            .iter()
            .filter_map(|token| token.parse().ok())
            .collect();
        let complete = bytes_to_characters().all(|character| single.contains(&character));
        if !complete && (model["unk_token"].is_string() || model["byte_fallback"] == true) {
            let found = format!(
                "unk_token {}, byte_fallback {}",
                model["unk_token"],
                model["byte_fallback"] == true
            );
            return Err(differs(
                "model",
                "has no token for some bytes, and writes them as llama.cpp does not",
                found,
            ));
        }
        let whole = model["ignore_merges"] == true;
        let Some((pre, exact)) = Pre::word_for(&splits, whole) else {
            if Pre::word_for(&splits, !whole).is_some() {
                let does = "splits texts by a rule that llama.cpp has only with another value of this setting";
                return Err(differs(
                    "pre_tokenizer",
                    does,
                    format!("ignore_merges {whole}"),
                ));
            }
            return Err(match splits.as_slice() {
                [] => differs(
                    "pre_tokenizer",
                    "does not split texts, as llama.cpp's rules do",
                    &self.document["pre_tokenizer"],
                ),
                splits => differs("pre_tokenizer", OTHER_RULE, splits.join("  ")),
            });
        };
        let digit = |character: char| character.is_ascii_digit();
        let both_digits =
            |(left, right): &&(&str, &str)| left.ends_with(digit) && right.starts_with(digit);
        match merges
            .iter()
            .find(both_digits)
            .filter(|_| !exact && splits.last().is_some_and(|last| last == DIGIT))
        {
            Some((left, right)) => {
                let does =
                    "splits digits apart, which llama.cpp does not where a merge joins two of them";
                Err(differs("pre_tokenizer", does, format!("{left} {right}")))
            }
            None => {
                let merges = merges
                    .iter()
                    .map(|(left, right)| format!("{left} {right}"))
                    .collect();
                Ok(PartsModel::ByteLevelBpe {
                    merges,
                    pre: pre.to_owned(),
                })
            }
        }
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
            let items = value["pretokenizers"].as_array().ok_or_else(other)?;
            return items
                .iter()
                .try_for_each(|item| expressions(item, splits, to_bytes));
        }
        // All that follows would read bytes.
        _ if *to_bytes => return Err(other()),
        Some("ByteLevel") => {
            *to_bytes = true;
            if value["use_regex"] != false {
                splits.push(GPT2.to_owned());
            }
        }
        Some("Digits") => splits.push(
            if value["individual_digits"] == true {
                DIGIT
            } else {
                NUMBER
            }
            .to_owned(),
        ),
        Some("Split") => {
            let expression = canonical(value["pattern"]["Regex"].as_str().ok_or_else(other)?);
            let isolates = value["behavior"] == "Isolated" && value["invert"] != true;
            let keeps = value["behavior"] == "Removed"
                && value["invert"] == true
                && matches_all(&expression);
            if !isolates && !keeps {
                return Err(other());
            }
            splits.push(expression);
        }
        _ => return Err(other()),
    }
    Ok(())
}

/// Returns the characters that stand for bytes in byte-level vocabularies.
fn bytes_to_characters() -> impl Iterator<Item = char> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let plain = (0..256u32).filter(move |byte| printable(*byte));
    let moved = (0x100..)
        .zip((0..256u32).filter(move |byte| !printable(*byte)))
        .map(|(character, _)| character);
    plain.chain(moved).filter_map(char::from_u32)
}
