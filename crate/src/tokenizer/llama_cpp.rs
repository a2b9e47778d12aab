//! Facts that llama.cpp takes where a GGUF file does not state them: ids, and tokens that it knows by their texts
//! (`src/llama-vocab.cpp`, `llama_vocab::impl::load`).

use super::parts::{CONTROL, NORMAL, PartsModel, TokenizerParts, USER_DEFINED};
use super::pre::{Beginning, Pre};

/// Maximum number of end tokens that are named: GGUF has keys for the ends of a text, of a turn and of a message.
pub(super) const MAX_ENDS: usize = 3;

/// Texts of tokens that end a text or a turn, whatever type the file gives them.
const ENDS: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Number of kinds of tokens around code that is to be filled in.
pub(crate) const FILLS: usize = 6;

/// Texts of tokens around code that is to be filled in, whatever their type: before it, after it, in its place, and three kinds that also end
/// a text: padding, the name of a repository, and the border of a file.
const FILL_TEXTS: [&[&str]; FILLS] = [
    &[
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<｜fim▁begin｜>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<|prefix|>",
    ],
    &[
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<｜fim▁hole｜>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<|suffix|>",
    ],
    &[
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<｜fim▁end｜>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<|middle|>",
    ],
    &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
    &[
        "<|fim_repo|>",
        "<|repo_name|>",
        "<fim-repo>",
        "<REPO>",
        "<reponame>",
    ],
    &["<|file_sep|>"],
];

/// First of the kinds of [`FILL_TEXTS`] that end a text.
const ENDING_FILLS: usize = 3;

/// Texts of tokens of which a program shows the text, whatever their type.
const SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// Ids that a GGUF file names, and words of it that change how tokens are found.
#[derive(Debug, Default)]
pub(crate) struct GgufIds {
    /// `tokenizer.ggml.bos_token_id`.
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos: Option<u32>,
    /// `tokenizer.ggml.eot_token_id` and `tokenizer.ggml.eom_token_id`.
    pub turns: [Option<u32>; 2],
    /// `tokenizer.ggml.unknown_token_id`.
    pub unk: Option<u32>,
    /// Ids of the tokens around code that is to be filled in.
    pub fills: [Option<u32>; FILLS],
    /// `general.name`.
    pub title: String,
}

/// Returns true if llama.cpp takes a token with this text for one of its own, whatever its type.
pub(super) fn is_known_text(text: &str) -> bool {
    ENDS.contains(&text)
        || SHOWN.contains(&text)
        || FILL_TEXTS.iter().any(|texts| texts.contains(&text))
}

/// Returns true if llama.cpp ends a text at a token with this text.
pub(super) fn ends_by_text(text: &str) -> bool {
    ENDS.contains(&text)
}

/// Tells whether a token with a text is among those that end a text.
type Has<'a> = &'a dyn Fn(&str) -> bool;

impl TokenizerParts {
    /// Fills in all that llama.cpp takes where the file does not state it, and gives tokens that it knows by their texts the types that they
    /// have there.
    pub(crate) fn completed(mut self, stated: &GgufIds) -> Self {
        let count = self.tokens.len();
        let (bos, eos, unk) = match &self.model {
            PartsModel::ByteLevelBpe { pre, .. } => {
                let absent = Pre::of(pre).is_some_and(|rule| rule.beginning == Beginning::Absent);
                (Some(11).filter(|_| !absent), Some(11), None)
            }
            PartsModel::SentencePiece { .. } => (Some(1), Some(2), Some(0)),
            PartsModel::Characters => (None, None, None),
        };
        let in_use = |id: Option<u32>| id.filter(|id| (*id as usize) < count);
        self.bos = stated.bos.or(in_use(bos));
        self.unk = stated.unk.or(in_use(unk));
        let found = |texts: &[&str]| {
            let known = (0..).zip(&self.tokens);
            let known = known.filter(|(_, text)| texts.contains(&text.as_str()));
            known.map(|(id, _)| id).collect::<Vec<u32>>()
        };
        let (by_text, shown) = (found(&ENDS), found(&SHOWN));
        let filling = FILL_TEXTS.map(|texts| found(texts).first().copied());
        let fills = || filling.into_iter().zip(stated.fills);
        let unnamed = fills().filter_map(|(id, named)| id.filter(|_| named.is_none()));
        let control: Vec<u32> = by_text.iter().copied().chain(unnamed).collect();
        let mut ends = Vec::from_iter(stated.eos.or(in_use(eos)));
        ends.extend(stated.turns.into_iter().flatten());
        ends.extend(by_text);
        ends.extend(
            fills()
                .skip(ENDING_FILLS)
                .filter_map(|(id, named)| named.or(id)),
        );
        self.set_kinds(&control, CONTROL);
        self.set_kinds(&shown, USER_DEFINED);
        self.eos.clear();
        for id in ends {
            if !self.eos.contains(&id) {
                self.eos.push(id);
            }
        }
        let calls = |has: Has<'_>| has("<|call|>") || has("<|calls|>");
        let inner = |has: Has<'_>| calls(has) && (has("<|return|>") || has("<|flush|>"));
        self.reconsider("<|end|>", inner, USER_DEFINED);
        let outer = |has: Has<'_>| has("<|tool_response>") || has("<|plamo:eos|>");
        self.reconsider("</s>", outer, NORMAL);
        self.strip_spaces(&stated.title);
        self
    }

    /// Takes a token out of those that end a text if others are among them, by `also`, and gives it a type.
    fn reconsider(&mut self, text: &str, also: impl Fn(Has<'_>) -> bool, kind: i32) {
        let texts: Vec<&str> = self.eos.iter().filter_map(|id| self.text(*id)).collect();
        let place = texts.iter().position(|found| *found == text);
        if let Some(place) = place.filter(|_| also(&|other| texts.contains(&other))) {
            let id = self.eos.remove(place);
            self.set_kinds(&[id], kind);
        }
    }

    fn set_kinds(&mut self, ids: &[u32], kind: i32) {
        if !ids.is_empty() && self.types.is_empty() {
            self.types = vec![NORMAL; self.tokens.len()];
        }
        for id in ids {
            if let Some(place) = self.types.get_mut(*id as usize) {
                *place = kind;
            }
        }
    }

    /// Marks the tokens that take the spaces next to them. GGUF has no place for this: llama.cpp goes by names.
    fn strip_spaces(&mut self, title: &str) {
        let title = title.to_ascii_lowercase();
        let is_jina = match &self.model {
            PartsModel::ByteLevelBpe { pre, .. } => {
                ["jina-v2-de", "jina-v2-es", "jina-v2-code"].contains(&pre.as_str())
            }
            _ => false,
        };
        let tokens = || (0..).zip(&self.tokens);
        if !is_jina && (title.contains("phi-3") || title.contains("phi3")) {
            let kept = ["<unk>", "<s>", "<|endoftext|>"];
            let strips = |(id, text): &(u32, &String)| {
                self.is_marked(*id as usize) && !kept.contains(&text.as_str())
            };
            self.rstrip = tokens().filter(strips).map(|(id, _)| id).collect();
            self.lstrip.clear();
            return;
        }
        let mask = match is_jina {
            true => Some("<mask>"),
            false => Some("[MASK]").filter(|_| title.contains("modern-bert")),
        };
        let id = tokens().find(|(_, text)| Some(text.as_str()) == mask);
        self.lstrip = Vec::from_iter(id.map(|(id, _)| id));
    }

    /// Returns the ids that an export names as ends of a text, a turn and a message: all if there are at most three, else those that llama.cpp
    /// does not find by their texts, after the first.
    pub(crate) fn named_ends(&self) -> Vec<u32> {
        let known = |id: u32| self.text(id).is_some_and(ends_by_text);
        let few = self.eos.len() <= MAX_ENDS;
        let ends = self.eos.iter().enumerate();
        let named = ends.filter(|(place, id)| *place == 0 || few || !known(**id));
        named.map(|(_, id)| *id).collect()
    }
}
