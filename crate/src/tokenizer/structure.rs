//! Finds the rule that GGUF can name for a tokenizer, by the structure of its document.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::parts::{NORMAL, PartsModel, TokenizerParts, is_byte};
use super::pre::{DIGIT, GPT2, NUMBER, Pre, canonical, matches_all};
use super::{TOKENIZER_FILE, bad, llama_cpp};
use crate::error::{Refusal, Result, shown, word};

pub(super) fn refuse(expected: &str) -> Refusal {
    Refusal::new(word!("export.gguf.tokenizer")).of(TOKENIZER_FILE).expected(expected)
}

/// Part of a document that llama.cpp has no rule for: what it does, as the words after its name, and what was found in it.
struct Difference {
    part: &'static str,
    does: &'static str,
    found: String,
}

fn differs(part: &'static str, does: &'static str, found: impl ToString) -> Difference {
    Difference { part, does, found: found.to_string() }
}

/// Words about a pre-tokenizer whose rule llama.cpp does not have.
const OTHER_RULE: &str = "splits texts by a rule that llama.cpp does not have";

type Compared<T> = std::result::Result<T, Difference>;

/// A document and what was made of it.
pub(super) struct Structure<'a> {
    /// The document, with the expressions as they were published.
    pub(super) document: &'a Value,
    /// Normalizer and pre-tokenizer that are applied, which settings in other files may have changed.
    pub(super) applied: [Value; 2],
    /// Added tokens: text, and true if they are searched for in the normalized text.
    pub(super) added: Vec<(String, bool)>,
    /// True if special tokens are letters in a text (`split_special_tokens`).
    pub(super) splits_special: bool,
}

impl Structure<'_> {
    /// Returns the model of GGUF that has exactly this rule.
    ///
    /// # Errors
    /// `export.gguf.tokenizer` with the part that llama.cpp has no rule for; `tokenizer.invalid`.
    pub(super) fn model(&self, parts: &TokenizerParts) -> Result<PartsModel> {
        let listed = merges(self.document).ok_or_else(|| bad(TOKENIZER_FILE, "merges that are no pairs"))?;
        let byte_level = ["pre_tokenizer", "decoder"].iter().any(|part| self.document[*part].to_string().contains("\"ByteLevel\""));
        let found = self.common(parts).and_then(|()| match byte_level {
            true => self.byte_level(parts, &listed),
            false => self.sentence_piece(parts, &listed),
        });
        found.map_err(|Difference { part, does, found }| {
            let refusal = Refusal::new(word!("export.gguf.tokenizer")).of(TOKENIZER_FILE).subject(part);
            refusal.found_whole(format!("{does}: {}", shown(&found))).into()
        })
    }

    /// Checks what both kinds of vocabularies have.
    fn common(&self, parts: &TokenizerParts) -> Compared<()> {
        for part in ["continuing_subword_prefix", "end_of_word_suffix"] {
            let value = &self.document["model"][part];
            if value.as_str().is_some_and(|text| !text.is_empty()) {
                return Err(differs("model", "marks parts of words, which llama.cpp does not", format!("{part} {value}")));
            }
        }
        let ordinary = |(id, text): &(usize, &String)| parts.kind(*id) == NORMAL && llama_cpp::is_known_text(text);
        if let Some((_, text)) = parts.tokens.iter().enumerate().find(ordinary) {
            return Err(differs("added_tokens", "lack a token that llama.cpp takes for a special one by its text", text));
        }
        if self.splits_special {
            return Err(differs("added_tokens", "are letters in a text, where llama.cpp finds them", "split_special_tokens"));
        }
        let contents: Vec<&str> = self.added.iter().map(|(text, _)| text.as_str()).collect();
        match crossing(&contents) {
            Some((left, right)) => {
                Err(differs("added_tokens", "overlap, so that llama.cpp finds other ones in a text", format!("{left} and {right}")))
            }
            None => Ok(()),
        }
    }

    fn byte_level(&self, parts: &TokenizerParts, merges: &[(&str, &str)]) -> Compared<PartsModel> {
        if let Some(other) = normalizers(&self.applied[0]).into_iter().find(|step| step["type"] != "NFC") {
            return Err(differs("normalizer", "changes texts in a way that llama.cpp does not", other));
        }
        if says(&self.applied[1], "add_prefix_space") {
            return Err(differs("pre_tokenizer", "puts a space before a text, which llama.cpp does not", "add_prefix_space"));
        }
        let mut splits = Vec::new();
        let mut to_bytes = false;
        expressions(&self.document["pre_tokenizer"], &mut splits, &mut to_bytes)?;
        if !to_bytes {
            return Err(differs("pre_tokenizer", "does not end with ByteLevel, as llama.cpp's rules do", &self.document["pre_tokenizer"]));
        }
        let model = &self.document["model"];
        let single: HashSet<char> = parts.tokens.iter().filter_map(|token| token.parse().ok()).collect();
        let complete = bytes_to_characters().all(|character| single.contains(&character));
        if !complete && (model["unk_token"].is_string() || model["byte_fallback"] == true) {
            let found = format!("unk_token {}, byte_fallback {}", model["unk_token"], model["byte_fallback"] == true);
            return Err(differs("model", "has no token for some bytes, and writes them as llama.cpp does not", found));
        }
        let whole = model["ignore_merges"] == true;
        let Some((pre, exact)) = Pre::word_for(&splits, whole) else {
            if Pre::word_for(&splits, !whole).is_some() {
                let does = "splits texts by a rule that llama.cpp has only with another value of this setting";
                return Err(differs("pre_tokenizer", does, format!("ignore_merges {whole}")));
            }
            return Err(match splits.as_slice() {
                [] => differs("pre_tokenizer", "does not split texts, as llama.cpp's rules do", &self.document["pre_tokenizer"]),
                splits => differs("pre_tokenizer", OTHER_RULE, splits.join("  ")),
            });
        };
        let digit = |character: char| character.is_ascii_digit();
        let both_digits = |(left, right): &&(&str, &str)| left.ends_with(digit) && right.starts_with(digit);
        match merges.iter().find(both_digits).filter(|_| !exact && splits.last().is_some_and(|last| last == DIGIT)) {
            Some((left, right)) => {
                let does = "splits digits apart, which llama.cpp does not where a merge joins two of them";
                Err(differs("pre_tokenizer", does, format!("{left} {right}")))
            }
            None => {
                let merges = merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
                Ok(PartsModel::ByteLevelBpe { merges, pre: pre.to_owned() })
            }
        }
    }

    fn sentence_piece(&self, parts: &TokenizerParts, merges: &[(&str, &str)]) -> Compared<PartsModel> {
        let spaces = |step: &Value| step["type"] == "Replace" && step["pattern"]["String"] == " " && step["content"] == "▁";
        let before = |step: &Value| step["type"] == "Prepend" && step["prepend"] == "▁";
        let [normalizer, pre_tokenizer] = &self.applied;
        let add_space_prefix = match (normalizers(normalizer).as_slice(), pre_tokenizer) {
            ([first, second], Value::Null) if before(first) && spaces(second) => true,
            ([only], Value::Null) if spaces(only) => false,
            ([], metaspace) if metaspace["type"] == "Metaspace" => {
                // A Metaspace that puts a space before a text leaves it out where there is one, or after special tokens.
                let plain = metaspace["prepend_scheme"] == "never" && metaspace["split"] == false && metaspace["replacement"] == "▁";
                if !plain {
                    return Err(differs("pre_tokenizer", "begins or splits texts as llama.cpp does not", metaspace));
                }
                false
            }
            (_, Value::Null) => return Err(differs("normalizer", "changes texts in other ways than to write ▁ for spaces", normalizer)),
            _ => return Err(differs("pre_tokenizer", OTHER_RULE, pre_tokenizer)),
        };
        if let Some((text, _)) = self.added.iter().find(|(_, normalized)| *normalized && !normalizers(normalizer).is_empty()) {
            return Err(differs("added_tokens", "have one that is found after a text is normalized, as in llama.cpp none is", text));
        }
        let model = &self.document["model"];
        // Without any, llama.cpp refuses a text with a character that has no token; it reads none otherwise.
        let bytes = parts.tokens.iter().filter(|token| is_byte(token)).count();
        let falls_back = model["byte_fallback"] == true;
        if (bytes, falls_back) != (256, true) && (bytes, falls_back) != (0, false) {
            let found = format!("{bytes} of 256 byte tokens, byte_fallback {falls_back}");
            return Err(differs("model", "reads characters without a token as llama.cpp does not", found));
        }
        if model["ignore_merges"] == true {
            return Err(differs("model", "takes whole pieces, which llama.cpp builds by merges", "ignore_merges"));
        }
        // The earlier a merge, the better the score of its piece; a piece without a merge has the worst.
        let mut ranks = HashMap::new();
        let mut last = String::new();
        for (rank, (left, right)) in merges.iter().enumerate() {
            let piece = format!("{left}{right}");
            let known = ranks.contains_key(&piece);
            if known && piece != last {
                return Err(differs("model", "has merges of one piece at different places of its list", piece));
            }
            ranks.entry(piece.clone()).or_insert(rank);
            last = piece;
        }
        let scores: Vec<f32> = parts.tokens.iter().map(|token| -(ranks.get(token).copied().unwrap_or(merges.len()) as f32)).collect();
        let ids: HashMap<&str, usize> = parts.tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
        let pieces = |piece: &str| ids.get(piece).is_some_and(|id| parts.is_piece(*id, piece));
        let stated: HashSet<(&str, &str)> = merges.iter().filter(|(left, right)| pieces(&format!("{left}{right}"))).copied().collect();
        let implied: HashSet<(&str, &str)> = parts.ranked(&scores, &ids).into_iter().map(|entry| entry.4).collect();
        if let Some((left, right)) = implied.symmetric_difference(&stated).min() {
            return Err(differs("model", "has other merges than those by which llama.cpp joins its pieces", format!("{left} {right}")));
        }
        Ok(PartsModel::SentencePiece { scores, add_space_prefix })
    }
}

/// Returns the steps of a normalizer or a pre-tokenizer.
fn normalizers(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        sequence if sequence["type"] == "Sequence" => {
            sequence["normalizers"].as_array().into_iter().flatten().flat_map(normalizers).collect()
        }
        step => vec![step],
    }
}

/// Returns true if a part, or a part of it, has this setting.
fn says(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, inner)| name == key && *inner == true || says(inner, key)),
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
            return items.iter().try_for_each(|item| expressions(item, splits, to_bytes));
        }
        // All that follows would read bytes.
        _ if *to_bytes => return Err(other()),
        Some("ByteLevel") => {
            *to_bytes = true;
            if value["use_regex"] != false {
                splits.push(GPT2.to_owned());
            }
        }
        Some("Digits") => splits.push(if value["individual_digits"] == true { DIGIT } else { NUMBER }.to_owned()),
        Some("Split") => {
            let expression = canonical(value["pattern"]["Regex"].as_str().ok_or_else(other)?);
            let isolates = value["behavior"] == "Isolated" && value["invert"] != true;
            let keeps = value["behavior"] == "Removed" && value["invert"] == true && matches_all(&expression);
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
    let moved = (0x100..).zip((0..256u32).filter(move |byte| !printable(*byte))).map(|(character, _)| character);
    plain.chain(moved).filter_map(char::from_u32)
}

/// Returns two texts that overlap such that a search for the longest first finds others than one from the left.
fn crossing<'a>(texts: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let mut beginnings: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for text in texts {
        for (cut, _) in text.char_indices().skip(1) {
            beginnings.entry(text.split_at(cut).0).or_default().push(text);
        }
    }
    for left in texts {
        for (cut, _) in left.char_indices().skip(1) {
            let end = left.split_at(cut).1;
            let longer = beginnings.get(end).into_iter().flatten().find(|right| right.len() >= left.len() && **right != *left);
            let joined = longer.map(|right| format!("{left}{}", right.strip_prefix(end).unwrap_or_default()));
            // One that begins where the left one does, and is as long as the right one, is found first by both.
            if let (Some(right), Some(joined)) = (longer, joined)
                && !texts.iter().any(|text| text.len() >= right.len() && joined.starts_with(text))
            {
                return Some((left, right));
            }
        }
    }
    None
}

/// Returns the merges, best first, each of which is a pair or a text with a space between its parts.
fn merges(document: &Value) -> Option<Vec<(&str, &str)>> {
    document.pointer("/model/merges")?.as_array()?.iter().map(merge).collect()
}

fn merge(value: &Value) -> Option<(&str, &str)> {
    match value {
        Value::String(text) => text.split_once(' '),
        Value::Array(pair) => match pair.as_slice() {
            [left, right] => Some((left.as_str()?, right.as_str()?)),
            _ => None,
        },
        _ => None,
    }
}
