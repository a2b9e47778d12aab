//! The loss: of logits, and of a head whose logits never all exist at once.

pub mod cross_entropy;
pub mod head;
