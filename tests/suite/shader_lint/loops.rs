//! Detects whether a loop ends for all contents of its buffers.

use naga::{
    BinaryOperator, Block, Expression, Handle, Literal, LocalVariable, MathFunction, Statement,
};

use super::reader::{Parsed, Reader, loops, walk};

/// Reason why a loop ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// A counter grows by a constant towards a bound that does not change, or is halved until it is 0.
    Counts,
    /// A counter as above, with a step that is computed from parameters.
    Parameter,
    /// The text does not show it.
    Unknown,
}

/// Returns the reason for every loop.
pub fn endings(parsed: &Parsed) -> Vec<Ending> {
    let of = |reader: &Reader<'_>| {
        loops(reader.function)
            .into_iter()
            .map(|statement| ending(reader, statement))
            .collect::<Vec<_>>()
    };
    parsed.functions().iter().flat_map(of).collect()
}

/// Returns the statements of a block that run in every round, unless an earlier one leaves it.
fn straight(block: &Block) -> Vec<&Statement> {
    fn of(statement: &Statement) -> Vec<&Statement> {
        if let Statement::Block(inner) = statement {
            straight(inner)
        } else {
            vec![statement]
        }
    }
    block.iter().flat_map(of).collect()
}

/// One loop, with the function that contains it.
struct Walked<'a> {
    reader: &'a Reader<'a>,
    body: &'a Block,
    continuing: &'a Block,
}

fn ending(reader: &Reader<'_>, statement: &Statement) -> Ending {
    let Statement::Loop {
        body,
        continuing,
        break_if: None,
    } = statement
    else {
        return Ending::Unknown;
    };
    let walked = Walked {
        reader,
        body,
        continuing,
    };
    walked
        .conditions()
        .into_iter()
        .map(|condition| walked.by(condition))
        .min()
        .unwrap_or(Ending::Unknown)
}

impl Walked<'_> {
    /// Returns the conditions each of which ends the loop when it is false: those of the first branch that breaks.
    fn conditions(&self) -> Vec<Handle<Expression>> {
        let leaves = |block: &Block| {
            block
                .iter()
                .any(|statement| matches!(statement, Statement::Break))
        };
        let guard = self.body.iter().find_map(|statement| match statement {
            Statement::If {
                condition,
                accept,
                reject,
            } if accept.is_empty() && leaves(reject) => Some(*condition),
            _ => None,
        });
        guard.map_or_else(Vec::new, |condition| self.conjuncts(condition))
    }

    /// Splits `a && b`, which is a variable that equals b if a holds, and is false otherwise.
    fn conjuncts(&self, condition: Handle<Expression>) -> Vec<Handle<Expression>> {
        let Some(variable) = self.local(condition) else {
            return vec![condition];
        };
        let stored = |block: &Block| {
            block.iter().find_map(|statement| match statement {
                Statement::Store { pointer, value }
                    if self.variable(*pointer) == Some(variable) =>
                {
                    Some(*value)
                }
                _ => None,
            })
        };
        let both = self.body.iter().find_map(|statement| match statement {
            Statement::If {
                condition,
                accept,
                reject,
            } => Some((*condition, stored(accept)?, stored(reject)?)),
            _ => None,
        });
        let is_false = |value| {
            matches!(
                self.reader.expression(value),
                Expression::Literal(Literal::Bool(false))
            )
        };
        match both {
            Some((first, second, other)) if is_false(other) => {
                [self.conjuncts(first), self.conjuncts(second)].concat()
            }
            _ => vec![condition],
        }
    }

    fn variable(&self, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match *self.reader.expression(pointer) {
            Expression::LocalVariable(variable) => Some(variable),
            _ => None,
        }
    }

    /// Returns the variable that an expression reads.
    fn local(&self, value: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match *self.reader.expression(value) {
            Expression::Load { pointer } => self.variable(pointer),
            _ => None,
        }
    }

    /// Returns the value that each round assigns to a variable, if it does so exactly once and always.
    fn update(&self, variable: Handle<LocalVariable>) -> Option<Handle<Expression>> {
        let mut places = 0;
        for block in [self.body, self.continuing] {
            walk(block, &|_| true, &mut |statement| {
                let is_place = |pointer: &Handle<Expression>| self.root(*pointer) == Some(variable);
                places += match statement {
                    Statement::Store { pointer, .. } => usize::from(is_place(pointer)),
                    Statement::Call { arguments, .. } => arguments
                        .iter()
                        .filter(|argument| is_place(argument))
                        .count(),
                    _ => 0,
                };
            });
        }
        let always = straight(self.continuing)
            .into_iter()
            .chain(straight(self.body))
            .find_map(|statement| match statement {
                Statement::Store { pointer, value }
                    if self.variable(*pointer) == Some(variable) =>
                {
                    Some(*value)
                }
                _ => None,
            });
        always.filter(|_| places == 1)
    }

    /// Returns the variable that a pointer points into.
    fn root(&self, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match *self.reader.expression(pointer) {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                self.root(base)
            }
            _ => self.variable(pointer),
        }
    }

    /// Returns the reason why the loop ends by this condition.
    fn by(&self, condition: Handle<Expression>) -> Ending {
        let Expression::Binary { op, left, right } = *self.reader.expression(condition) else {
            return Ending::Unknown;
        };
        match op {
            BinaryOperator::Less | BinaryOperator::LessEqual => self.grows(left, right),
            BinaryOperator::Greater | BinaryOperator::NotEqual
                if self.reader.number(right) == Some(0) =>
            {
                self.shrinks(left)
            }
            // `(x & 1) == 1` is false when x is 0.
            BinaryOperator::Equal if self.reader.number(right).is_some_and(|bits| bits != 0) => {
                match *self.reader.expression(left) {
                    Expression::Binary {
                        op: BinaryOperator::And,
                        left,
                        ..
                    } => self.shrinks(left),
                    _ => Ending::Unknown,
                }
            }
            _ => Ending::Unknown,
        }
    }

    fn grows(&self, counter: Handle<Expression>, bound: Handle<Expression>) -> Ending {
        let value = self
            .local(counter)
            .filter(|_| self.stays(bound))
            .and_then(|counter| Some((counter, self.update(counter)?)));
        let Some((counter, value)) = value else {
            return Ending::Unknown;
        };
        match *self.reader.expression(value) {
            Expression::Binary {
                op: BinaryOperator::Add,
                left,
                right,
            } if self.local(left) == Some(counter) => match self.reader.number(right) {
                Some(step) if step > 0 => Ending::Counts,
                None if self.is_positive(right) => Ending::Counts,
                None if self.stays(right) => Ending::Parameter,
                _ => Ending::Unknown,
            },
            _ => Ending::Unknown,
        }
    }

    /// Returns true if the text shows that an expression is at least 1: it is the larger of something and 1.
    fn is_positive(&self, value: Handle<Expression>) -> bool {
        match *self.reader.expression(value) {
            Expression::Math {
                fun: MathFunction::Max,
                arg,
                arg1: Some(other),
                ..
            } => self.is_positive(arg) || self.is_positive(other),
            _ => self.reader.number(value).is_some_and(|number| number > 0),
        }
    }

    fn shrinks(&self, counter: Handle<Expression>) -> Ending {
        let value = self
            .local(counter)
            .and_then(|counter| Some((counter, self.update(counter)?)));
        let Some((counter, value)) = value else {
            return Ending::Unknown;
        };
        let less = |op, by: Option<i64>| match op {
            BinaryOperator::Divide => by > Some(1),
            BinaryOperator::ShiftRight => by > Some(0),
            _ => false,
        };
        match *self.reader.expression(value) {
            Expression::Binary { op, left, right }
                if self.local(left) == Some(counter) && less(op, self.reader.number(right)) =>
            {
                Ending::Counts
            }
            _ => Ending::Unknown,
        }
    }

    /// Returns true if an expression has the same value in every round: made of parameters, constants, and variables that no round changes.
    fn stays(&self, value: Handle<Expression>) -> bool {
        match self.reader.expression(value) {
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::FunctionArgument(_)
            | Expression::ZeroValue(_) => true,
            Expression::Binary { left, right, .. } => self.stays(*left) && self.stays(*right),
            Expression::Math {
                arg, arg1, arg2, ..
            } => [Some(*arg), *arg1, *arg2]
                .into_iter()
                .flatten()
                .all(|arg| self.stays(arg)),
            Expression::As { expr, .. } | Expression::Unary { expr, .. } => self.stays(*expr),
            Expression::Select {
                condition,
                accept,
                reject,
            } => [condition, accept, reject]
                .into_iter()
                .all(|part| self.stays(*part)),
            Expression::AccessIndex { base, .. } => self.stays(*base),
            Expression::Load { pointer } => {
                self.before(value) || self.is_parameter(*pointer) || self.unchanged(*pointer)
            }
            _ => self.before(value),
        }
    }

    /// Returns true if an expression was computed before the loop.
    fn before(&self, value: Handle<Expression>) -> bool {
        let mut inside = false;
        for block in [self.body, self.continuing] {
            walk(block, &|_| true, &mut |statement| match statement {
                Statement::Emit(range) => inside |= range.clone().any(|emitted| emitted == value),
                Statement::Call { result, .. } => inside |= *result == Some(value),
                Statement::WorkGroupUniformLoad { result, .. } => inside |= *result == value,
                _ => {}
            });
        }
        !inside
    }

    fn is_parameter(&self, pointer: Handle<Expression>) -> bool {
        match *self.reader.expression(pointer) {
            Expression::AccessIndex { base, .. } => self.is_parameter(base),
            Expression::GlobalVariable(variable) => {
                self.reader.parsed.module.global_variables[variable]
                    .name
                    .as_deref()
                    == Some("params")
            }
            _ => false,
        }
    }

    fn unchanged(&self, pointer: Handle<Expression>) -> bool {
        let Some(variable) = self.root(pointer) else {
            return false;
        };
        let mut changed = false;
        for block in [self.body, self.continuing] {
            walk(block, &|_| true, &mut |statement| match statement {
                Statement::Store { pointer, .. } => {
                    changed |= self.root(*pointer) == Some(variable)
                }
                Statement::Call { arguments, .. } => {
                    changed |= arguments
                        .iter()
                        .any(|argument| self.root(*argument) == Some(variable))
                }
                _ => {}
            });
        }
        !changed
    }
}
