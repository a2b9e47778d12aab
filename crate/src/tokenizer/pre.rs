//! The rules by which llama.cpp splits a text before it divides it into byte-level tokens, by the words of `tokenizer.ggml.pre`
//! (`src/llama-vocab.cpp` and `src/unicode.cpp`), as expressions in the form of Hugging Face's documents.

mod patterns;
mod rules;

use self::patterns::contractions;
pub(super) use self::patterns::{DIGIT, GPT2, LLAMA_BPE, NUMBER, QWEN2};
use self::rules::RULES;

/// The meaning of a word of `tokenizer.ggml.pre`.
#[derive(Debug)]
pub(super) struct Pre {
    /// llama.cpp's words for the rule; exports write the first.
    words: &'static [&'static str],
    /// Expressions; each isolates its matches within the parts that those before it left.
    pub splits: &'static [&'static str],
    /// Expressions of published documents for which llama.cpp takes the same words, though its own are others.
    published: &'static [&'static [&'static str]],
    /// True if a word that is a token is never built by merges.
    pub whole: bool,
    /// Beginning of a text where the file says nothing.
    pub beginning: Beginning,
}

/// Beginning of a text where a file says nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// There is a token for it, but texts begin without it.
    Known,
    /// A text begins with its token.
    Written,
    /// There is no such token.
    Absent,
}

impl Pre {
    const fn new(words: &'static [&'static str], splits: &'static [&'static str]) -> Self {
        Self {
            words,
            splits,
            published: &[],
            whole: false,
            beginning: Beginning::Known,
        }
    }

    const fn also(self, published: &'static [&'static [&'static str]]) -> Self {
        Self { published, ..self }
    }

    const fn whole(self, beginning: Beginning) -> Self {
        Self {
            whole: true,
            beginning,
            ..self
        }
    }

    /// Returns the rule of the word `pre`; `None` if there is none, or it is refused.
    pub fn of(pre: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.words.contains(&pre))
    }

    /// Returns the word for a rule with these expressions, each in the form of [`canonical`], and true if they are llama.cpp's own.
    pub fn word_for(splits: &[String], whole: bool) -> Option<(&'static str, bool)> {
        let same = |listed: &[&str]| {
            listed
                .iter()
                .map(|split| canonical(split))
                .eq(splits.iter().cloned())
        };
        let is_published = |rule: &&Self| rule.published.iter().any(|listed| same(listed));
        let mut rules = RULES.iter().filter(|rule| rule.whole == whole);
        let own = rules.clone().find(|rule| same(rule.splits));
        let rule = own.or_else(|| rules.find(is_published))?;
        Some((rule.words[0], own.is_some()))
    }
}

/// Published spellings of the same parts, and the ones that are used here.
const SPELLINGS: [(&str, &str); 10] = [
    ("\r", r"\r"),
    ("\n", r"\n"),
    ("\t", r"\t"),
    (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
        contractions!(),
    ),
    ("'(?i:[sdmt]|ll|ve|re)", contractions!()),
    ("'(?:[sdmt]|ll|ve|re)|", "'s|'t|'re|'ve|'m|'ll|'d|"),
    // No class contains what comes after it, so that giving back changes nothing.
    (r"]?+\p{L}", r"]?\p{L}"),
    (r"]++[\r\n", r"]+[\r\n"),
    // Both end at the last line end of a run of spaces.
    (r"|\s*[\r\n]|", r"|\s*[\r\n]+|"),
    (r"\p{N}{1}|", r"\p{N}|"),
];

/// Returns an expression in the spelling in which equal ones of published documents are equal texts.
pub(super) fn canonical(expression: &str) -> String {
    let spelled = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    SPELLINGS.iter().fold(expression.to_owned(), spelled)
}

/// Returns true if an expression leaves no part of a text between its matches.
pub(super) fn matches_all(canonical: &str) -> bool {
    [GPT2, LLAMA_BPE, QWEN2].contains(&canonical)
}
