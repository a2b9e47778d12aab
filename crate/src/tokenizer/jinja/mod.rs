//! Jinja with Python's semantics, over minijinja.

mod expressions;
mod filters;
mod format;
mod globals;
mod json;
mod methods;
mod objects;
mod representation;
mod source;
mod spec;
mod text;
mod tokens;
mod values;

pub(super) use filters::add as add_filters;
pub(super) use methods::method;
pub(super) use representation::printed;
pub(super) use source::{Source, rewritten};
pub(super) use spec::taken;
pub(super) use values::{Arguments, wrong};
