//! Counts the instructions of a kernel's machine code in the blocks that compute its products.

use serde::{Deserialize, Serialize};

/// Minimum number of fused multiply-adds in a basic block that computes the inner sum of a product.
const FUSED: usize = 16;

/// Numbers of instructions in basic blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of all instructions.
    pub instructions: usize,
    /// Number of fused multiply-adds in f32.
    pub fused: usize,
    /// Number of multiplications in f32.
    pub multiplies: usize,
    /// Number of additions and subtractions in f32.
    pub adds: usize,
}

impl Counts {
    fn count(&mut self, instruction: &str) {
        self.instructions += 1;
        let is = |names: &[&str]| names.iter().any(|name| instruction.starts_with(name));
        self.fused += usize::from(is(&[
            "v_fma_f32",
            "v_fmac_f32",
            "v_fmaak_f32",
            "v_fmamk_f32",
            "v_mad_f32",
            "v_mac_f32",
        ]));
        self.multiplies += usize::from(is(&["v_mul_f32"]));
        self.adds += usize::from(is(&["v_add_f32", "v_sub_f32", "v_subrev_f32"]));
    }

    fn and(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            fused: self.fused + other.fused,
            multiplies: self.multiplies + other.multiplies,
            adds: self.adds + other.adds,
        }
    }

    /// Returns the instructions per product that is added to a sum. A multiplication alone begins a sum, or another instruction adds it.
    pub fn per_multiply_add(&self) -> f64 {
        self.instructions as f64 / (self.fused + self.multiplies) as f64
    }
}

/// Counts the instructions of each sum of products in this text, in its order: those of all blocks that compute the sum, which an unrolled
/// loop repeats. A block begins with a label (`BB`, its number, a colon); an instruction is an indented line.
pub fn products(text: &str) -> Vec<Counts> {
    let mut blocks = vec![Counts::default()];
    for line in text.lines() {
        if line.starts_with("BB") && line.trim_end().ends_with(':') {
            blocks.push(Counts::default());
        } else if let (true, Some(block)) = (
            line.starts_with(char::is_whitespace) && !line.trim().is_empty(),
            blocks.last_mut(),
        ) {
            block.count(line.trim());
        }
    }
    let alike = |one: &Counts, other: &Counts| {
        (one.fused, one.multiplies, one.adds) == (other.fused, other.multiplies, other.adds)
    };
    let blocks: Vec<Counts> = blocks
        .into_iter()
        .filter(|block| block.fused >= FUSED)
        .collect();
    blocks
        .chunk_by(alike)
        .map(|repeated| {
            repeated
                .iter()
                .fold(Counts::default(), |sum, block| sum.and(*block))
        })
        .collect()
}
