//! train.
