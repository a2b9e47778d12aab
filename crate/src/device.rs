//! device.
