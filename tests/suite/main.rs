//! One test binary, since linking Burn is slow. One line per area.

mod house;
