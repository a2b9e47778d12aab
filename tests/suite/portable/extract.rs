//! Adapters that are extracted from two models, compared with their known difference, and with the eigenvalues of DᵀD.

use std::collections::BTreeMap;
use std::rc::Rc;

use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};
use serde_json::json;
use tabtune::Result;
use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::config::{ModelConfig, Names};
use tabtune::families::config_to_hf;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{open_model, open_model_with};
use tabtune::portable::{ExtractOptions, ExtractReport, Extracted, extract_adapter};
use tabtune_tests::block_on;

use crate::adapter::{Files, base, opened, shape, sources};

fn options(rank: u64) -> ExtractOptions {
    ExtractOptions {
        rank,
        targets: Names::One("all-linear".into()),
    }
}

fn extract(tuned: &Bundle, base: &Bundle, options: &ExtractOptions) -> Result<Extracted> {
    block_on(extract_adapter(
        tuned,
        base,
        options,
        &Interrupt::none(),
        &mut |_, _| {},
    ))
}

fn written(extracted: &mut Extracted) -> Files {
    let mut files: Files = extracted
        .stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(extracted.stream.next_chunk()).unwrap() {
        files[chunk.file].1.extend(chunk.bytes);
    }
    files
}

/// Returns pseudo-random numbers between −1/2 and 1/2.
fn noise(seed: usize) -> impl FnMut() -> f64 {
    let mut state = seed as u64 * 2 + 1;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

/// Computes Σₖ size(k)·uₖ·vₖᵀ with `rank` terms of random vectors.
fn product(
    rows: usize,
    columns: usize,
    rank: usize,
    seed: usize,
    size: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let mut next = noise(seed);
    let mut out = vec![0.0; rows * columns];
    for k in 0..rank {
        let (u, v): (Vec<f64>, Vec<f64>) = (
            (0..rows).map(|_| next()).collect(),
            (0..columns).map(|_| next()).collect(),
        );
        for (row, u) in out.chunks_exact_mut(columns).zip(&u) {
            row.iter_mut()
                .zip(&v)
                .for_each(|(out, v)| *out += size(k) * u * v);
        }
    }
    out
}

/// Returns the values of a model, by the names of its tensors.
fn values(bundle: &Bundle) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    bundle
        .names()
        .into_iter()
        .map(|name| {
            (
                name.clone(),
                (
                    bundle.shape(&name).unwrap(),
                    bundle.read_f32(&name).unwrap(),
                ),
            )
        })
        .collect()
}

/// Makes a folder with these values in F32.
fn folder(
    config: &ModelConfig,
    values: &BTreeMap<String, (Vec<usize>, Vec<f32>)>,
) -> Vec<Rc<dyn ByteSource>> {
    let bytes: Vec<Vec<u8>> = values
        .values()
        .map(|(_, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .collect();
    let views = values
        .iter()
        .zip(&bytes)
        .map(|((name, (shape, _)), bytes)| {
            (
                name,
                TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
            )
        });
    let weights = serialize(views, None).unwrap();
    let config = config_to_hf(config).to_string();
    vec![
        Rc::new(MemorySource::new("config.json", config)),
        Rc::new(MemorySource::new("model.safetensors", weights)),
    ]
}

/// Changes the model's matrices inside the blocks: `change` returns the change of tensor number n, [rows, columns].
fn changed(base: &Bundle, change: impl Fn(usize, usize, usize) -> Vec<f64>) -> Bundle {
    let mut values = values(base);
    let matrices = values
        .iter_mut()
        .filter(|(name, (shape, _))| shape.len() == 2 && name.chars().any(|c| c.is_ascii_digit()));
    for (n, (_, (shape, values))) in matrices.enumerate() {
        let change = change(n, shape[0], shape[1]);
        values
            .iter_mut()
            .zip(change)
            .for_each(|(value, change)| *value = (f64::from(*value) + change) as f32);
    }
    open_model(folder(&base.config, &values)).unwrap()
}

/// Returns the difference of two models in one tensor.
fn difference(tuned: &Bundle, base: &Bundle, name: &str) -> Vec<f64> {
    let (tuned, base) = (tuned.read_f32(name).unwrap(), base.read_f32(name).unwrap());
    tuned
        .iter()
        .zip(base)
        .map(|(tuned, base)| f64::from(*tuned) - f64::from(base))
        .collect()
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Returns the eigenvalues of DᵀD, largest first, by rotations of the symmetric matrix (Jacobi, 1846).
fn squares_of_singular_values(d: &[f64], columns: usize) -> Vec<f64> {
    let n = columns;
    let mut a = vec![vec![0.0; n]; n];
    for row in d.chunks_exact(n) {
        (0..n).for_each(|i| (0..n).for_each(|j| a[i][j] += row[i] * row[j]));
    }
    for _ in 0..12 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] == 0.0 {
                    continue;
                }
                // The smaller of the two rotations, with which the sweeps converge.
                let angle = 0.5 * (2.0 * a[p][q] / (a[q][q] - a[p][p])).atan();
                let (sin, cos) = angle.sin_cos();
                for row in &mut a {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                let (before, after) = a.split_at_mut(q);
                for (x, y) in before[p].iter_mut().zip(&mut after[0]) {
                    (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[i][i].max(0.0)).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// Checks every error of the report against the written factors, merged as any adapter is, up to the rounding of that.
fn check_merged(
    extracted: &mut Extracted,
    tuned: &Bundle,
    base_files: Vec<Rc<dyn ByteSource>>,
    base: &Bundle,
) {
    let adapter = Some(sources(&written(extracted)));
    let merged = open_model_with(
        base_files,
        OpenOptions {
            adapter,
            ..OpenOptions::default()
        },
    )
    .unwrap();
    for (name, tensor) in &extracted.report.tensors {
        let (rest, all) = (
            length(&difference(tuned, &merged, name)),
            length(&difference(tuned, base, name)),
        );
        // Sums in f32, of values that are at most some ten times those of the difference.
        assert!(
            (rest / all - tensor.error).abs() < 3e-6,
            "{name}: {} stated, {} found",
            tensor.error,
            rest / all
        );
        assert!((all / tensor.norm - 1.0).abs() < 1e-12, "{name}");
    }
}

fn golden(name: &str) -> Vec<Rc<dyn ByteSource>> {
    vec![Rc::new(MemorySource::new(
        name,
        tabtune_tests::golden(name),
    ))]
}

/// Opens the files of a model.
type Opener<'a> = &'a dyn Fn() -> Vec<Rc<dyn ByteSource>>;

#[test]
fn differences_of_low_rank_come_back_from_dense_and_packed_bases() {
    let of_type = |types: &'static str| move || sources(&base(&shape(), types));
    // GPT-2 stores its matrices as [in, out], and in a GGUF file as [out, in].
    let gpt2 = || golden("gpt2.gguf");
    let models: [(&str, Opener); 4] = [
        ("f32", &of_type("f32")),
        ("f16", &of_type("f16")),
        ("q8_0", &of_type("q8_0")),
        ("gpt2", &gpt2),
    ];
    for (label, files) in models {
        let base = open_model(files()).unwrap();
        let tuned = changed(&base, |n, rows, columns| {
            product(rows, columns, 3, n, |_| 1.0)
        });
        let mut extracted = extract(&tuned, &base, &options(3)).unwrap();
        let report = &extracted.report;
        assert!(
            report.error < 1e-5 && report.tensors.values().all(|tensor| tensor.error < 1e-5),
            "{label}: {report:?}"
        );
        assert!(
            report.tensors.len() >= 8 && report.uncovered.values().all(|tensor| tensor.norm == 0.0),
            "{label}: {report:?}"
        );
        // Values merged into halves are rounded to halves.
        if label != "f16" {
            check_merged(&mut extracted, &tuned, files(), &base);
        }
    }
}

#[test]
fn errors_are_those_of_the_best_product_of_the_rank() {
    let config = ModelConfig {
        hidden_size: 64,
        intermediate_size: 96,
        head_dim: 16,
        ..shape()
    };
    let files = base(&config, "q4_0");
    let base = opened(&files);
    // A flat spectrum, the hardest, and one whose sizes fall by a third each.
    let tuned = changed(&base, |n, rows, columns| match n % 2 {
        0 => product(rows, columns, rows.min(columns), n, |_| 0.1),
        _ => product(rows, columns, rows.min(columns), n, |k| {
            0.7f64.powi(k as i32)
        }),
    });
    let squares = |name: &str| {
        squares_of_singular_values(
            &difference(&tuned, &base, name),
            tuned.shape(name).unwrap()[1],
        )
    };
    let squares: BTreeMap<String, Vec<f64>> = values(&tuned)
        .into_keys()
        .filter(|name| name.contains("_proj"))
        .map(|name| (name.clone(), squares(&name)))
        .collect();
    for rank in [1, 4, 16] {
        let mut extracted = extract(&tuned, &base, &options(rank)).unwrap();
        let (mut rest, mut all) = (0.0, 0.0);
        for (name, tensor) in &extracted.report.tensors {
            let squares = &squares[name];
            let best = squares[rank as usize..].iter().sum::<f64>() / squares.iter().sum::<f64>();
            let over = tensor.error / best.sqrt() - 1.0;
            // No product of this rank is better; f32 factors cost at most 1e-7 of the difference.
            assert!(
                (-1e-6..0.01).contains(&over),
                "rank {rank}, {name}: {} for {}, {over:.1e}",
                tensor.error,
                best.sqrt()
            );
            (rest, all) = (
                rest + (tensor.error * tensor.norm).powi(2),
                all + tensor.norm.powi(2),
            );
        }
        assert!((extracted.report.error / (rest / all).sqrt() - 1.0).abs() < 1e-12);
        check_merged(&mut extracted, &tuned, sources(&files), &base);
    }
}

#[test]
fn rank_beyond_the_matrix_is_exact_and_warned_of() {
    let base = opened(&base(&shape(), "f32"));
    let tuned = changed(&base, |n, rows, columns| {
        product(rows, columns, rows, n, |_| 0.3)
    });
    let extracted = extract(&tuned, &base, &options(20)).unwrap();
    assert!(
        extracted
            .warnings
            .iter()
            .any(|warning| warning.code.text() == "adapter.rank.large")
    );
    // The smaller side of these is 16.
    let narrow = extracted
        .report
        .tensors
        .iter()
        .filter(|(name, _)| name.contains("k_proj") || name.contains("v_proj"));
    assert!(
        narrow.clone().count() == 4 && narrow.into_iter().all(|(_, tensor)| tensor.error < 1e-6),
        "{:?}",
        extracted.report
    );
    // Equal models leave nothing to extract.
    let report = extract(&base, &base, &options(2)).unwrap().report;
    assert!(
        report.error == 0.0
            && report
                .tensors
                .values()
                .all(|tensor| tensor.error == 0.0 && tensor.norm == 0.0),
        "{report:?}"
    );
}

#[test]
fn what_has_no_factors_is_reported_with_its_share() {
    let base = opened(&base(&shape(), "f32"));
    let mut all = values(&base);
    let mut add = |name: &str, by: f32| {
        all.get_mut(name)
            .unwrap()
            .1
            .iter_mut()
            .for_each(|value| *value += by)
    };
    add("model.norm.weight", 0.5);
    add("model.embed_tokens.weight", 0.25);
    add("model.layers.1.mlp.up_proj.weight", 0.125);
    add("model.layers.0.mlp.up_proj.weight", 0.125);
    let tuned = open_model(folder(&base.config, &all)).unwrap();
    let of = ExtractOptions {
        rank: 1,
        targets: Names::many(&["q_proj", "layers.1.mlp.up_proj"]),
    };
    let mut extracted = extract(&tuned, &base, &of).unwrap();
    let ExtractReport {
        rank,
        error,
        tensors,
        uncovered,
    } = &extracted.report;
    let mut names: Vec<&String> = tensors.keys().chain(uncovered.keys()).collect();
    names.sort();
    assert!(
        *rank == 1 && *error < 1e-5 && names.into_iter().eq(&base.names()),
        "{:?}",
        extracted.report
    );
    assert_eq!(tensors.len(), 3);
    // 32 values of 1/4, 48 · 32 of 1/16, 64 · 32 of 1/64, and as many in the target.
    let squares = [
        ("model.norm.weight", 8.0),
        ("model.embed_tokens.weight", 96.0),
        ("model.layers.0.mlp.up_proj.weight", 32.0),
    ];
    for (name, square) in squares {
        let found = uncovered[name];
        // Sums of f32 are rounded by 1e-7 of the weights.
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-5;
        assert!(
            near(found.norm * found.norm, square) && near(found.share, square / 168.0),
            "{name}: {found:?}"
        );
    }
    assert_eq!(uncovered["model.layers.0.mlp.down_proj.weight"].share, 0.0);
    let settings: serde_json::Value = serde_json::from_slice(
        &written(&mut extracted)
            .into_iter()
            .find(|(name, _)| name == "adapter_config.json")
            .unwrap()
            .1,
    )
    .unwrap();
    assert_eq!(
        (&settings["r"], &settings["lora_alpha"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        settings["target_modules"],
        json!(["layers.1.mlp.up_proj", "q_proj"])
    );
    let again = written(&mut extract(&tuned, &base, &of).unwrap());
    assert!(
        again == written(&mut extract(&tuned, &base, &of).unwrap()),
        "two extractions differ"
    );
}

#[test]
fn extraction_refuses_what_it_cannot_compare() {
    let base = opened(&base(&shape(), "q8_0"));
    let code =
        |tuned: &Bundle, of: &ExtractOptions| extract(tuned, &base, of).map(|_| ()).unwrap_err();
    let wide = opened(&crate::adapter::base(
        &ModelConfig {
            intermediate_size: 96,
            ..shape()
        },
        "f32",
    ));
    let error = code(&wide, &options(2));
    assert_eq!(error.code(), "extract.shape");
    // All of them at once.
    assert!(
        error.to_string().contains("layers.1.mlp.up_proj")
            && error.to_string().contains("layers.0.mlp.down_proj"),
        "{error}"
    );
    // The same tensors, and other heads.
    let heads = opened(&crate::adapter::base(
        &ModelConfig {
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 16,
            ..shape()
        },
        "f32",
    ));
    assert_eq!(code(&heads, &options(2)).code(), "extract.shape");
    let mut broken = values(&base);
    broken.get_mut("model.norm.weight").unwrap().1[3] = f32::NAN;
    broken
        .get_mut("model.layers.1.self_attn.q_proj.weight")
        .unwrap()
        .1[5] = f32::INFINITY;
    let broken = open_model(folder(&base.config, &broken)).unwrap();
    let error = code(&broken, &options(2));
    assert_eq!(error.code(), "model.non-finite");
    assert!(
        error.to_string().contains("model.norm.weight") && error.to_string().contains("q_proj"),
        "{error}"
    );
    let of = |rank: u64, name: &str| ExtractOptions {
        rank,
        targets: Names::many(&[name]),
    };
    assert_eq!(
        code(&base, &of(2, "nothing")).code(),
        "adapter.target.unknown"
    );
    assert_eq!(
        code(&base, &of(2, "embed_tokens")).code(),
        "adapter.target.unsupported"
    );
    // A rank of zero, and one that no matrix has: 32 is the smaller side of the largest.
    assert!(
        [0, 33]
            .into_iter()
            .all(|rank| code(&base, &options(rank)).code() == "config.invalid")
    );
}

#[test]
fn extraction_tells_its_progress_and_ends_when_asked() {
    let base = opened(&base(&shape(), "q8_0"));
    let tuned = changed(&base, |n, rows, columns| {
        product(rows, columns, 2, n, |_| 1.0)
    });
    let mut told = Vec::new();
    block_on(extract_adapter(
        &tuned,
        &base,
        &options(2),
        &Interrupt::none(),
        &mut |done, total| told.push((done, total)),
    ))
    .unwrap();
    let total = told[0].1;
    assert!(
        told.is_sorted() && told[0].0 == 0 && told.last() == Some(&(total, total)),
        "{told:?}"
    );
    let interrupt = Interrupt::none();
    let asked = &mut |done: u64, total: u64| {
        if done > total / 2 {
            interrupt.request()
        }
    };
    let result = block_on(extract_adapter(
        &tuned,
        &base,
        &options(2),
        &interrupt,
        asked,
    ));
    assert_eq!(result.map(|_| ()).unwrap_err().code(), "call.aborted");
}
