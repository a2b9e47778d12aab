//! Character classes: `[…]`, by the rules of Oniguruma's `prs_cc`.

use super::escape::{NOTHING, Reader, posix, pushed};
use super::{Result, unsaid};

/// Maximum number of classes inside each other.
const MAX_DEPTH: usize = 50;

const RANGE_END: &str = "a range ends in a character; write \\- for a hyphen";

/// A class: its members without a leading `^`, as text for the engine, and whether it is for all other characters.
#[derive(Debug)]
pub(super) struct Class {
    pub members: String,
    pub negated: bool,
}

impl Class {
    /// Returns the text of the whole class.
    pub fn text(self) -> String {
        match self.negated {
            true => format!("[^{}", &self.members[1..]),
            false => self.members,
        }
    }
}

/// The last thing that was read in a class.
#[derive(Clone, Copy, Default)]
enum Last {
    /// Nothing, at the beginning of an operand.
    #[default]
    Nothing,
    /// A character, which may begin a range.
    Char(char),
    /// A set, which may not.
    Set,
    /// A character and the hyphen after it.
    Range(char),
    /// A range, or a class.
    Whole,
}

#[derive(Default)]
struct Operand {
    text: String,
    last: Last,
}

impl Operand {
    fn char(&mut self, char: char) -> Result<()> {
        self.last = match self.last {
            Last::Range(from) if from > char => {
                return unsaid(
                    format!("[{from}-{char}]"),
                    "the range ends before it begins",
                );
            }
            Last::Range(from) => {
                pushed(&mut self.text, from);
                self.text.push('-');
                pushed(&mut self.text, char);
                Last::Whole
            }
            _ => {
                self.ended();
                Last::Char(char)
            }
        };
        Ok(())
    }

    fn set(&mut self, text: &str) -> Result<()> {
        if let Last::Range(from) = self.last {
            return unsaid(format!("[{from}-{text}]"), RANGE_END);
        }
        self.ended();
        self.text.push_str(text);
        self.last = Last::Set;
        Ok(())
    }

    /// Writes the character that was read last.
    fn ended(&mut self) {
        if let Last::Char(char) = self.last {
            pushed(&mut self.text, char);
        }
        self.last = Last::Whole;
    }

    fn hyphen(&mut self, next: Option<char>, and: bool) -> Result<()> {
        match self.last {
            Last::Char(_) | Last::Set if next == Some(']') || and => self.char('-'),
            Last::Set => unsaid(
                "a set and - in a class",
                "a range begins with a character; write \\- for a hyphen",
            ),
            Last::Char(from) => {
                self.last = Last::Range(from);
                Ok(())
            }
            _ => self.char('-'),
        }
    }
}

/// Reads a class, after its `[`.
pub(super) fn read(reader: &mut Reader, depth: usize) -> Result<Class> {
    if depth > MAX_DEPTH {
        return unsaid("[[[…", "too many classes inside each other");
    }
    let negated = reader.take("^");
    let mut operands = Vec::new();
    let mut operand = Operand::default();
    if reader.take("]") {
        // A bracket that closes nothing is a member.
        if !closes(reader.rest()) {
            return unsaid("[]", "the class is empty");
        }
        operand.char(']')?;
    }
    loop {
        let Some(char) = reader.next() else {
            return unsaid("[…", "the class does not end");
        };
        match char {
            ']' => break,
            '-' => operand.hyphen(reader.peek(), reader.rest().starts_with("&&"))?,
            '\\' => {
                let Some(escape) = reader.next() else {
                    return unsaid("\\", "a character is expected after it");
                };
                match reader.set(escape, true)? {
                    Some(set) => operand.set(&set)?,
                    None => {
                        let char = reader.character(escape)?;
                        operand.char(char)?;
                    }
                }
            }
            '[' => match bracket(reader.rest()) {
                Some((name, length)) => {
                    let opposite = name.strip_prefix('^');
                    let Some(set) = posix(opposite.unwrap_or(name), opposite.is_some()) else {
                        return unsaid(format!("[:{name}:]"), "no bracket of this name is known");
                    };
                    operand.set(&set)?;
                    reader.pass(length);
                }
                None if matches!(operand.last, Last::Range(_)) => {
                    return unsaid("- and a class", RANGE_END);
                }
                None => {
                    operand.ended();
                    operand.text.push_str(&read(reader, depth + 1)?.text());
                }
            },
            '&' if reader.take("&") => {
                operand.ended();
                operands.push(std::mem::take(&mut operand).text);
            }
            other => operand.char(other)?,
        }
    }
    operand.ended();
    operands.push(operand.text);
    let whole = |text: &String| match text.as_str() {
        "" => NOTHING.to_owned(),
        text => format!("[{text}]"),
    };
    let members = match operands.as_slice() {
        // The empty set is written as the opposite of all, so that a second `^` does not fit before it.
        [only] if !only.is_empty() => whole(only),
        all => format!("[{}]", all.iter().map(whole).collect::<Vec<_>>().join("&&")),
    };
    Ok(Class { members, negated })
}

/// Returns true if a class could be closed later, as Oniguruma looks for it: by any bracket without a backslash.
fn closes(rest: &str) -> bool {
    let mut escaped = false;
    rest.chars().any(|char| {
        let found = char == ']' && !escaped;
        escaped = char == '\\' && !escaped;
        found
    })
}

/// Returns the name of the bracket `[:name:]` that begins with `rest`, without its `[`, and the length of the rest of it in bytes.
fn bracket(rest: &str) -> Option<(&str, usize)> {
    let inner = rest.strip_prefix(':')?;
    let sign = usize::from(inner.starts_with('^'));
    let length = sign + inner[sign..].find(|c: char| !c.is_alphabetic())?;
    let (name, after) = inner.split_at(length);
    (!name.is_empty() && after.starts_with(":]")).then(|| (name, name.len() + 3))
}
