//! Collects findings of several kinds, which are reported together.

use std::fmt::Display;

use crate::error::{MAX_LISTED, Refusal, Result, Word, refuse_all, shown};

/// The codes of each step of a check, in the order in which their findings are reported.
pub(crate) type Steps = &'static [&'static [Word]];

/// Collects everything that a check finds wrong. Findings are reported by step and then by subject, in whatever order they were found.
pub(crate) struct Findings<'a> {
    artifact: &'a str,
    steps: Steps,
    list: Vec<(usize, String, Refusal)>,
}

impl<'a> Findings<'a> {
    /// Creates an empty list of findings about `artifact`.
    pub(crate) fn new(artifact: &'a str, steps: Steps) -> Self {
        Self {
            artifact,
            steps,
            list: Vec::new(),
        }
    }

    /// Adds a finding about `subject`; `tell` adds the expected and found values. Findings beyond the 10,000th are left out.
    pub(crate) fn add(&mut self, code: Word, subject: &str, tell: impl FnOnce(Refusal) -> Refusal) {
        if self.list.len() >= MAX_LISTED {
            return;
        }
        let step = self
            .steps
            .iter()
            .position(|words| words.contains(&code))
            .unwrap_or(self.steps.len());
        let refusal = Refusal::new(code).of(self.artifact).subject(subject);
        self.list.push((step, subject.to_string(), tell(refusal)));
    }

    /// Adds a finding about `subject`, which is another than expected.
    pub(crate) fn differs(
        &mut self,
        code: Word,
        subject: &str,
        expected: impl Display,
        found: impl Display,
    ) {
        self.add(code, subject, |refusal| {
            refusal.expected(expected).found(found)
        });
    }

    /// Adds a finding about `subject`, in whose place there is nothing to show.
    pub(crate) fn lacks(&mut self, code: Word, subject: &str, expected: impl Display) {
        self.add(code, subject, |refusal| refusal.expected(expected));
    }

    /// Refuses the artifact for all findings at once, if there are any.
    pub(crate) fn result(mut self) -> Result<()> {
        self.list.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        refuse_all(self.list.into_iter().map(|(.., refusal)| refusal).collect())
    }
}

/// Joins names into a list, each escaped and shortened, none left out.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}
