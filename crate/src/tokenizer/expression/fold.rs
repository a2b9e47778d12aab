//! Letters in every case (`(?i)`), as Oniguruma folds them: also to several letters, as ß to ss.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as HirClass, ClassUnicode, HirKind};

use super::class::Class;
use super::escape::{NOTHING, coded};
use super::node::Node;
use super::{Result, unsaid};

/// The characters that fold to more than one lie between these.
const FOLDED: std::ops::RangeInclusive<char> = '\u{DF}'..='\u{FB17}';

/// Returns the letters that `char` folds to.
fn folds(char: char) -> Vec<char> {
    // Its capital is that of i, to which it does not fold.
    if char == '\u{131}' {
        return vec![char];
    }
    let lower = char.to_lowercase();
    lower
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Characters that fold to several, with what they fold to.
pub(super) struct Multiple(Vec<(Vec<char>, char)>);

impl Multiple {
    /// Returns the table, which the first expression that needs it makes.
    pub fn table() -> &'static Self {
        static TABLE: OnceLock<Multiple> = OnceLock::new();
        TABLE.get_or_init(|| {
            let several = |char: &char| {
                char.to_lowercase()
                    .flat_map(char::to_uppercase)
                    .nth(1)
                    .is_some()
            };
            let folded = FOLDED.filter(several).map(|char| (folds(char), char));
            Self(folded.filter(|(folded, _)| folded.len() > 1).collect())
        })
    }

    /// Returns the letters that the beginning of `text` is for in every case, the single characters that fold to them together, and
    /// the number of characters of `text` that this is for: three or two if there are such characters, else one.
    pub fn first(&self, text: &[char]) -> (Vec<char>, Vec<char>, usize) {
        let of = |folded: &[char]| {
            let same = self.0.iter().filter(|(all, _)| all == folded);
            same.map(|(_, char)| *char).collect::<Vec<_>>()
        };
        for count in [3, 2] {
            let folded = text.iter().take(count).filter_map(|char| simple(*char));
            let folded: Vec<char> = folded.collect();
            let single = of(&folded);
            if folded.len() == count && !single.is_empty() {
                return (folded, single, count);
            }
        }
        let folded = text.first().map(|char| folds(*char)).unwrap_or_default();
        if folded.len() > 1 {
            let single = of(&folded);
            return (folded, single, 1);
        }
        (text.iter().take(1).copied().collect(), Vec::new(), 1)
    }

    /// Returns the node for a class in every case.
    pub fn class(&self, class: Class) -> Result<Node> {
        let Class { members, negated } = class;
        let mut set = match regex_syntax::parse(&members).map(regex_syntax::hir::Hir::into_kind) {
            Ok(HirKind::Class(HirClass::Unicode(set))) => set,
            Ok(HirKind::Literal(bytes)) => one(&bytes.0),
            // The set of nothing.
            Ok(HirKind::Class(HirClass::Bytes(_))) => one(&[]),
            _ => return unsaid(members, "the class is not read"),
        };
        let has = |char: char| {
            let mut ranges = set.ranges().iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&char))
        };
        let several = self.0.iter().filter(|(_, char)| !negated && has(*char));
        let several: Vec<Vec<char>> = several.map(|(folded, _)| folded.clone()).collect();
        if set.try_case_fold_simple().is_err() {
            return unsaid(members, "letters in every case are not known");
        }
        if negated {
            set.negate();
        }
        let mut text = String::from("[");
        for range in set.ranges() {
            coded(&mut text, range.start());
            text.push('-');
            coded(&mut text, range.end());
        }
        text.push(']');
        let first = Node::Set(match set.ranges() {
            [] => NOTHING.to_owned(),
            _ => text,
        });
        if several.is_empty() {
            return Ok(first);
        }
        let letter = |char: char| Node::Char { char, fold: true };
        let texts = several
            .into_iter()
            .map(|folded| folded.into_iter().map(letter).collect());
        let all = std::iter::once(first).chain(texts.map(Node::Concat));
        Ok(Node::Scope(Box::new(Node::Alt(all.collect()))))
    }
}

/// Returns the letter that `char` folds to, if it is one.
fn simple(char: char) -> Option<char> {
    match folds(char).as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn one(bytes: &[u8]) -> ClassUnicode {
    let chars = std::str::from_utf8(bytes).unwrap_or_default().chars();
    ClassUnicode::new(chars.map(|char| regex_syntax::hir::ClassUnicodeRange::new(char, char)))
}
