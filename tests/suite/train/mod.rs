//! What a trainer says of itself, and the blocks that it trains.

mod account;
mod blocks;
mod blocks_resumed;
mod evaluation;
