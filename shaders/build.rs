//! Writes the table of the shaders' texts, by stem, without comments and empty lines: nobody reads those in a compiled program, and everyone would
//! download them.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Folders with shaders, as they stand in a stem: `chunks/blocks` is `chunks/blocks.wgsl`.
const FOLDERS: [&str; 2] = ["", "chunks/"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut sources = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(Path::new(&root).join(folder))? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some(stem), true) = (
                stem,
                path.extension().is_some_and(|ending| ending == "wgsl"),
            ) {
                sources.push((
                    format!("{folder}{stem}"),
                    without_comments(&fs::read_to_string(&path)?),
                ));
            }
        }
    }
    sources.sort();
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("sources.rs"),
        format!("&{sources:?}"),
    )?;
    Ok(())
}

/// Returns the code of a shader: WGSL has no strings, so that two slashes begin a comment wherever they stand.
fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| {
        line.split_once("//")
            .map_or(line, |(code, _)| code)
            .trim_end()
    });
    code.filter(|line| !line.is_empty())
        .flat_map(|line| [line, "\n"])
        .collect()
}
