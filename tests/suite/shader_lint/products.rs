//! Cost of products: arrays in memory, reads from workgroup memory, instructions, barriers.

use naga::{
    AddressSpace, BinaryOperator, Block, Expression, Handle, MathFunction, ScalarKind, Statement,
    TypeInner,
};

use super::reader::{Parsed, Reader, is_loop, loops, walk};

/// Minimum number of multiply-adds per read from workgroup memory, with tiles of 64 rows and 64 columns.
pub const FOR_A_READ: usize = 16;

/// Minimum number of multiply-adds per read from workgroup memory, with tiles of 32 rows and 32 columns.
pub const FOR_A_READ_OF_32: usize = 8;

/// Maximum number of float instructions per multiply-add.
const FOR_A_PRODUCT: f64 = 1.05;

/// Returns true if some function indexes an array of its own by an expression that is not a constant.
pub fn indexes_an_array(parsed: &Parsed) -> bool {
    parsed.functions().iter().any(|reader| {
        reader.function.expressions.iter().any(|(_, expression)| {
            let Expression::Access { base, .. } = expression else {
                return false;
            };
            match *reader.inner(*base) {
                TypeInner::Pointer {
                    base,
                    space: AddressSpace::Function,
                } => {
                    matches!(
                        reader.parsed.module.types[base].inner,
                        TypeInner::Array { .. }
                    )
                }
                TypeInner::Array { .. } => true,
                _ => false,
            }
        })
    })
}

/// Operations in one round of a loop.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Round {
    pub multiply_adds: usize,
    /// Instructions on floats, where the sum with a product is one.
    pub floats: usize,
    /// Reads from workgroup memory, of a vector or less.
    pub reads: usize,
}

impl Round {
    fn is_dear(self, for_a_read: usize) -> bool {
        self.multiply_adds < for_a_read * self.reads
            || self.floats as f64 > FOR_A_PRODUCT * self.multiply_adds as f64
    }

    fn add(&mut self, other: Self) {
        self.multiply_adds += other.multiply_adds;
        self.floats += other.floats;
        self.reads += other.reads;
    }
}

/// Returns the number of floats in an expression.
fn floats(reader: &Reader<'_>, handle: Handle<Expression>) -> usize {
    match *reader.inner(handle) {
        TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Float => 1,
        TypeInner::Vector { size, scalar } if scalar.kind == ScalarKind::Float => size as usize,
        _ => 0,
    }
}

fn of_expression(reader: &Reader<'_>, handle: Handle<Expression>) -> Round {
    let width = floats(reader, handle);
    let is_product = |of: Handle<Expression>| {
        matches!(
            reader.expression(of),
            Expression::Binary {
                op: BinaryOperator::Multiply,
                ..
            }
        ) && reader.uses(of) == 1
    };
    let product = |width| Round {
        multiply_adds: width,
        floats: width,
        reads: 0,
    };
    match *reader.expression(handle) {
        Expression::Binary {
            op: BinaryOperator::Multiply,
            ..
        }
        | Expression::Math {
            fun: MathFunction::Fma,
            ..
        } => product(width),
        Expression::Binary {
            op: BinaryOperator::Add | BinaryOperator::Subtract,
            left,
            right,
        } => {
            let fuses = is_product(left) || is_product(right);
            Round {
                floats: if fuses { 0 } else { width },
                ..Round::default()
            }
        }
        Expression::Math {
            fun: MathFunction::Dot,
            arg,
            ..
        } => product(floats(reader, arg)),
        Expression::Load { pointer } => {
            let shared = reader.inner(pointer).pointer_space() == Some(AddressSpace::WorkGroup);
            Round {
                reads: usize::from(shared),
                ..Round::default()
            }
        }
        _ => Round::default(),
    }
}

/// Counts one round of a block without loops; `None` if it has one.
fn of_block(reader: &Reader<'_>, block: &Block) -> Option<Round> {
    let (mut round, mut inner) = (Round::default(), false);
    walk(block, &|_| true, &mut |statement| match statement {
        Statement::Emit(range) => range
            .clone()
            .for_each(|handle| round.add(of_expression(reader, handle))),
        Statement::Call { function, .. } => {
            let called = reader.called(*function);
            match of_block(&called, &called.function.body) {
                Some(other) => round.add(other),
                None => inner = true,
            }
        }
        statement => inner |= is_loop(statement),
    });
    (!inner).then_some(round)
}

/// Returns the innermost loops that add products of values read from workgroup memory, and exceed the limits.
pub fn dear(parsed: &Parsed, for_a_read: usize) -> Vec<Round> {
    let rounds = |reader: &Reader<'_>| -> Vec<Round> {
        let bodies = loops(reader.function)
            .into_iter()
            .filter_map(|statement| match statement {
                Statement::Loop { body, .. } => Some(body),
                _ => None,
            });
        bodies.filter_map(|body| of_block(reader, body)).collect()
    };
    let rounds = parsed
        .functions()
        .iter()
        .flat_map(rounds)
        .collect::<Vec<_>>();
    rounds
        .into_iter()
        .filter(|round| round.reads > 0 && round.multiply_adds > 0 && round.is_dear(for_a_read))
        .collect()
}

/// Returns the maximum number of barriers in a round of one loop, without those of the loops inside.
pub fn barriers(parsed: &Parsed) -> usize {
    let of = |body: &Block| {
        let mut count = 0;
        walk(body, &|statement| !is_loop(statement), &mut |statement| {
            let barrier = matches!(
                statement,
                Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. }
            );
            count += usize::from(barrier);
        });
        count
    };
    let functions = parsed.functions();
    let found = functions
        .iter()
        .flat_map(|reader| loops(reader.function))
        .map(|statement| match statement {
            Statement::Loop { body, .. } => of(body),
            _ => 0,
        });
    found.max().unwrap_or_default()
}
