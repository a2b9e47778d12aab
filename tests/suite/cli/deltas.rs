//! Exact deltas of models in every form, and plans of them: golden/deltas.json has the changes, and the SHA-256 that make_deltas.py computed.

use super::*;
use tabtune::formats::Digest;

fn golden(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/golden/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Derives the delta from `base` to `target`, compares it, and uses it in both directions. `weights` are the names of the weight files.
fn both_ways(place: &Path, base: &str, target: &str, weights: &[String], expected: &Value) {
    let delta = text(&place.join("delta.safetensors"));
    let made = succeed(&[
        "delta", "derive", "--base", base, "--target", target, "--to", &delta,
    ]);
    let sum = Digest::of(&std::fs::read(&delta).unwrap()).to_string();
    assert_eq!(sum, *expected, "{base}");
    let ending = weights[0].split_once('.').unwrap().1;
    for (way, model, result) in [("apply", base, target), ("remove", target, base)] {
        let to = match weights {
            [_] => text(&place.join(format!("{way}.{ending}"))),
            _ => text(&place.join(way)),
        };
        let used = succeed(&[
            "delta", way, "--model", model, "--delta", &delta, "--to", &to,
        ]);
        assert_eq!(used.last()["delta"], made.last()["delta"]);
        for name in weights {
            let written = match weights {
                [_] => PathBuf::from(&to),
                _ => Path::new(&to).join(name),
            };
            let result = match Path::new(result).is_dir() {
                true => Path::new(result).join(name),
                false => PathBuf::from(result),
            };
            assert!(
                std::fs::read(written).unwrap() == std::fs::read(&result).unwrap(),
                "{way}: {result:?}"
            );
        }
        assert!(run(&["verify", &to]).good, "{way}: {to}");
    }
    let (code, _) = refuse(&[
        "delta",
        "apply",
        "--model",
        target,
        "--delta",
        &delta,
        "--to",
        &text(&place.join(format!("again.{ending}"))),
    ]);
    assert_eq!(code, "delta.base.mismatch");
}

#[test]
fn a_delta_leads_from_base_to_target_and_back_in_every_form() {
    let all: Value = serde_json::from_slice(&golden("deltas.json")).unwrap();
    let (step, flip) = (all["step"].as_u64().unwrap(), all["flip"].as_u64().unwrap());
    for (form, one) in all["forms"].as_object().unwrap() {
        let place = folder(&format!("delta-{form}"));
        let sides = ["base", "target"].map(|side| place.join(side));
        let changed = one["changed"].as_str().unwrap();
        for (at, side) in sides.iter().enumerate() {
            std::fs::create_dir(side).unwrap();
            for path in one["files"].as_array().unwrap() {
                let path = path.as_str().unwrap();
                // Changed bytes are no longer those of the checkpoint.
                if at == 1 && form == "checkpoint" && path != changed {
                    continue;
                }
                let mut bytes = golden(path);
                for span in one["spans"].as_array().unwrap() {
                    let end = |at: usize| span[at].as_u64().unwrap() as usize;
                    if at == 1 && path == changed {
                        (end(0)..end(1))
                            .step_by(step as usize)
                            .for_each(|byte| bytes[byte] ^= flip as u8);
                    }
                }
                write(side, base_name(path), bytes);
            }
        }
        let paths = one["files"].as_array().unwrap().iter();
        let names = paths.map(|path| base_name(path.as_str().unwrap()).to_string());
        let is_weights =
            |name: &String| name.ends_with(".gguf") || name.ends_with("model.safetensors");
        let weights: Vec<String> = names.filter(is_weights).collect();
        let [base, target] = sides.map(|side| text(&side));
        both_ways(&place, &base, &target, &weights, &one["delta"]);
        std::fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn a_json_state_dict_keeps_its_form_and_nan() {
    let all: Value = serde_json::from_slice(&golden("deltas.json")).unwrap();
    let one = &all["json"];
    let place = folder("delta-json");
    let [base, target] = ["base", "target"].map(|side| {
        let name = format!("{side}.state_dict.json");
        write(&place, &name, one[side].as_str().unwrap())
    });
    both_ways(
        &place,
        &base,
        &target,
        &["x.state_dict.json".into()],
        &one["delta"],
    );
    let delta = text(&place.join("delta.safetensors"));
    let wrong = text(&place.join("x.json"));
    let (code, message) = refuse(&[
        "delta", "apply", "--model", &base, "--delta", &delta, "--to", &wrong,
    ]);
    assert!(
        code == "config.invalid" && message.contains(".state_dict.json"),
        "{message}"
    );
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn an_inspection_of_bare_tensors_takes_the_part_that_is_asked_for() {
    let place = folder("part");
    let bytes = golden("models/llama3/model.safetensors");
    let path = write(&place, "model.safetensors", bytes);
    let found = succeed(&[
        "inspect",
        &path,
        "--contract",
        "--include",
        "lm_head.weight",
        "none.*",
        "--rename",
        "lm_head.weight=head",
    ]);
    let inspection = &found.last()["inspection"];
    let names = inspection["tensors"].as_array().unwrap().iter();
    assert_eq!(Vec::from_iter(names.map(|one| &one["name"])), ["head"]);
    let warning = &inspection["warnings"][0]["code"];
    assert_eq!(warning, "select.pattern.unmatched");
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_plan_names_every_tensor_and_reads_one() {
    let place = folder("plan");
    let model = golden("models/llama3.gguf");
    let path = write(&place, "llama3.gguf", &model);
    let plan = |options: &[&str]| {
        let args = [&["inspect", &path, "--plan"], options].concat();
        succeed(&args).last()["plan"].clone()
    };
    let (source, hf) = (plan(&[]), plan(&["--names", "hf"]));
    let names = |plan: &Value| -> Vec<String> {
        let entries = plan["entries"].as_array().unwrap().iter();
        entries
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names(&source).contains(&"token_embd.weight".to_string()));
    assert!(names(&hf).contains(&"model.embed_tokens.weight".to_string()));
    assert_ne!(source["plan_digest"], hf["plan_digest"]);
    let part = plan(&["--include", "blk.*", "--rename", "blk.0.attn_q.weight=q"]);
    assert!(names(&part).contains(&"q".to_string()), "{part}");
    let entries = part["entries"].as_array().unwrap();
    let q = entries.iter().find(|one| one["name"] == "q").unwrap();
    assert_eq!(q["source_key"], "blk.0.attn_q.weight");
    let to = text(&place.join("q.bin"));
    let read = succeed(&[
        "inspect",
        &path,
        "--plan",
        "--rename",
        "blk.0.attn_q.weight=q",
        "--tensor",
        "q",
        "--to",
        &to,
    ]);
    let [begin, end] = ["begin", "end"].map(|key| q[key].as_u64().unwrap() as usize);
    let bytes = std::fs::read(&to).unwrap();
    assert!(bytes == model[begin..end]);
    assert_eq!(read.last()["sha256"], Digest::of(&bytes).to_string());
    let (code, _) = refuse(&["inspect", &path, "--plan", "--tensor", "x"]);
    assert_eq!(code, "plan.tensor.unknown");
    std::fs::remove_dir_all(place).unwrap();
}
