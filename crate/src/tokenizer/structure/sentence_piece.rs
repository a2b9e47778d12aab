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
                    let does = "begins or splits texts as llama.cpp does not";
                    return differs("pre_tokenizer", does, metaspace);
                }
                false
            }
            (_, Value::Null) => {
                let does = "changes texts in other ways than to write ▁ for spaces";
                return differs("normalizer", does, normalizer);
            }
            _ => return differs("pre_tokenizer", OTHER_RULE, pre_tokenizer),
        };
        let changes = !normalizers(normalizer).is_empty();
        let mut added = self.added.iter();
        if let Some((text, _)) = added.find(|(_, normalized)| *normalized && changes) {
            let does = "have one that is found after a text is normalized, as in llama.cpp none is";
            return differs("added_tokens", does, text);
        }
        let model = &self.document["model"];
        // Without any, llama.cpp refuses a text with a character that has no token; it reads none otherwise.
        let bytes = parts.tokens.iter().filter(|token| is_byte(token)).count();
        let falls_back = model["byte_fallback"] == true;
        if ![(256, true), (0, false)].contains(&(bytes, falls_back)) {
            let does = "reads characters without a token as llama.cpp does not";
            let found = format!("{bytes} of 256 byte tokens, byte_fallback {falls_back}");
            return differs("model", does, found);
        }
        if model["ignore_merges"] == true {
            let does = "takes whole pieces, which llama.cpp builds by merges";
            return differs("model", does, "ignore_merges");
        }
        // The earlier a merge, the better the score of its piece; a piece without a merge has the worst.
        let mut ranks = HashMap::new();
        let mut last = String::new();
        for (rank, (left, right)) in merges.iter().enumerate() {
            let piece = format!("{left}{right}");
            if piece != last && ranks.contains_key(&piece) {
                let does = "has merges of one piece at different places of its list";
                return differs("model", does, piece);
            }
            ranks.entry(piece.clone()).or_insert(rank);
            last = piece;
        }
        let rank = |token: &String| ranks.get(token).copied().unwrap_or(merges.len());
        let scores = parts.tokens.iter().map(|token| -(rank(token) as f32));
        let scores: Vec<f32> = scores.collect();
        let ids = parts.tokens.iter().enumerate();
        let ids: HashMap<&str, usize> = ids.map(|(id, token)| (token.as_str(), id)).collect();
        let is_piece = |piece: &str| ids.get(piece).is_some_and(|id| parts.is_piece(*id, piece));
        let stated = merges
            .iter()
            .filter(|(left, right)| is_piece(&format!("{left}{right}")));
        let stated: HashSet<(&str, &str)> = stated.copied().collect();
        let implied = parts.ranked(&scores, &ids).into_iter().map(|entry| entry.4);
        let implied: HashSet<(&str, &str)> = implied.collect();
        if let Some((left, right)) = implied.symmetric_difference(&stated).min() {
            let does = "has other merges than those by which llama.cpp joins its pieces";
            return differs("model", does, format!("{left} {right}"));
        }
        Ok(PartsModel::SentencePiece {
            scores,
            add_space_prefix,
        })
    }
}
