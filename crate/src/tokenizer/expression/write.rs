//! Writes the tree of an expression for our engine.

use super::Result;
use super::escape::pushed;
use super::fold::Multiple;
use super::node::Node;

/// Facts about the whole expression that decide how a node is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    /// True if a group has a name: then those without one do not capture.
    pub named: bool,
    /// True if there is a reference: else no group needs to capture.
    pub references: bool,
}

/// Facts about the place of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// True if a character must follow.
    followed: bool,
    /// True in a look-behind, where Oniguruma folds letters to single ones alone.
    behind: bool,
}

impl Writer {
    pub fn text(self, root: &Node) -> Result<String> {
        let mut out = String::new();
        self.node(&mut out, root, Place::default());
        Ok(out)
    }

    fn node(self, out: &mut String, node: &Node, place: Place) {
        match node {
            Node::Empty => {}
            Node::Char { char, fold: false } => pushed(out, *char),
            Node::Char { char, fold: true } => self.letters(out, &[*char], place),
            Node::Set(text) => out.push_str(text),
            Node::Place(text) => out.push_str(text),
            // The engine's own `^` also matches after the last line feed.
            Node::Line => out.push_str(if place.followed {
                "(?m:^)"
            } else {
                "(?:\\A|(?m:^)(?!\\z))"
            }),
            Node::Group { named, inner } => {
                let captures = self.references && (*named || !self.named);
                self.enclosed(out, if captures { "(" } else { "(?:" }, inner, place);
            }
            Node::Scope(inner) => self.enclosed(out, "(?:", inner, place),
            Node::Atomic(inner) => self.enclosed(out, "(?>", inner, place),
            Node::Look(open, inner) => {
                let behind = open.starts_with("(?<");
                let place = Place {
                    followed: behind && place.followed,
                    behind: behind || place.behind,
                };
                // A look-ahead has no way back into it, which a reference could tell.
                if self.references && *open == "(?=" {
                    out.push_str(open);
                    self.enclosed(out, "(?>", inner, place);
                    out.push(')');
                } else {
                    self.enclosed(out, open, inner, place);
                }
            }
            Node::Reference(number) => out.push_str(&format!("(?:\\{number})")),
            Node::Repeat {
                inner,
                low,
                high,
                greedy,
            } => {
                let mut text = String::new();
                let single = matches!(
                    **inner,
                    Node::Char { .. }
                        | Node::Set(_)
                        | Node::Group { .. }
                        | Node::Scope(_)
                        | Node::Atomic(_)
                );
                match single {
                    true => self.node(&mut text, inner, place),
                    false => self.enclosed(&mut text, "(?:", inner, place),
                }
                if matches!(text.as_str(), "(?:)" | "(?:(?:))") {
                    return;
                }
                if inner.least() == 0 && *high != Some(1) && !inner.is_run() {
                    // Text that may match nothing is repeated by the engine that goes back, as in Oniguruma; the other takes another way.
                    text = format!("(?:(?=){text})");
                }
                out.push_str(&text);
                match (low, high) {
                    (0, Some(1)) => out.push('?'),
                    (0, None) => out.push('*'),
                    (1, None) => out.push('+'),
                    (low, None) => out.push_str(&format!("{{{low},}}")),
                    (low, Some(high)) if low == high => out.push_str(&format!("{{{low}}}")),
                    (low, Some(high)) => out.push_str(&format!("{{{low},{high}}}")),
                }
                if !greedy {
                    out.push('?');
                }
            }
            Node::Concat(all) => self.concat(out, all, place),
            Node::Alt(all) => {
                for (at, inner) in all.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "|" });
                    self.part(out, inner, place);
                }
            }
        }
    }

    /// Writes a node among others. Alternatives stay together: the engine tries them at once if it can.
    fn part(self, out: &mut String, node: &Node, place: Place) {
        match node {
            Node::Alt(_) => self.enclosed(out, "(?:", node, place),
            _ => self.node(out, node, place),
        }
    }

    fn enclosed(self, out: &mut String, open: &str, inner: &Node, place: Place) {
        out.push_str(open);
        self.node(out, inner, place);
        out.push(')');
    }

    fn concat(self, out: &mut String, all: &[Node], place: Place) {
        // Up to the last node that matches a character, one must follow.
        let last = all.iter().rposition(|node| node.least() > 0).unwrap_or(0);
        let mut at = 0;
        while let Some(node) = all.get(at) {
            let run: Vec<char> = all[at..].iter().map_while(Node::folded).collect();
            at += run.len().max(1);
            let place = Place {
                followed: place.followed || at <= last,
                ..place
            };
            match run.as_slice() {
                [] => self.part(out, node, place),
                run => self.letters(out, run, place),
            }
        }
    }

    /// Writes a text in every case.
    fn letters(self, out: &mut String, mut text: &[char], place: Place) {
        let table = (!place.behind).then(Multiple::table);
        while !text.is_empty() {
            let (letters, others, count) =
                table.map_or((vec![text[0]], Vec::new(), 1), |table| table.first(text));
            out.push_str(if others.is_empty() { "" } else { "(?:" });
            letters.into_iter().for_each(|char| letter(out, char));
            for other in &others {
                out.push('|');
                pushed(out, *other);
            }
            out.push_str(if others.is_empty() { "" } else { ")" });
            text = &text[count..];
        }
    }
}

/// Writes a character in every case.
fn letter(out: &mut String, char: char) {
    let cased = !char.is_ascii() || char.is_ascii_alphabetic();
    out.push_str(if cased { "(?i:" } else { "" });
    pushed(out, char);
    out.push_str(if cased { ")" } else { "" });
}
