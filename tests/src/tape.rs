//! Reverse-mode differentiation of scalars in f64: a formula written once gives the true value and the true gradient.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Origin of a value: the indices of up to two others, each with the derivative with respect to it.
type Origin = [(usize, f64); 2];

/// Values of a computation in the order in which they were made.
#[derive(Default)]
pub struct Tape(RefCell<Vec<(f64, Origin)>>);

/// A value on a tape.
#[derive(Clone, Copy)]
pub struct Var<'t> {
    tape: &'t Tape,
    at: usize,
}

impl Tape {
    /// Adds a value that depends on nothing.
    pub fn var(&self, value: f64) -> Var<'_> {
        self.push(value, [(0, 0.0); 2])
    }

    fn push(&self, value: f64, origin: Origin) -> Var<'_> {
        let mut nodes = self.0.borrow_mut();
        nodes.push((value, origin));
        Var {
            tape: self,
            at: nodes.len() - 1,
        }
    }

    /// Returns ∂(Σ weight · output)/∂input for each input.
    pub fn gradients(&self, outputs: &[Var<'_>], weights: &[f32], inputs: &[Var<'_>]) -> Vec<f64> {
        let nodes = self.0.borrow();
        let mut gradients = vec![0.0; nodes.len()];
        for (output, &weight) in outputs.iter().zip(weights) {
            gradients[output.at] += f64::from(weight);
        }
        for at in (0..nodes.len()).rev() {
            for (from, slope) in nodes[at].1 {
                gradients[from] += slope * gradients[at];
            }
        }
        inputs.iter().map(|input| gradients[input.at]).collect()
    }
}

impl<'t> Var<'t> {
    /// Returns the number.
    pub fn value(self) -> f64 {
        self.tape.0.borrow()[self.at].0
    }

    fn unary(self, value: f64, slope: f64) -> Self {
        self.tape.push(value, [(self.at, slope), (self.at, 0.0)])
    }

    fn binary(self, other: Self, value: f64, slopes: [f64; 2]) -> Self {
        self.tape
            .push(value, [(self.at, slopes[0]), (other.at, slopes[1])])
    }

    /// Computes factor · x + term.
    pub fn affine(self, factor: f64, term: f64) -> Self {
        self.unary(self.value() * factor + term, factor)
    }

    /// Computes eˣ.
    pub fn exp(self) -> Self {
        let value = self.value().exp();
        self.unary(value, value)
    }

    /// Computes ln x.
    pub fn ln(self) -> Self {
        self.unary(self.value().ln(), 1.0 / self.value())
    }

    /// Computes √x.
    pub fn sqrt(self) -> Self {
        let value = self.value().sqrt();
        self.unary(value, 0.5 / value)
    }

    /// Computes tanh x.
    pub fn tanh(self) -> Self {
        let value = self.value().tanh();
        self.unary(value, 1.0 - value * value)
    }
}

/// Computes Σ a b over at least one pair.
pub fn dot<'t>(pairs: impl IntoIterator<Item = (Var<'t>, Var<'t>)>) -> Var<'t> {
    pairs
        .into_iter()
        .map(|(a, b)| a * b)
        .reduce(|sum, term| sum + term)
        .expect("a sum has a term")
}

impl Add for Var<'_> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.binary(other, self.value() + other.value(), [1.0, 1.0])
    }
}

impl Sub for Var<'_> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.binary(other, self.value() - other.value(), [1.0, -1.0])
    }
}

impl Mul for Var<'_> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.value(), other.value());
        self.binary(other, a * b, [b, a])
    }
}

impl Div for Var<'_> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let (a, b) = (self.value(), other.value());
        self.binary(other, a / b, [1.0 / b, -a / (b * b)])
    }
}

impl Neg for Var<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.affine(-1.0, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_calculus() {
        let tape = Tape::default();
        let (x, y) = (tape.var(0.7), tape.var(1.3));
        // f = tanh(x y) + √y / x − ln y · eˣ
        let f = (x * y).tanh() + y.sqrt() / x - y.ln() * x.exp();
        let found = tape.gradients(&[f], &[1.0], &[x, y]);
        let (x, y) = (0.7_f64, 1.3_f64);
        let slope = 1.0 - (x * y).tanh().powi(2);
        let expected = [
            slope * y - y.sqrt() / (x * x) - y.ln() * x.exp(),
            slope * x + 0.5 / y.sqrt() / x - x.exp() / y,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-14, "{found} {expected}");
        }
    }
}
