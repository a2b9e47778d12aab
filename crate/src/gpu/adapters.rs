//! Values that are known of devices.

use std::sync::{PoisonError, RwLock};

/// A value for each device that has one.
pub(super) struct PerDevice<D, T>(RwLock<Vec<(D, T)>>);

impl<D: Clone + PartialEq, T: Copy> PerDevice<D, T> {
    /// No device has a value.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// Sets the value of a device.
    pub fn set(&self, device: &D, value: T) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(known, _)| known != device);
        list.push((device.clone(), value));
    }

    /// Returns the value of a device.
    pub fn get(&self, device: &D) -> Option<T> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = list.iter().find(|(known, _)| known == device);
        known.map(|(_, value)| *value)
    }
}
