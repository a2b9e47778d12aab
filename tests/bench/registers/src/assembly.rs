//! What the machine code of a kernel does in the blocks that hold its products.

use serde::{Deserialize, Serialize};

/// A basic block with fewer fused multiply-adds than this holds no product's inner sum.
const FUSED: usize = 16;

/// Instructions of basic blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub instructions: usize,
    /// Fused multiply-adds in f32.
    pub fused: usize,
    /// Multiplications in f32.
    pub multiplies: usize,
    /// Additions and subtractions in f32.
    pub adds: usize,
}

impl Counts {
    fn count(&mut self, instruction: &str) {
        self.instructions += 1;
        let is = |names: &[&str]| names.iter().any(|name| instruction.starts_with(name));
        self.fused += usize::from(is(&["v_fma_f32", "v_fmac_f32", "v_fmaak_f32", "v_fmamk_f32", "v_mad_f32", "v_mac_f32"]));
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

    /// Instructions for each product that is added to a sum: a multiplication alone begins a sum, or is added by another instruction.
    pub fn per_multiply_add(&self) -> f64 {
        self.instructions as f64 / (self.fused + self.multiplies) as f64
    }
}

/// The sums of products in this text, in its order: each the blocks that hold it, which an unrolled loop repeats. A block begins with a label,
/// `BB` and its number and a colon; an instruction is an indented line.
pub fn products(text: &str) -> Vec<Counts> {
    let mut blocks = vec![Counts::default()];
    for line in text.lines() {
        if line.starts_with("BB") && line.trim_end().ends_with(':') {
            blocks.push(Counts::default());
        } else if let (true, Some(block)) = (line.starts_with(char::is_whitespace) && !line.trim().is_empty(), blocks.last_mut()) {
            block.count(line.trim());
        }
    }
    let alike = |one: &Counts, other: &Counts| (one.fused, one.multiplies, one.adds) == (other.fused, other.multiplies, other.adds);
    let blocks: Vec<Counts> = blocks.into_iter().filter(|block| block.fused >= FUSED).collect();
    blocks.chunk_by(alike).map(|repeated| repeated.iter().fold(Counts::default(), |sum, block| sum.and(*block))).collect()
}
