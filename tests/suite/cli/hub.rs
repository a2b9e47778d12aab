//! Models by name, from the folder in which Python's `huggingface_hub` keeps them.

use super::*;

/// Makes a copy of a model as `huggingface_hub` lays it down: files are links to blobs, and a branch names a commit.
fn cached(place: &Path) -> PathBuf {
    let repository = place.join("hub").join("models--owner--name");
    let [blobs, copy, refs] =
        ["blobs", "snapshots/0123abc", "refs"].map(|name| repository.join(name));
    for folder in [&blobs, &copy, &refs] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(refs.join("main"), "0123abc").unwrap();
    let model = format!("{}/golden/inputs/forms/model", env!("CARGO_MANIFEST_DIR"));
    for (index, file) in std::fs::read_dir(model).unwrap().enumerate() {
        let path = file.unwrap().path();
        let blob = format!("{index:040x}");
        std::fs::copy(&path, blobs.join(&blob)).unwrap();
        let link = copy.join(path.file_name().unwrap());
        std::os::unix::fs::symlink(Path::new("../../blobs").join(blob), link).unwrap();
    }
    place.join("hub")
}

#[test]
fn a_name_opens_the_copy_on_this_machine_or_says_how_to_fetch_it() {
    let place = folder("hub-names");
    let cache = cached(&place);
    let inspected = |name: &str, variable: &str, folder: &Path| {
        Command::new(binary())
            .args(["inspect", name, "--json"])
            .env_remove("HF_HOME")
            .env_remove("HF_HUB_CACHE")
            .env(variable, folder)
            .output()
            .unwrap()
    };
    for (name, variable, folder) in [
        ("hf:owner/name", "HF_HUB_CACHE", cache.as_path()),
        ("hf:owner/name@0123abc", "HF_HUB_CACHE", &cache),
        ("hf:owner/name/model.safetensors", "HF_HUB_CACHE", &cache),
        ("hf:owner/name@main", "HF_HOME", &place),
        (
            "https://huggingface.co/owner/name/tree/main",
            "HF_HOME",
            &place,
        ),
    ] {
        let output = inspected(name, variable, folder);
        assert!(output.status.success(), "{name}: {output:?}");
    }
    let out = text(&place.join("out"));
    let output = Command::new(binary())
        .args([
            "convert",
            "--model",
            "hf:owner/name",
            "--to",
            &out,
            "--json",
        ])
        .env("HF_HUB_CACHE", &cache)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let receipt = std::fs::read(Path::new(&out).join("tabtune.receipt.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(
        receipt["base"]["hub"],
        json!({ "repo": "owner/name", "commit": "0123abc" })
    );
    for (name, command) in [
        ("hf:owner/other", "hf download owner/other --revision main"),
        ("hf:owner/name@v2", "hf download owner/name --revision v2"),
        (
            "hf:owner/name/m.gguf",
            "hf download owner/name m.gguf --revision main",
        ),
    ] {
        let output = inspected(name, "HF_HUB_CACHE", &cache);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success() && said.contains(command), "{said}");
    }
}
