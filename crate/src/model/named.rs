//! Modules that have the names of a family's files.

use std::ops::{Deref, DerefMut};

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;

use crate::parameters::NAMED;

/// A module with its whole name, which replaces its path in the module tree: one tree then serves families that call its parts differently.
#[derive(Debug, Clone)]
pub struct Named<M> {
    name: String,
    module: M,
}

impl<M> Named<M> {
    /// Gives `module` this name.
    pub fn new(name: String, module: M) -> Self {
        Self { name, module }
    }

    /// Returns the name of the module's weight.
    pub fn weight_name(&self) -> String {
        format!("{}.weight", self.name)
    }

    fn with(self, change: impl FnOnce(M) -> M) -> Self {
        Self {
            name: self.name,
            module: change(self.module),
        }
    }
}

impl<M> Deref for Named<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.module
    }
}

impl<M> DerefMut for Named<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.module
    }
}

impl<M: Module + ModuleDisplay> Module for Named<M> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.module.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        self.with(|module| module.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.with(|module| module.to_device(device))
    }

    fn train(self) -> Self {
        self.with(Module::train)
    }

    fn valid(&self) -> Self {
        Self {
            name: self.name.clone(),
            module: self.module.valid(),
        }
    }

    fn materialize(self) -> Self {
        self.with(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        visitor.enter_module(&self.name, NAMED);
        self.module.visit(visitor);
        visitor.exit_module(&self.name, NAMED);
    }

    fn map<M2: ModuleMapper>(self, mapper: &mut M2) -> Self {
        mapper.enter_module(&self.name, NAMED);
        let module = self.module.map(mapper);
        mapper.exit_module(&self.name, NAMED);
        Self {
            name: self.name,
            module,
        }
    }
}

impl<M: Module + ModuleDisplay> ModuleDisplayDefault for Named<M> {
    fn content(&self, content: Content) -> Option<Content> {
        content.add(&self.name, &self.module).optional()
    }
}

impl<M: Module + ModuleDisplay> ModuleDisplay for Named<M> {}
