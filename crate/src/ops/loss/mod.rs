//! The loss of logits, and of a head without all its logits at once.

pub mod cross_entropy;
pub mod head;
