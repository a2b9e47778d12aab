//! tokenizer.
