//! Writes the table of the shaders' texts, by stem, without comments and empty lines: nobody reads those in a compiled program, and everyone would
//! download them.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let (mut sources, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "wgsl") {
                sources.push((
                    stem(path.strip_prefix(&root)?)?,
                    without_comments(&fs::read_to_string(&path)?),
                ));
            }
        }
    }
    sources.sort();
    if let Some([(stem, _), _]) = sources.array_windows().find(|[(a, _), (b, _)]| a == b) {
        return Err(format!("two shaders have the stem {stem}").into());
    }
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("sources.rs"),
        format!("&{sources:?}"),
    )?;
    Ok(())
}

/// Returns the stem of a file below this folder. Only a chunk's has its folder, `chunks/blocks`: kernels are known by one word.
fn stem(path: &Path) -> Result<String, Box<dyn Error>> {
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let name = name.ok_or("a file name is not text")?;
    Ok(if path.starts_with("chunks") {
        format!("chunks/{name}")
    } else {
        name.to_owned()
    })
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
