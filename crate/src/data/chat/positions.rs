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
    tokenizer: &'a Tokenizer,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str, tokenizer: &'a Tokenizer) -> Result<Self> {
        let (ids, starts) = tokenizer.encode_with_starts(text)?;
        Ok(Self {
            text,
            ids,
            starts,
            tokenizer,
        })
    }

    /// Returns the byte at which the token `at` ends.
    pub fn end(&self, at: usize) -> usize {
        self.starts.get(at + 1).copied().unwrap_or(self.text.len())
    }

    fn is_special(&self, at: usize) -> bool {
        self.tokenizer.is_special(self.ids[at])
    }

    /// The byte at which a special token begins that has the byte `inside` within it.
    pub fn special_around(&self, inside: usize) -> Option<usize> {
        let is_around = |at: usize, start: usize| {
            start < inside && self.end(at) > inside && self.is_special(at)
        };
        let mut starts = self.starts.iter().enumerate();
        starts.find_map(|(at, &start)| is_around(at, start).then_some(start))
    }

    /// The end of the last special token that ends up to the byte `end`; 0 if there is none.
    pub fn special_before(&self, end: usize) -> usize {
        let last = (0..self.ids.len()).rfind(|at| self.end(*at) <= end && self.is_special(*at));
        last.map_or(0, |at| self.end(at))
    }

    /// Returns the end of the last token in `span` that ends a turn. In a base model this token may differ from the one that ends its
    /// texts: it is a special token at the end of the span, or the one with which the template ends its turns.
    pub fn turn_end(&self, span: &Range<usize>) -> Option<usize> {
        let inside = |at: &usize| span.contains(&self.starts[*at]) && self.end(*at) <= span.end;
        let last = |test: &dyn Fn(u32, usize) -> bool| {
            let mut tokens = (0..self.ids.len()).filter(inside);
            let found = tokens.rfind(|&at| test(self.ids[at], self.end(at)));
            found.map(|at| self.end(at))
        };
        let blank_after = |end: usize| {
            let rest = self.text.get(end..span.end);
            rest.is_some_and(|rest| rest.trim().is_empty())
        };
        last(&|id, _| self.tokenizer.eos().contains(&id))
            .or_else(|| last(&|id, end| self.tokenizer.is_special(id) && blank_after(end)))
            .or_else(|| last(&|id, _| self.tokenizer.turn_end() == Some(id)))
    }

    /// Returns true if a token begins before one of `spans` and ends within it: it is read, not learned.
    pub fn crosses(&self, spans: &[Range<usize>]) -> bool {
        let into = |span: &Range<usize>| {
            let mut tokens = 0..self.starts.len();
            tokens.any(|at| self.starts[at] < span.start && self.end(at) > span.start)
        };
        spans.iter().any(into)
    }

    /// Makes an example that learns the tokens that begin in one of `spans`.
    pub fn example(&self, spans: &[Range<usize>]) -> Example {
        let learned = |start: &usize| spans.iter().any(|span| span.contains(start));
        Example::new(self.ids.clone(), self.starts.iter().map(learned).collect())
    }
}
