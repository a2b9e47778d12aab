//! A tokenized text, and the positions of its tokens.

use std::ops::Range;

use super::example::Example;
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// A tokenized text.
pub(super) struct Tokens<'a> {
    pub text: &'a str,
    pub ids: Vec<u32>,
    /// The byte of the text at which each token begins.
    pub starts: Vec<usize>,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str, tokenizer: &Tokenizer) -> Result<Self> {
        let (ids, starts) = tokenizer.encode_with_starts(text)?;
        Ok(Self { text, ids, starts })
    }

    /// Returns the byte at which the token `at` ends.
    pub fn end(&self, at: usize) -> usize {
        self.starts.get(at + 1).copied().unwrap_or(self.text.len())
    }

    fn is_special(&self, at: usize, tokenizer: &Tokenizer) -> bool {
        self.ids.get(at).is_some_and(|&id| tokenizer.is_special(id))
    }

    /// Returns the byte at which a special token begins that has the byte `inside` within it.
    pub fn special_around(&self, inside: usize, tokenizer: &Tokenizer) -> Option<usize> {
        let around = |(at, start): &(usize, &usize)| {
            **start < inside && self.end(*at) > inside && self.is_special(*at, tokenizer)
        };
        self.starts
            .iter()
            .enumerate()
            .find(around)
            .map(|(_, start)| *start)
    }

    /// Returns the end of the last special token that ends up to the byte `end`; 0 if there is none.
    pub fn special_before(&self, end: usize, tokenizer: &Tokenizer) -> usize {
        (0..self.ids.len())
            .rfind(|at| self.end(*at) <= end && self.is_special(*at, tokenizer))
            .map_or(0, |at| self.end(at))
    }

    /// Returns the end of the last token in `span` that ends a turn. In a base model this token may differ from the one that ends its
    /// texts: it is a special token at the end of the span, or the one with which the template ends its turns.
    pub fn turn_end(&self, span: &Range<usize>, tokenizer: &Tokenizer) -> Option<usize> {
        let inside = |at: &usize| {
            self.starts
                .get(*at)
                .is_some_and(|&start| span.contains(&start) && self.end(*at) <= span.end)
        };
        let last = |test: &dyn Fn(u32, usize) -> bool| {
            let found = (0..self.ids.len())
                .filter(inside)
                .rfind(|&at| self.ids.get(at).is_some_and(|&id| test(id, self.end(at))));
            found.map(|at| self.end(at))
        };
        let blank_after = |end: usize| {
            self.text
                .get(end..span.end)
                .is_some_and(|rest| rest.trim().is_empty())
        };
        last(&|id, _| tokenizer.eos().contains(&id))
            .or_else(|| last(&|id, end| tokenizer.is_special(id) && blank_after(end)))
            .or_else(|| {
                tokenizer
                    .turn_end()
                    .and_then(|end| last(&|id, _| id == end))
            })
    }

    /// Returns true if a token begins before one of `spans` and ends within it: it is read, not learned.
    pub fn crosses(&self, spans: &[Range<usize>]) -> bool {
        let into = |span: &Range<usize>| {
            (0..self.starts.len())
                .any(|at| self.starts[at] < span.start && self.end(at) > span.start)
        };
        spans.iter().any(into)
    }

    /// Makes an example that learns the tokens that begin in one of `spans`.
    pub fn example(&self, spans: &[Range<usize>]) -> Example {
        let counted = self
            .starts
            .iter()
            .map(|start| spans.iter().any(|span| span.contains(start)))
            .collect();
        Example::new(self.ids.clone(), counted)
    }
}
