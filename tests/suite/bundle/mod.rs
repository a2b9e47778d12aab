//! Model files → configuration, tokenizer and tensors.

mod adapter;
mod adapter_logits;
mod adapter_refused;
mod adapter_saved;
mod added_tokens;
mod check_tensors;
mod companions;
mod config;
mod config_edit;
mod documents;
mod encode;
mod family_configs;
pub mod files;
mod folder;
mod generated;
mod gguf;
mod gguf_keys;
mod nested;
mod pieces;
mod prefixes;
mod quants;
mod requests;
mod tokenizer_binding;
mod tokenizer_of_folder;
mod tokenizer_of_gguf;
mod unknown_type;
mod vocabularies;
