//! Files of models → configuration, tokenizer and tensors.

mod config;
mod files;
mod folder;
mod gguf;
mod pieces;
mod quants;
