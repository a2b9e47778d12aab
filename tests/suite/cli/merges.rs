//! Adapters merged into a base by each command that merges: one sum in f32, rounded once, to the type that is written.

use std::collections::BTreeMap;
use std::rc::Rc;

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use tabtune::bundle::{Bundle, open_bundle};
use tabtune::formats::{GgufFile, MemorySource};

use super::*;

const RANK: usize = 2;
const SCALE: f64 = 4.0 / RANK as f64;
/// Matrices with factors, with their rows and columns in the model of `tiny`.
const TARGETS: [(&str, usize, usize); 2] =
    [("self_attn.q_proj", 16, 16), ("mlp.down_proj", 16, 24)];

/// Makes the checkpoint of a short run in bf16: a base whose dtype loses a small change.
fn base_in_bf16(place: &Path) -> (String, String) {
    let (config, data) = tiny(place);
    let out = text(&place.join("base"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--precision", "bf16", "--stop-at", "1", "--out", &out],
        ]
        .concat(),
    );
    (out, data)
}

/// Returns values of both signs around `size`, which use all digits of an f32.
fn values(count: usize, size: f32, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32 * size
    };
    (0..count).map(|_| next()).collect()
}

/// Makes the factors of an adapter by the name of their matrix: A [r, in] and B [out, r], with values of B around `size`.
fn factors(size: f32) -> BTreeMap<String, [Vec<f32>; 2]> {
    let mut all = BTreeMap::new();
    for layer in 0..2 {
        for (at, (target, rows, columns)) in TARGETS.into_iter().enumerate() {
            let seed = (layer * 10 + at) as u32;
            all.insert(
                format!("model.layers.{layer}.{target}"),
                [
                    values(RANK * columns, 0.3, seed),
                    values(rows * RANK, size, seed + 5),
                ],
            );
        }
    }
    all
}

/// Writes an adapter as PEFT files.
fn adapter(folder: &Path, factors: &BTreeMap<String, [Vec<f32>; 2]>) -> String {
    adapter_named(folder, factors, "base_model.model.")
}

fn adapter_named(folder: &Path, factors: &BTreeMap<String, [Vec<f32>; 2]>, prefix: &str) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let bytes = |values: &[f32]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut tensors = Vec::new();
    for (name, [a, b]) in factors {
        for (factor, values, shape) in [
            ("A", a, vec![RANK, a.len() / RANK]),
            ("B", b, vec![b.len() / RANK, RANK]),
        ] {
            tensors.push((
                format!("{prefix}{name}.lora_{factor}.weight"),
                bytes(values),
                shape,
            ));
        }
    }
    let views = tensors.iter().map(|(name, bytes, shape)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    std::fs::write(
        folder.join("adapter_model.safetensors"),
        serialize(views, None).unwrap(),
    )
    .unwrap();
    let config = json!({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 4, "lora_dropout": 0.0, "bias": "none",
        "target_modules": TARGETS.map(|(target, ..)| target.rsplit('.').next().unwrap())
    });
    std::fs::write(folder.join("adapter_config.json"), config.to_string()).unwrap();
    text(folder)
}

/// Reads the matrices of a folder as f64.
fn matrices(folder: &str) -> BTreeMap<String, Vec<f64>> {
    let bytes = std::fs::read(Path::new(folder).join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let widened = |view: &TensorView<'_>| -> Vec<f64> {
        let data = view.data();
        match view.dtype() {
            Dtype::F32 => data
                .chunks_exact(4)
                .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
                .collect(),
            Dtype::BF16 => data
                .chunks_exact(2)
                .map(|b| half::bf16::from_le_bytes(b.try_into().unwrap()).to_f64())
                .collect(),
            Dtype::F16 => data
                .chunks_exact(2)
                .map(|b| half::f16::from_le_bytes(b.try_into().unwrap()).to_f64())
                .collect(),
            other => panic!("{other:?}"),
        }
    };
    file.tensors()
        .iter()
        .map(|(name, view)| (name.clone(), widened(view)))
        .collect()
}

/// Returns the share of the change that remains in the merged weights: 1 − ‖W′ − W − sBA‖ / ‖sBA‖ in f64, the smallest of all targets.
fn survival(base: &str, merged: &str, factors: &BTreeMap<String, [Vec<f32>; 2]>) -> f64 {
    let (base, merged) = (matrices(base), matrices(merged));
    let of = |(name, [a, b]): (&String, &[Vec<f32>; 2])| {
        let (name, columns) = (format!("{name}.weight"), a.len() / RANK);
        let (mut lost, mut whole) = (0.0, 0.0);
        for (at, (new, old)) in merged[&name].iter().zip(&base[&name]).enumerate() {
            let (row, column) = (at / columns, at % columns);
            let change = SCALE
                * (0..RANK)
                    .map(|k| f64::from(b[row * RANK + k]) * f64::from(a[k * columns + column]))
                    .sum::<f64>();
            lost += (new - old - change).powi(2);
            whole += change.powi(2);
        }
        1.0 - (lost / whole).sqrt()
    };
    factors.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// Returns the smallest share that the receipt of a folder states; every target has one.
fn stated_survival(folder: &str) -> f64 {
    let receipt: Value = serde_json::from_slice(
        &std::fs::read(Path::new(folder).join("tabtune.receipt.json")).unwrap(),
    )
    .unwrap();
    let shares: Vec<f64> = receipt["conversions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["survival"].as_f64())
        .collect();
    assert_eq!(shares.len(), 2 * TARGETS.len());
    shares.into_iter().fold(f64::INFINITY, f64::min)
}

/// An f32 sum keeps 0.9999 of a change of a thousandth of its weight; if it is rounded to bf16 first, less than half of it remains.
#[test]
fn a_sum_is_rounded_once_to_the_type_that_is_written() {
    let place = folder("merges");
    let (model, data) = base_in_bf16(&place);
    for (name, size) in [("small", 2e-4), ("real", 2e-2)] {
        let factors = factors(size);
        let adapter = adapter(&place.join(name), &factors);
        for dtype in ["f32", "f16", "bf16", "stored"] {
            let to = |command: &str| text(&place.join(format!("{name}-{dtype}-{command}")));
            let (merged, converted) = (to("merge"), to("convert"));
            succeed(&[
                "adapter",
                "merge",
                "--model",
                &model,
                "--adapter",
                &adapter,
                "--dtype",
                dtype,
                "--to",
                &merged,
            ]);
            succeed(&[
                "convert",
                "--model",
                &model,
                "--merge-adapter",
                &adapter,
                "--dtype",
                dtype,
                "--to",
                &converted,
            ]);
            let read =
                |folder: &str| std::fs::read(Path::new(folder).join("model.safetensors")).unwrap();
            assert!(read(&merged) == read(&converted), "{name} {dtype}");
            let kept = survival(&model, &merged, &factors);
            let enough = match dtype {
                "f32" => kept >= 0.9999,
                _ => kept < 0.9999,
            };
            assert!(enough, "{name} {dtype}: {kept}");
            // The receipt states the same share. Its product is summed in f32, which adds an error of 1e-7.
            let stated = stated_survival(&merged);
            assert!(
                (stated - kept).abs() < 2e-7 + 2e-3 * (1.0 - kept),
                "{name} {dtype}: {stated} is stated, {kept} is left"
            );
        }
        // A step with no effect: the weights that training begins with.
        let still = write(
            &place,
            "still.json",
            r#"{"optimizer": {"type": "sgd"}, "learning_rate": 1e-37, "steps": 1, "seq_len": 16, "batch_size": 1}"#,
        );
        let trained = text(&place.join(format!("{name}-trained")));
        let train = [
            "train",
            "--model",
            &model,
            "--merge-adapter",
            &adapter,
            "--data",
            &data,
            "--device",
            "cpu",
            "--train-config",
            &still,
        ];
        succeed(&[&train[..], &["--out", &trained]].concat());
        assert!(
            survival(&model, &trained, &factors) >= 0.9999,
            "{name}: trained on"
        );
    }
}

/// A change beyond the last digit of the weights, or below the smallest f32, is lost, and nothing else is said.
#[test]
fn a_change_that_f32_cannot_add_is_lost() {
    let place = folder("merges-vanishing");
    let (model, _) = base_in_bf16(&place);
    for size in [1e-9, 1e-12, 1e-18, 1e-38] {
        let mut factors = factors(size);
        if size < 1e-30 {
            // The products are below the smallest f32.
            factors
                .values_mut()
                .for_each(|[a, _]| a.iter_mut().for_each(|value| *value *= 1e-20));
        }
        let adapter = adapter(&place.join(format!("{size}")), &factors);
        for dtype in ["f32", "bf16"] {
            let merged = text(&place.join(format!("{size}-{dtype}")));
            succeed(&[
                "adapter",
                "merge",
                "--model",
                &model,
                "--adapter",
                &adapter,
                "--dtype",
                dtype,
                "--to",
                &merged,
            ]);
            let (kept, stated) = (
                survival(&model, &merged, &factors),
                stated_survival(&merged),
            );
            // The errors of adding and of rounding to bf16 are no longer independent here; both are of the size of the change.
            let enough = if dtype == "f32" {
                (stated - kept).abs() < 2e-3
            } else {
                kept < 1e-3 && stated < 1e-3
            };
            assert!(enough, "{size} {dtype}: {stated} is stated, {kept} is left");
        }
    }
}

/// Returns the type of each tensor of a GGUF file.
fn types_of(path: &str) -> BTreeMap<String, String> {
    let file = GgufFile::open(&MemorySource::new("m.gguf", std::fs::read(path).unwrap())).unwrap();
    file.tensors
        .iter()
        .map(|tensor| (tensor.name.clone(), tensor.dtype.clone()))
        .collect()
}

fn opened(path: &str) -> Bundle {
    open_bundle(vec![Rc::new(MemorySource::new(
        "m.gguf",
        std::fs::read(path).unwrap(),
    ))])
    .unwrap()
}

/// A GGUF file without a head gets one from an adapter that unties it: the same values as by way of a folder.
#[test]
fn a_head_that_an_adapter_unties_is_added_to_the_file() {
    let place = folder("merges-untied");
    let golden = |name: &str| format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let (base, to) = (golden("models/qwen2.gguf"), |name: String| {
        text(&place.join(name))
    });
    assert!(!types_of(&base).contains_key("output.weight"));
    let by_way = to("folder".into());
    succeed(&["convert", "--model", &base, "--to", &by_way]);
    for adapter in ["qwen2-saved", "qwen2-tied-embedding"] {
        let factors = golden(&format!("adapters/{adapter}"));
        let merge = |model: &str, file: &str, more: &[&str]| {
            let merge = [
                "adapter",
                "merge",
                "--model",
                model,
                "--adapter",
                &factors,
                "--format",
                "gguf",
                "--to",
                file,
            ];
            succeed(&[&merge[..], more].concat())
        };
        let [straight, halves, around] =
            ["straight", "halves", "around"].map(|name| to(format!("{adapter}-{name}.gguf")));
        let answer = merge(&base, &straight, &[]);
        assert!(
            answer.last()["receipt"]["warnings"]
                .to_string()
                .contains("adapter.untied"),
            "{adapter}"
        );
        merge(&by_way, &around, &[]);
        let (found, expected) = (opened(&straight), opened(&around));
        assert!(
            !found.config.tie_word_embeddings && found.names() == expected.names(),
            "{adapter}"
        );
        for name in found.names() {
            assert_eq!(
                found.read_f32(&name).unwrap(),
                expected.read_f32(&name).unwrap(),
                "{adapter}: {name}"
            );
        }
        assert!(run(&["verify", &straight]).good);
        merge(&base, &halves, &["--type", "f16"]);
        assert_eq!(
            (
                types_of(&halves)["output.weight"].as_str(),
                types_of(&straight)["output.weight"].as_str()
            ),
            ("F16", "F32")
        );
    }
    // Rows without tokens of the base: the refusal states the reason, and the way that it names works.
    let grown = place.join("grown");
    std::fs::create_dir(&grown).unwrap();
    let table: Vec<u8> = values(14 * 16, 0.3, 9)
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let factor = |seed: u32| {
        values(32, 0.3, seed)
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let (a, b, q) = (
        factor(1),
        factor(2),
        "base_model.model.model.layers.0.self_attn.q_proj",
    );
    let views = [
        (
            "base_model.model.model.embed_tokens.weight".to_string(),
            vec![14, 16],
            &table,
        ),
        (format!("{q}.lora_A.weight"), vec![2, 16], &a),
        (format!("{q}.lora_B.weight"), vec![16, 2], &b),
    ];
    let views = views
        .into_iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape, bytes).unwrap()));
    std::fs::write(
        grown.join("adapter_model.safetensors"),
        serialize(views, None).unwrap(),
    )
    .unwrap();
    let config = json!({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]});
    std::fs::write(grown.join("adapter_config.json"), config.to_string()).unwrap();
    let (grown, whole) = (text(&grown), to("grown.gguf".into()));
    let merge = |model: &str| {
        let merge = [
            "adapter",
            "merge",
            "--model",
            model,
            "--adapter",
            &grown,
            "--resize-vocabulary",
            "--format",
            "gguf",
            "--to",
            &whole,
        ];
        merge.map(str::to_string)
    };
    let refused = merge(&base);
    let (code, message) = refuse(&refused.each_ref().map(String::as_str));
    let words = [
        "14 rows, after the adapter enlarged it",
        "tabtune convert --model BASE --to FOLDER",
        "adapter merge --model FOLDER",
    ];
    assert!(
        code == "export.gguf.base" && words.iter().all(|word| message.contains(word)),
        "{code}: {message}"
    );
    succeed(&merge(&by_way).each_ref().map(String::as_str));
    assert_eq!(opened(&whole).config.vocab_size, 14);
}

/// Refused with tensor and count in every type and format, unless they are allowed, which is reported.
#[test]
fn values_that_are_no_numbers_do_not_leave_unseen() {
    let place = folder("merges-nan");
    let (model, _) = base_in_bf16(&place);
    let mut odd = factors(2e-2);
    // A row of B affects the whole row of the sum, 24 values.
    odd.get_mut("model.layers.1.mlp.down_proj").unwrap()[1][6] = f32::NAN;
    let adapter = adapter(&place.join("adapter"), &odd);
    for (name, more) in [
        ("stored", &[][..]),
        ("f32", &["--dtype", "f32"]),
        ("f16", &["--dtype", "f16"]),
        ("whole.gguf", &["--format", "gguf", "--type", "f32"]),
    ] {
        let to = text(&place.join(name));
        let merge = [
            "adapter",
            "merge",
            "--model",
            &model,
            "--adapter",
            &adapter,
            "--to",
            &to,
        ];
        let (code, message) = refuse(&[&merge[..], more].concat());
        assert!(
            code == "tensor.non-finite"
                && message.contains("model.layers.1.mlp.down_proj.weight")
                && message.contains("24 NaN"),
            "{name}: {code} {message}"
        );
        assert!(!Path::new(&to).exists(), "{name}");
        let allowed = output(&[&merge[..], more, &["--allow-non-finite"]].concat());
        let told = String::from_utf8(allowed.stderr).unwrap();
        assert!(
            allowed.status.success()
                && told.contains("(24) has values that are NaN or infinite. [tensor.non-finite]"),
            "{name}: {told}"
        );
        let receipt = if name.ends_with(".gguf") {
            format!("{to}.receipt.json")
        } else {
            format!("{to}/tabtune.receipt.json")
        };
        let receipt: Value = serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
        let warned = receipt["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|warning| warning["code"] == "tensor.non-finite")
            .unwrap();
        assert!(
            warned["subject"]
                .as_str()
                .unwrap()
                .contains("layers.1.mlp.down_proj.weight (24)"),
            "{name}: {warned}"
        );
        assert!(run(&["verify", &to]).good, "{name}");
    }
}

#[test]
fn a_prefix_too_many_or_too_few_is_reported_once() {
    let place = folder("merges-prefix");
    let (model, _) = base_in_bf16(&place);
    let factors = factors(2e-2);
    let merged = |name: &str, prefix: &str| {
        let adapter = adapter_named(&place.join(format!("{name}-adapter")), &factors, prefix);
        let to = text(&place.join(name));
        let answer = output(&[
            "adapter",
            "merge",
            "--model",
            &model,
            "--adapter",
            &adapter,
            "--to",
            &to,
        ]);
        let told = String::from_utf8(answer.stderr).unwrap();
        assert!(answer.status.success(), "{name}: {told}");
        (
            std::fs::read(Path::new(&to).join("model.safetensors")).unwrap(),
            told.matches("[model.tensor.prefix]").count(),
        )
    };
    let (usual, told) = merged("usual", "base_model.model.");
    assert_eq!(told, 0);
    for (name, prefix) in [
        ("bare", ""),
        ("double", "base_model.model.base_model.model."),
    ] {
        assert!(merged(name, prefix) == (usual.clone(), 1), "{name}");
    }
}

/// An adapter before its first step, and matrices of the base that a requested type does not reach: both are warnings.
#[test]
fn a_merge_without_effect_and_types_that_stay_are_reported() {
    let place = folder("merges-told");
    let to = |name: &str| text(&place.join(name));
    let (model, _) = base_in_bf16(&place);
    let base = to("base.gguf");
    succeed(&[
        "convert", "--model", &model, "--format", "gguf", "--type", "f16", "--to", &base,
    ]);
    let mut still = factors(2e-2);
    still.values_mut().for_each(|[_, b]| b.fill(0.0));
    let still = adapter(&place.join("zero"), &still);
    let changing = adapter(&place.join("one"), &factors(2e-2));
    let told = |adapter: &str, model: &str, name: &str, more: &[&str]| {
        let merged = output(
            &[
                &[
                    "adapter",
                    "merge",
                    "--model",
                    model,
                    "--adapter",
                    adapter,
                    "--to",
                    &to(name),
                ],
                more,
            ]
            .concat(),
        );
        let told = String::from_utf8(merged.stderr).unwrap();
        assert!(merged.status.success(), "{name}: {told}");
        told
    };
    let gguf = ["--format", "gguf"];
    assert!(told(&still, &model, "still", &[]).contains("none of its"));
    let card = std::fs::read_to_string(place.join("still/README.md")).unwrap();
    assert!(
        card.contains("An adapter was merged into it:")
            && card.contains("`adapter_model.safetensors`"),
        "{card}"
    );
    assert!(told(&still, &base, "still.gguf", &gguf).contains("[adapter.zero]"));
    let plain = told(&changing, &base, "changing.gguf", &gguf);
    assert!(
        !plain.contains("adapter.zero") && !plain.contains("export.gguf.type-kept"),
        "{plain}"
    );
    let other = told(
        &changing,
        &base,
        "other.gguf",
        &[&gguf[..], &["--type", "f32"]].concat(),
    );
    assert!(
        other.contains("[export.gguf.type-kept]") && other.contains("(F16) and 10 more"),
        "{other}"
    );
    assert_eq!(types_of(&to("other.gguf"))["token_embd.weight"], "F16");
}

/// Reads the configuration of an adapter.
fn adapter_config(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("adapter_config.json")).unwrap()).unwrap()
}

/// An adapter whose training is continued keeps the name of its base, unless the weights that it states are known to be others.
#[test]
fn a_base_is_not_named_like_another_one() {
    let place = folder("merges-names");
    let (parent, data) = checkpoint();
    let to = |name: &str| text(&place.join(name));
    let options = [
        "--data",
        &data,
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "16",
        "--device",
        "cpu",
    ];
    let train = |model: &str, more: &[&str]| {
        succeed(&[&["train", "--model", model], &options[..], more].concat())
    };
    // Other values of the same shapes.
    let (tuned, run) = (to("tuned"), to("run"));
    train(&parent, &["--seed", "8", "--out", &tuned]);
    train(&parent, &["--lora", "--lora-r", "2", "--out", &run]);
    let stated = place.join("stated");
    succeed(&[
        "export",
        "--checkpoint",
        &run,
        "--format",
        "peft",
        "--base-model",
        "some/parent",
        "--to",
        &text(&stated),
    ]);
    let config = adapter_config(&stated).as_object().unwrap().clone();
    let config = json!(
        config
            .into_iter()
            .chain([("revision".to_string(), json!("v1"))])
            .collect::<serde_json::Map<_, _>>()
    );
    write(&stated, "adapter_config.json", config.to_string());
    // The same adapter as PEFT writes it, without a digest.
    let silent = place.join("silent");
    std::fs::create_dir(&silent).unwrap();
    write(&silent, "adapter_config.json", config.to_string());
    let bytes = std::fs::read(stated.join("adapter_model.safetensors")).unwrap();
    write(
        &silent,
        "adapter_model.safetensors",
        serialize(SafeTensors::deserialize(&bytes).unwrap().tensors(), None).unwrap(),
    );

    let cases = [
        (&parent, &stated, true),
        (&tuned, &silent, true),
        (&tuned, &stated, false),
    ];
    for (at, (model, adapter, named)) in cases.into_iter().enumerate() {
        let on = to(&format!("on-{at}"));
        train(model, &["--adapter", &text(adapter), "--out", &on]);
        let peft = place.join(format!("peft-{at}"));
        let ended = output(&[
            "export",
            "--checkpoint",
            &on,
            "--format",
            "peft",
            "--to",
            &text(&peft),
        ]);
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(
            ended.status.success() && told.contains("[adapter.base.unnamed]") != named,
            "{at}: {told}"
        );
        let expected = if named {
            [json!("some/parent"), json!("v1")]
        } else {
            [Value::Null, Value::Null]
        };
        for folder in [Path::new(&on), &peft] {
            let config = adapter_config(folder);
            assert_eq!(
                [&config["base_model_name_or_path"], &config["revision"]],
                expected.each_ref(),
                "{}",
                folder.display()
            );
        }
        // A name that is given is written.
        let given = place.join(format!("given-{at}"));
        succeed(&[
            "export",
            "--checkpoint",
            &on,
            "--format",
            "peft",
            "--base-model",
            "some/tuned",
            "--to",
            &text(&given),
        ]);
        assert_eq!(
            adapter_config(&given)["base_model_name_or_path"],
            "some/tuned"
        );
    }
}
