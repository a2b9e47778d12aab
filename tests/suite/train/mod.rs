//! What a trainer says of itself.

mod account;
