//! Tokenizers of SentencePiece, whose merges have the order of the scores of their pieces.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::parts::{PartsModel, TokenizerParts, is_byte};
use super::{Compared, OTHER_RULE, Structure, differs, normalizers};

impl Structure<'_> {
    /// Returns the model of a vocabulary of pieces, with their scores.
    pub(super) fn sentence_piece(
        &self,
        parts: &TokenizerParts,
        merges: &[(&str, &str)],
    ) -> Compared<PartsModel> {
        let spaces = |step: &Value| {
            step["type"] == "Replace" && step["pattern"]["String"] == " " && step["content"] == "▁"
        };
        let before = |step: &Value| step["type"] == "Prepend" && step["prepend"] == "▁";
        let [normalizer, pre_tokenizer] = &self.applied;
        let add_space_prefix = match (normalizers(normalizer).as_slice(), pre_tokenizer) {
            ([first, second], Value::Null) if before(first) && spaces(second) => true,
            ([only], Value::Null) if spaces(only) => false,
            ([], metaspace) if metaspace["type"] == "Metaspace" => {
                // A Metaspace that puts a space before a text leaves it out where there is one, or after special tokens.
                let plain = metaspace["prepend_scheme"] == "never"
                    && metaspace["split"] == false
                    && metaspace["replacement"] == "▁";
                if !plain {
                    return Err(differs(
                        "pre_tokenizer",
                        "begins or splits texts as llama.cpp does not",
                        metaspace,
                    ));
                }
                false
            }
            (_, Value::Null) => {
                return Err(differs(
                    "normalizer",
                    "changes texts in other ways than to write ▁ for spaces",
                    normalizer,
                ));
            }
            _ => return Err(differs("pre_tokenizer", OTHER_RULE, pre_tokenizer)),
        };
        if let Some((text, _)) = self
            .added
            .iter()
            .find(|(_, normalized)| *normalized && !normalizers(normalizer).is_empty())
        {
            return Err(differs(
                "added_tokens",
                "have one that is found after a text is normalized, as in llama.cpp none is",
                text,
            ));
        }
        let model = &self.document["model"];
        // Without any, llama.cpp refuses a text with a character that has no token; it reads none otherwise.
        let bytes = parts.tokens.iter().filter(|token| is_byte(token)).count();
        let falls_back = model["byte_fallback"] == true;
        if (bytes, falls_back) != (256, true) && (bytes, falls_back) != (0, false) {
            let found = format!("{bytes} of 256 byte tokens, byte_fallback {falls_back}");
            return Err(differs(
                "model",
                "reads characters without a token as llama.cpp does not",
                found,
            ));
        }
        if model["ignore_merges"] == true {
            return Err(differs(
                "model",
                "takes whole pieces, which llama.cpp builds by merges",
                "ignore_merges",
            ));
        }
        // The earlier a merge, the better the score of its piece; a piece without a merge has the worst.
        let mut ranks = HashMap::new();
        let mut last = String::new();
        for (rank, (left, right)) in merges.iter().enumerate() {
            let piece = format!("{left}{right}");
            let known = ranks.contains_key(&piece);
            if known && piece != last {
                return Err(differs(
                    "model",
                    "has merges of one piece at different places of its list",
                    piece,
                ));
            }
            ranks.entry(piece.clone()).or_insert(rank);
            last = piece;
        }
        let rank = |token: &String| ranks.get(token).copied().unwrap_or(merges.len());
        let scores: Vec<f32> = parts
            .tokens
            .iter()
            .map(|token| -(rank(token) as f32))
            .collect();
        let ids: HashMap<&str, usize> = parts
            .tokens
            .iter()
            .enumerate()
            .map(|(id, token)| (token.as_str(), id))
            .collect();
        let pieces = |piece: &str| ids.get(piece).is_some_and(|id| parts.is_piece(*id, piece));
        let stated: HashSet<(&str, &str)> = merges
            .iter()
            .filter(|(left, right)| pieces(&format!("{left}{right}")))
            .copied()
            .collect();
        let implied: HashSet<(&str, &str)> = parts
            .ranked(&scores, &ids)
            .into_iter()
            .map(|entry| entry.4)
            .collect();
        if let Some((left, right)) = implied.symmetric_difference(&stated).min() {
            return Err(differs(
                "model",
                "has other merges than those by which llama.cpp joins its pieces",
                format!("{left} {right}"),
            ));
        }
        Ok(PartsModel::SentencePiece {
            scores,
            add_space_prefix,
        })
    }
}
