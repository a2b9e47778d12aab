//! Reads an expression in the syntax `ONIG_SYNTAX_ONIGURUMA`.

use super::class::{self, Class};
use super::escape::{Reader, word};
use super::fold::Multiple;
use super::interval::interval;
use super::node::Node;
use super::{Result, unsaid};

/// Maximum number of groups inside each other; the engine allows fewer than 64.
const MAX_DEPTH: usize = 60;
/// Maximum number of classes in every case, which are written out.
const MAX_FOLDED: usize = 50;

/// `\b` and `\B`, by Oniguruma's word characters.
const BOUNDARY: &str = concat!(
    "(?:(?<=",
    word!(),
    ")(?!",
    word!(),
    ")|(?<!",
    word!(),
    ")(?=",
    word!(),
    "))"
);
const NO_BOUNDARY: &str = concat!(
    "(?:(?<=",
    word!(),
    ")(?=",
    word!(),
    ")|(?<!",
    word!(),
    ")(?!",
    word!(),
    "))"
);
/// `\Z`: the end, or before a line feed at the end.
pub(super) const END: &str = "(?=\\n?\\z)";
/// The general newline, of two characters if possible.
const NEWLINE: &str = "(?:\\r\\n|[\\n-\\r\u{85}\u{2028}\u{2029}])";

/// The options that are in force.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub fold: bool,
    pub newline: bool,
    pub extended: bool,
}

#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub reader: Reader<'a>,
    pub options: Options,
    /// Name of each group, in the order of their beginnings.
    pub groups: Vec<Option<&'a str>>,
    /// Number of classes in every case.
    folded: usize,
    /// Numbers of groups that are referred to by number.
    references: Vec<usize>,
}

/// The tree of an expression, whether any group has a name, and whether there are references to groups.
pub(super) type Tree = (Node, bool, bool);

impl<'a> Parser<'a> {
    pub fn parse(expression: &'a str) -> Result<Tree> {
        let mut parser = Self {
            reader: Reader::new(expression),
            options: Options::default(),
            groups: Vec::new(),
            folded: 0,
            references: Vec::new(),
        };
        let root = parser.alternatives(0)?;
        if parser.reader.peek().is_some() {
            return unsaid(")", "it closes nothing; write \\)");
        }
        let named = parser.groups.iter().any(Option::is_some);
        if named && !parser.references.is_empty() {
            return unsaid(
                "a reference by number",
                "groups with names are referred to by name",
            );
        }
        let start = |node: &Node| matches!(node, Node::Place("\\G"));
        let first = match &root {
            Node::Concat(all) => {
                let mut rest = all.iter().skip(1);
                all.first().is_some_and(start) && !rest.any(|node| node.any(&start))
            }
            _ => false,
        };
        if root.any(&start) && !(first && root.least() > 0) {
            let reason = "it begins an expression that matches a character, or is not read";
            return unsaid("\\G", reason);
        }
        let references = root.any(&|node| matches!(node, Node::Reference(_)));
        Ok((root, named, references))
    }

    /// Reads up to the parenthesis that closes, or the end.
    pub fn alternatives(&mut self, depth: usize) -> Result<Node> {
        if depth > MAX_DEPTH {
            return unsaid("(((…", "too many groups inside each other");
        }
        let options = self.options;
        let mut all = vec![self.branch(depth)?];
        while self.reader.take("|") {
            all.push(self.branch(depth)?);
        }
        self.options = options;
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Node::Alt(all),
        })
    }

    fn branch(&mut self, depth: usize) -> Result<Node> {
        let mut all: Vec<Node> = Vec::new();
        loop {
            self.skip()?;
            if matches!(self.reader.peek(), None | Some('|' | ')')) {
                break;
            }
            let atom = self.atom(depth)?;
            let node = self.repeated(atom)?;
            match node {
                Node::Empty => {}
                // Oniguruma joins the texts of lists, but for the first.
                Node::Concat(inner) if !all.is_empty() => all.extend(inner),
                node => all.push(node),
            }
        }
        Ok(match all.len() {
            0 => Node::Empty,
            1 => all.remove(0),
            _ => Node::Concat(all),
        })
    }

    /// Passes over comments and, with `x`, blanks.
    pub fn skip(&mut self) -> Result<()> {
        loop {
            match self.reader.peek() {
                Some('(') if self.reader.take("(?#") => loop {
                    match self.reader.next() {
                        Some(')') => break,
                        Some('\\') => drop(self.reader.next()),
                        Some(_) => {}
                        None => return unsaid("(?#", "the comment does not end"),
                    }
                },
                Some('#') if self.options.extended => {
                    while !matches!(self.reader.next(), None | Some('\n')) {}
                }
                Some(' ' | '\t' | '\n' | '\r' | '\u{C}') if self.options.extended => {
                    self.reader.next();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads what is repeated, or a character, a set, a place.
    fn atom(&mut self, depth: usize) -> Result<Node> {
        let before = self.reader.clone();
        let Some(char) = self.reader.next() else {
            return Ok(Node::Empty);
        };
        Ok(match char {
            '.' => self.dot(self.options.newline),
            '^' => Node::Line,
            '$' => Node::Place("(?m:$)"),
            '(' => self.group(depth + 1)?,
            '[' => {
                let class = class::read(&mut self.reader, 0)?;
                match self.options.fold {
                    true => self.folded(class)?,
                    false => Node::Set(class.text()),
                }
            }
            '\\' => self.escaped()?,
            '*' | '+' | '?' => return unsaid(char, "nothing is before it that could be repeated"),
            '{' => {
                let mut after = before;
                if interval(&mut after)?.is_some() {
                    return unsaid("{…}", "nothing is before it that could be repeated");
                }
                self.char('{')
            }
            other => self.char(other),
        })
    }

    fn char(&self, char: char) -> Node {
        Node::Char {
            char,
            fold: self.options.fold,
        }
    }

    fn folded(&mut self, class: Class) -> Result<Node> {
        self.folded += 1;
        if self.folded > MAX_FOLDED {
            return unsaid("(?i)", "there are too many classes in every case");
        }
        Multiple::table().class(class)
    }

    fn coded(&mut self, escape: char) -> Result<Node> {
        let char = self.reader.character(escape)?;
        Ok(self.char(char))
    }

    fn dot(&self, newline: bool) -> Node {
        Node::Set(if newline { "(?s:.)" } else { "." }.to_owned())
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Result<Node> {
        let Some(escape) = self.reader.next() else {
            return unsaid("\\", "a character is expected after it");
        };
        if let Some(set) = self.reader.set(escape, false)? {
            return Ok(Node::Set(set));
        }
        Ok(match escape {
            'b' => Node::Place(BOUNDARY),
            'B' => Node::Place(NO_BOUNDARY),
            'A' => Node::Place("\\A"),
            'z' => Node::Place("\\z"),
            'Z' => Node::Place(END),
            'G' => Node::Place("\\G"),
            'N' => self.dot(false),
            'O' => self.dot(true),
            'R' => Node::Atomic(Box::new(Node::Set(NEWLINE.to_owned()))),
            'K' | 'X' | 'y' | 'Y' => {
                let reason = "it is not read; write its meaning with classes and look-around";
                return unsaid(format!("\\{escape}"), reason);
            }
            'g' if matches!(self.reader.peek(), Some('<' | '\'')) => {
                return unsaid("\\g", "write the group again");
            }
            'k' if matches!(self.reader.peek(), Some('<' | '\'')) => {
                let end = match self.reader.next() {
                    Some('<') => '>',
                    _ => '\'',
                };
                let name = self.name(end)?;
                match name.parse() {
                    Ok(number) => self.number(number)?,
                    Err(_) => self.named(name)?,
                }
            }
            '1'..='9' => {
                let mut after = self.reader.clone();
                let more = after.digits(10, 9);
                let number = escape.to_digit(10).unwrap_or(0) as usize;
                let digits = self.reader.rest().len() - after.rest().len();
                let tens = number.checked_mul(10usize.pow(digits as u32));
                let number = tens.and_then(|tens| tens.checked_add(more.unwrap_or(0) as usize));
                match number {
                    Some(number) if number <= 9 || number <= self.groups.len() => {
                        self.reader = after;
                        self.number(number)?
                    }
                    _ => self.coded(escape)?,
                }
            }
            _ => self.coded(escape)?,
        })
    }

    fn number(&mut self, number: usize) -> Result<Node> {
        self.references.push(number);
        self.reference(number)
    }

    fn named(&self, name: &str) -> Result<Node> {
        let mut places = (1..).zip(self.groups.iter().flatten());
        let mut next = || places.find(|(_, group)| **group == name);
        match (next(), next()) {
            (Some((one, _)), None) => self.reference(one),
            _ => unsaid(
                format!("\\k<{name}>"),
                "the name belongs to one group before it",
            ),
        }
    }

    fn reference(&self, number: usize) -> Result<Node> {
        if self.options.fold {
            let reason = "it is not read; write the reference without (?i)";
            return unsaid("a reference with (?i)", reason);
        }
        if number == 0 || number > self.groups.len() {
            return unsaid(format!("\\{number}"), "a reference is to a group before it");
        }
        Ok(Node::Reference(number))
    }
}
