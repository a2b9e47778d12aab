//! Linker options of the browser's module.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("wasm") {
        // Unless it is exported, the linker puts a call of it at the top of every exported function, and the glue calls those (tables of JavaScript
        // values) thousands of times in a training step: all constructors of CubeCL's registry, each time. `web/src/worker/wasm.ts` calls it once.
        println!("cargo::rustc-link-arg-cdylib=--export=__wasm_call_ctors");
    }
}
