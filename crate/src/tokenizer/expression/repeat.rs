//! Repetitions: `*`, `{1,3}` and the signs after them.

use super::interval::{Kind, interval};
use super::node::Node;
use super::parse::Parser;
use super::{Result, unsaid};

/// Maximum number of repetitions of a repetition.
const MAX_NESTED: usize = 8;

impl Parser<'_> {
    /// Reads the repetitions after `node`.
    pub fn repeated(&mut self, mut node: Node) -> Result<Node> {
        for _ in 0..=MAX_NESTED {
            self.skip()?;
            let (low, high, kind) = match self.reader.peek() {
                Some('*') => (0, None, Kind::Sign),
                Some('+') => (1, None, Kind::Sign),
                Some('?') => (0, Some(1), Kind::Sign),
                Some('{') => match interval(&mut self.reader)? {
                    Some(interval) => interval,
                    None => return Ok(node),
                },
                _ => return Ok(node),
            };
            if node.is_place() {
                return unsaid(
                    "a repeated place",
                    "what matches no character is not repeated",
                );
            }
            // Oniguruma ends a repetition at the first round that matches nothing, which counts where later rounds could not.
            if low > 1 && node.least() == 0 && node.any(&Node::is_place) {
                return unsaid(
                    "{…}",
                    "what it repeats may match nothing, in some places only; write each repetition",
                );
            }
            if kind == Kind::Sign {
                self.reader.next();
            }
            // The others have no reluctant form: `{3}?` is `(?:{3})?`.
            let greedy = !(matches!(kind, Kind::Sign | Kind::Range) && self.reader.take("?"));
            let possessive = kind == Kind::Sign && greedy && self.reader.take("+");
            let atomic = kind == Kind::Swapped || possessive;
            node = match (low, high, node) {
                (1, Some(1), node) => node,
                // `(?:x{1,3})+` is `x+`, which the engine runs through once.
                (
                    0 | 1,
                    None,
                    Node::Repeat {
                        inner,
                        low: inside @ (0 | 1),
                        high,
                        greedy: true,
                    },
                ) if greedy && high != Some(0) && inner.is_set() => Node::Repeat {
                    inner,
                    low: low.min(inside),
                    high: None,
                    greedy,
                },
                (low, high, node) => Node::Repeat {
                    inner: Box::new(node),
                    low,
                    high,
                    greedy,
                },
            };
            if atomic {
                node = Node::Atomic(Box::new(node));
            }
        }
        unsaid("***…", "there are too many repetitions of a repetition")
    }
}
