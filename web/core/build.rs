//! Exports the constructors' function. Otherwise the linker calls it at the top of every exported function, and the glue calls those (tables of
//! JavaScript values) thousands of times in a training step: all constructors of CubeCL's registry, each time. `web/src/worker/wasm.ts` calls it once.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY")
        .is_ok_and(|families| families.split(',').any(|family| family == "wasm"))
    {
        println!("cargo::rustc-cdylib-link-arg=--export=__wasm_call_ctors");
    }
}
