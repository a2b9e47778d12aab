//! The settings files of `recipes/`, each with fewer and shorter steps.

use super::*;

const LENGTHS: [&str; 8] = [
    "--seq-len",
    "16",
    "--batch-size",
    "2",
    "--gradient-accumulation-steps",
    "2",
    "--warmup-steps",
    "2",
];

/// Returns the path of a recipe, and its settings.
fn recipe(name: &str) -> (String, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes");
    let path = path.join(name).with_extension("json");
    let settings = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    (text(&path), settings)
}

/// Asserts that a run has the settings of a recipe, except for those of `changed`.
fn has(found: &Value, recipe: &Value, changed: &[&str], at: &str) {
    let Value::Object(keys) = recipe else {
        assert!(
            found == recipe || found.as_f64() == recipe.as_f64(),
            "{at}: {found} for {recipe}"
        );
        return;
    };
    for (key, value) in keys
        .iter()
        .filter(|(key, _)| !changed.contains(&key.as_str()))
    {
        has(&found[key], value, changed, &format!("{at}.{key}"));
    }
}

/// Runs a recipe on the files that `from` names; returns the lines of its steps.
fn steps(name: &str, from: &[&str], more: &[&str], out: &str) -> Vec<Value> {
    let (file, settings) = recipe(name);
    let fixed = [
        "train",
        "--train-config",
        &file,
        "--device",
        "cpu",
        "--out",
        out,
    ];
    let answer = succeed(&[&fixed[..], from, &LENGTHS, more].concat());
    let manifest = std::fs::read(Path::new(out).join("checkpoint.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let changed: Vec<String> = [&LENGTHS, more]
        .concat()
        .iter()
        .filter_map(|word| {
            Some(
                word.strip_prefix("--")?
                    .replace("schedule-", "")
                    .replace('-', "_"),
            )
        })
        .collect();
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    // A checkpoint has the list that the preset's name means.
    has(
        &manifest["train"],
        &settings,
        &[&changed[..], &["groups"]].concat(),
        name,
    );
    answer.with("grad_norm").into_iter().cloned().collect()
}

#[test]
fn recipes_of_new_models_and_of_models_in_files_train() {
    let place = folder("recipes");
    let at = |name: &str| text(&place.join(name));
    let (config, data) = (at("wide.json"), write(&place, "poem.txt", POEM.repeat(6)));
    // Rows of 32 values can be packed.
    let (narrow, _) = tiny(&place);
    let mut wide: Value = serde_json::from_slice(&std::fs::read(narrow).unwrap()).unwrap();
    (wide["hidden_size"], wide["intermediate_size"]) = (json!(32), json!(64));
    std::fs::write(&config, wide.to_string()).unwrap();
    let from = ["--config", &config, "--data", &data];
    let rates = |steps: &[Value]| {
        steps
            .iter()
            .map(|step| step["learning_rate"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };

    let scratch = at("scratch");
    let found = steps("from-scratch", &from, &["--steps", "6"], &scratch);
    assert_eq!(found.len(), 6);
    let rate = rates(&found);
    assert!(rate[2] == 1e-3 && rate[5] < 6e-4, "{rate:?}");

    let more = [
        ["--steps", "8"],
        ["--schedule-cooldown-steps", "2"],
        ["--schedule-annealing-start-step", "6"],
        ["--schedule-annealing-steps", "2"],
    ];
    let found = steps("infinite-annealing", &from, &more.concat(), &at("infinite"));
    let rate = rates(&found);
    // Peak, cooldown to half of it, constant, annealing.
    assert_eq!([rate[2], rate[4], rate[6]], [1e-3, 5e-4, 5e-4], "{rate:?}");
    assert!(rate[7] < 2e-4, "{rate:?}");

    let from = ["--model", &scratch, "--data", &data];
    let few = ["--epochs", "0.2"];
    let found = steps("whole-bf16-adafactor", &from, &few, &at("whole"));
    assert_eq!(found.len(), 3);

    let packed = at("packed.gguf");
    let form = ["--format", "gguf", "--type", "q8_0"];
    succeed(
        &[
            &["convert", "--model", &scratch, "--to", &packed][..],
            &form,
        ]
        .concat(),
    );
    let from = ["--model", &packed, "--data", &data];
    let out = at("lora");
    let found = steps("lora-packed-base", &from, &few, &out);
    assert_eq!(found.len(), 3);
    assert!(Path::new(&out).join("adapter_model.safetensors").exists());
}

#[test]
fn every_recipe_is_trained_here() {
    let source = include_str!("recipes.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry
            .unwrap()
            .path()
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .to_string();
        assert!(source.contains(&format!("steps(\"{name}\"")), "{name}");
    }
}
