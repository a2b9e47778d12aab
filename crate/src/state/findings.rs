//! Findings of several kinds, told together.

use crate::error::{Error, Refusal, Result, Word, shown};
use crate::formats::MAX_LISTED;

/// The words of each step of a check, in the order in which their findings are told.
pub(crate) type Steps = &'static [&'static [Word]];

/// Everything that a check finds wrong. It is told by step and then by subject, whatever the order of finding.
pub(crate) struct Findings<'a> {
    artifact: &'a str,
    steps: Steps,
    list: Vec<(usize, String, Refusal)>,
}

impl<'a> Findings<'a> {
    /// None yet, in `artifact`.
    pub(crate) fn new(artifact: &'a str, steps: Steps) -> Self {
        Self { artifact, steps, list: Vec::new() }
    }

    /// A finding about `subject`; `tell` adds what was expected and found. Those beyond the 10,000th are left out.
    pub(crate) fn add(&mut self, code: Word, subject: &str, tell: impl FnOnce(Refusal) -> Refusal) {
        if self.list.len() >= MAX_LISTED {
            return;
        }
        let step = self.steps.iter().position(|words| words.contains(&code)).unwrap_or(self.steps.len());
        let refusal = Refusal::new(code).of(self.artifact).subject(subject);
        self.list.push((step, subject.to_string(), tell(refusal)));
    }

    /// All of them as one error, if there are any.
    pub(crate) fn result(mut self) -> Result<()> {
        if self.list.is_empty() {
            return Ok(());
        }
        self.list.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Err(Error::Refused(self.list.into_iter().map(|(_, _, refusal)| refusal).collect()))
    }
}

/// A list of names, each escaped and cut, none left out.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}
