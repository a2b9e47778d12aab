//! Reports of a trainer on its groups, and training of blocks.

mod account;
mod blocks;
mod blocks_resumed;
mod evaluation;
mod notices;
