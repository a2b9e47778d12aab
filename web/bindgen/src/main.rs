//! `wasm-bindgen --target web --out-dir FOLDER [--out-name NAME] [--typescript] [--remove-name-section] FILE`: generates the JavaScript and the
//! types for a compiled module.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let (mut input, mut out_dir, mut out_name, mut removes_names) = (None, None, None, false);
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word}: expected a value after it, found none"))
        };
        match word.as_str() {
            // web/setup.mjs compares the second word with Cargo.lock.
            "--version" => {
                println!("wasm-bindgen {}", env!("CARGO_PKG_VERSION"));
                return Ok(());
            }
            "--out-dir" => out_dir = Some(PathBuf::from(value()?)),
            "--out-name" => out_name = Some(value()?),
            // wasm-pack asks for the types, which are always generated.
            "--typescript" => {}
            "--remove-name-section" => removes_names = true,
            "--target" => match value()?.as_str() {
                "web" => {}
                other => bail!("--target: expected web, found {other}"),
            },
            _ if word.starts_with("--") => bail!(
                "{word}: expected --target, --out-dir, --out-name, --typescript or --remove-name-section"
            ),
            _ => input = Some(PathBuf::from(word)),
        }
    }
    let input = input.context("expected the compiled module, found no file")?;
    let out_dir = out_dir.context("expected --out-dir FOLDER, found none")?;
    let mut bindgen = Bindgen::new();
    // The generated script looks for the module next to itself by default, so that a page need not pass its address.
    bindgen
        .web(true)?
        .typescript(true)
        .omit_default_module_path(false)
        .remove_name_section(removes_names)
        .input_path(&input);
    if let Some(name) = &out_name {
        bindgen.out_name(name);
    }
    bindgen
        .generate(&out_dir)
        .with_context(|| format!("{}: no bindings could be made", input.display()))
}
