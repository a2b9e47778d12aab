//! Rewrites the expressions of a `tokenizer.json` for our engine. They are written for Oniguruma 6.9, in its own syntax (`doc/RE` of
//! its repository), which Hugging Face's tokenizers use; `fancy-regex` reads many of them otherwise, or not at all.

mod class;
mod escape;
mod fold;
mod group;
mod interval;
mod node;
mod parse;
mod repeat;
mod write;

/// Construct that cannot be said in our engine's syntax, or that Oniguruma refuses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsaid {
    /// Construct as it is in the expression.
    pub found: String,
    /// Explanation of the problem and of the way out.
    pub reason: &'static str,
}

type Result<T> = std::result::Result<T, Unsaid>;

/// Returns the expression with the same meaning for `fancy-regex`.
pub(super) fn rewritten(expression: &str) -> Result<String> {
    let (root, named, references) = parse::Parser::parse(expression)?;
    write::Writer { named, references }.text(&root)
}

fn unsaid<T>(found: impl Into<String>, reason: &'static str) -> Result<T> {
    Err(Unsaid {
        found: found.into(),
        reason,
    })
}
