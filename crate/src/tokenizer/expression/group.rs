//! Groups: what is in parentheses.

use super::node::Node;
use super::parse::{END, Parser};
use super::{Result, unsaid};

/// Maximum number of groups that could capture.
const MAX_GROUPS: usize = 10_000;

impl<'a> Parser<'a> {
    /// Reads a group, after its parenthesis.
    pub fn group(&mut self, depth: usize) -> Result<Node> {
        if self.reader.peek() == Some('*') {
            return unsaid("(*", "calls are not read; write what they stand for");
        }
        if self.groups.len() >= MAX_GROUPS {
            return unsaid("(", "there are too many groups");
        }
        if !self.reader.take("?") {
            self.groups.push(None);
            return Ok(Node::Group {
                named: false,
                inner: Box::new(self.closed(depth)?),
            });
        }
        for (sign, text) in [("=", "(?="), ("!", "(?!"), ("<=", "(?<="), ("<!", "(?<!")] {
            if self.reader.take(sign) {
                let inner = self.closed(depth)?;
                let of_group = |node: &Node| matches!(node, Node::Group { .. });
                let ahead = |node: &Node| {
                    matches!(
                        node,
                        Node::Look("(?=" | "(?!", _) | Node::Place("\\z" | END)
                    )
                };
                let not_behind = |node: &Node| matches!(node, Node::Look("(?<!", _));
                if (text == "(?<!" && inner.any(&of_group))
                    || (text == "(?<=" && inner.any(&not_behind))
                {
                    return unsaid(text, "a look-behind takes no such group");
                }
                if text.starts_with("(?<") && inner.any(&ahead) {
                    return unsaid(text, "a look-behind does not look ahead");
                }
                return Ok(Node::Look(text, Box::new(inner)));
            }
        }
        if self.reader.take(":") {
            return self.closed(depth);
        }
        if self.reader.take(">") {
            return Ok(Node::Atomic(Box::new(self.closed(depth)?)));
        }
        let end = match self.reader.peek() {
            Some('<') => '>',
            Some('\'') => '\'',
            _ => return self.scope(depth),
        };
        self.reader.next();
        let name = self.name(end)?;
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return unsaid(format!("(?<{name}>"), "a group has no such name");
        }
        self.groups.push(Some(name));
        Ok(Node::Group {
            named: true,
            inner: Box::new(self.closed(depth)?),
        })
    }

    /// Reads the inside of a group, and its end.
    fn closed(&mut self, depth: usize) -> Result<Node> {
        let inner = self.alternatives(depth)?;
        match self.reader.take(")") {
            true => Ok(inner),
            false => unsaid("(", "it is not closed; write \\("),
        }
    }

    /// Reads options, and what they are for.
    fn scope(&mut self, depth: usize) -> Result<Node> {
        let outside = self.options;
        let mut options = outside;
        let mut on = true;
        let mut first = true;
        loop {
            match self.reader.next() {
                Some('i') => options.fold = on,
                Some('m') => options.newline = on,
                Some('x') => options.extended = on,
                Some('-') => on = false,
                Some(end @ (':' | ')')) if !first => {
                    self.options = options;
                    let inner = match end {
                        ':' => self.closed(depth),
                        // For the rest of the group, alternatives included.
                        _ => self.alternatives(depth + 1),
                    };
                    self.options = outside;
                    return Ok(Node::Scope(Box::new(inner?)));
                }
                other => {
                    let found = format!("(?{}", other.map(String::from).unwrap_or_default());
                    return unsaid(
                        found,
                        "of the extended groups only (?:…), (?=…), (?!…), (?<=…), (?<!…), (?>…), (?<name>…), (?imx-imx) are read",
                    );
                }
            }
            first = false;
        }
    }

    pub fn name(&mut self, end: char) -> Result<&'a str> {
        let is_name =
            |(name, _): &(&str, &str)| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let Some((name, _)) = self.reader.rest().split_once(end).filter(is_name) else {
            return unsaid(
                "a name",
                "the name of a group consists of letters, digits and _",
            );
        };
        self.reader.pass(name.len() + end.len_utf8());
        Ok(name)
    }
}
