//! Takes the module of a user from crate/README.md: as it is there, and with a changed bit in the weights that it loads.

use std::{env, fs};

const README: &str = "../../../crate/README.md";
const WEIGHTS: &str = "save(&half).await?";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={README}");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"cpu\"))");
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() != Ok("wasm") {
        return;
    }
    // As for the core, `web/core/build.rs`.
    println!("cargo::rustc-cdylib-link-arg=--export=__wasm_call_ctors");
    let readme = fs::read_to_string(README).expect("crate/README.md");
    let section = readme.split("## Any Burn module").nth(1).expect("section");
    let code = section.split("```").nth(1).expect("example");
    let (_, code) = code.split_once('\n').expect("language of the example");
    // rustdoc hides the sign in front of lines that a reader does not need.
    let code: String = code
        .lines()
        .map(|line| {
            let hidden = line.trim_start().strip_prefix("# ");
            hidden.unwrap_or(line).to_string() + "\n"
        })
        .collect();
    assert_eq!(code.matches(WEIGHTS).count(), 1, "{WEIGHTS} in the example");
    let changed = code.replace(WEIGHTS, &format!("super::changed({WEIGHTS})"));
    let folder = env::var("OUT_DIR").expect("OUT_DIR");
    for (name, code) in [("module", code), ("changed", changed)] {
        fs::write(format!("{folder}/{name}.rs"), code).expect("a file in OUT_DIR");
    }
}
