//! `tabtune-dev check`: runs reference cases through the real model, tokenizer, loss, gradients and trainer.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_lite::future::block_on;
use safetensors::SafeTensors;
use serde_json::{Map, Value, json};
use tabtune::Error;
use tabtune::config::{BaseStorage, Precision};
use tabtune::device::Device;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::Tokenizer;

use crate::CheckArgs;
use crate::oracle::judge::{Subject, judge, unsupported};
use crate::oracle::lora::{LoraCase, describe as describe_adapter, judge_lora};
use crate::oracle::{Case, Oracle, Task, Verdict};
use tabtune_native::commands::{Outcome, load_model, open_device};
use tabtune_native::error::{Result, RunError, unreadable};
use tabtune_native::files::{Wanted, open_wanted, read_file, read_json};
use tabtune_native::output::Output;

/// Assets that only `fetch-assets.sh --full` provides, so their absence is not a failure.
const FULL_ASSETS: [&str; 2] = ["smollm2/hf", "smollm2/SmolLM2-135M-Instruct.F16.gguf"];

/// Result of a case.
enum Judgement {
    Judged(Verdict),
    /// Result for a model with a separate adapter: the comparison, and additional fields of its line.
    OfAdapter(Verdict, Map<String, Value>),
    Skipped(String),
}

/// Prints one line per case and one of totals. Returns `Bad` if a case failed.
///
/// # Errors
/// `source.read` and `cli.json` for the file of cases, `cli.usage` if `--only` matches none, and errors of the device.
pub fn run(args: &CheckArgs, output: &Output) -> Result<Outcome> {
    let document = read_json(&args.oracle)?;
    let oracle: Oracle = serde_json::from_value(document).map_err(|e| RunError::Json {
        name: args.oracle.display().to_string(),
        reason: e.to_string(),
    })?;
    let id_of = |case: &Value| case["id"].as_str().unwrap_or("?").to_string();
    let asked = |id: &str| {
        args.only.is_empty()
            || args
                .only
                .iter()
                .any(|want| id == want || id.starts_with(&format!("{want}.")))
    };
    let cases: Vec<Value> = oracle
        .cases
        .into_iter()
        .filter(|case| asked(&id_of(case)))
        .collect();
    if cases.is_empty() {
        return Err(RunError::Usage(format!(
            "--only {}: no such case",
            args.only.join(" ")
        )));
    }
    let mut bench = Bench {
        assets: args.assets.clone(),
        device: open_device(args.device)?,
        base_storage: args.base_storage.into(),
        model: None,
        tokenizers: HashMap::new(),
    };
    let (count, mut failed, mut skipped) = (cases.len(), 0, 0);
    for case in cases {
        let clock = Instant::now();
        let mut line = Map::new();
        line.insert("id".into(), case["id"].clone());
        line.insert("kind".into(), case["kind"].clone());
        let judgement = bench.judge(case);
        match &judgement {
            Ok(Judgement::Skipped(_)) => skipped += 1,
            Ok(Judgement::Judged(verdict) | Judgement::OfAdapter(verdict, _)) if verdict.ok() => {}
            _ => failed += 1,
        }
        describe(&judgement, &mut line);
        line.insert("secs".into(), json!(clock.elapsed().as_secs_f64()));
        output.line(&line, || readable(&line))?;
    }
    let totals = json!({ "cases": count, "failed": failed, "skipped": skipped });
    output.line(&totals, || {
        format!("{count} cases, {failed} failed, {skipped} skipped")
    })?;
    Ok(if failed == 0 {
        Outcome::Good
    } else {
        Outcome::Bad
    })
}

fn describe(judgement: &Result<Judgement>, line: &mut Map<String, Value>) {
    match judgement {
        Ok(Judgement::Skipped(reason)) => {
            line.insert("skipped".into(), json!(reason));
        }
        Ok(Judgement::Judged(verdict) | Judgement::OfAdapter(verdict, _)) => {
            if let Ok(Judgement::OfAdapter(_, more)) = judgement {
                line.extend(more.clone());
            }
            line.insert("ok".into(), json!(verdict.ok()));
            if let Some(worst) = verdict.worst() {
                line.insert("error".into(), json!(worst.error));
                line.insert("bound".into(), json!(worst.bound));
                line.insert("measure".into(), json!(worst.name));
            }
            let out: Vec<Value> = verdict
                .failures()
                .map(|m| json!({ "measure": m.name, "error": m.error, "bound": m.bound }))
                .take(16)
                .collect();
            if !out.is_empty() {
                line.insert("out_of_bounds".into(), out.into());
            }
        }
        Err(error) => {
            line.insert("ok".into(), json!(false));
            line.insert("error".into(), Value::Null);
            line.insert("bound".into(), Value::Null);
            line.insert("code".into(), json!(error.code()));
            line.insert("message".into(), json!(error.to_string()));
        }
    }
}

fn readable(line: &Map<String, Value>) -> String {
    let text = |key: &str| {
        line.get(key).map_or_else(String::new, |v| {
            v.as_str().map_or_else(|| v.to_string(), str::to_string)
        })
    };
    let id = text("id");
    if line.contains_key("skipped") {
        return format!("skip {id}: {}", text("skipped"));
    }
    if line.contains_key("message") {
        return format!("FAIL {id}: {}", text("message"));
    }
    let word = if line["ok"] == json!(true) {
        "ok  "
    } else {
        "FAIL"
    };
    format!(
        "{word} {id}: {} off by {}, allowed {} ({:.1} s)",
        text("measure"),
        text("error"),
        text("bound"),
        line["secs"].as_f64().unwrap_or(0.0)
    )
}

/// State that the cases share: the device, and the model of the last case.
struct Bench {
    assets: PathBuf,
    device: Device,
    /// Storage of the base of a separate adapter.
    base_storage: BaseStorage,
    /// Path of the model, path of its adapter, and the model with the adapter merged.
    model: Option<(String, Option<String>, Model)>,
    tokenizers: HashMap<String, Tokenizer>,
}

impl Bench {
    fn judge(&mut self, case: Value) -> Result<Judgement> {
        if case["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("lora_"))
        {
            return self.judge_adapter(case);
        }
        let case: Case = serde_json::from_value(case).map_err(|e| RunError::Json {
            name: "case".into(),
            reason: e.to_string(),
        })?;
        if let Some(reason) = unsupported(&case.task) {
            return Ok(Judgement::Skipped(reason));
        }
        if FULL_ASSETS.contains(&case.model.as_str()) && !self.assets.join(&case.model).exists() {
            return Ok(Judgement::Skipped(format!(
                "asset absent: {} (fetch-assets.sh --full)",
                case.model
            )));
        }
        let text = match &case.task {
            Task::Ce { text, .. } | Task::Grad { text, .. } | Task::Train { text, .. } => {
                read_text(&self.assets.join(text))?
            }
            Task::Next { .. } | Task::Greedy { .. } => String::new(),
        };
        let gradients = match &case.task {
            Task::Grad { expect, .. } => expect
                .gradients
                .as_ref()
                .map(|path| read_gradients(&self.assets.join(path)))
                .transpose()?,
            _ => None,
        };
        self.load(&case)?;
        let absent = || unreadable(&case.model, "not loaded");
        let (.., model) = self.model.as_ref().ok_or_else(absent)?;
        let tokenizer = self.tokenizers.get(&case.tokenizer).ok_or_else(absent)?;
        Ok(Judgement::Judged(block_on(judge(
            &case.task,
            &Subject {
                model,
                merged: case.lora.is_some(),
                tokenizer,
                text: &text,
                gradients,
            },
        ))?))
    }

    /// Runs a case of a model with a separate adapter.
    fn judge_adapter(&mut self, case: Value) -> Result<Judgement> {
        let case: LoraCase = serde_json::from_value(case).map_err(|e| RunError::Json {
            name: "case".into(),
            reason: e.to_string(),
        })?;
        if let Some(feature) = case.feature {
            return Ok(Judgement::Skipped(format!("{feature} is refused")));
        }
        let text = read_text(&self.assets.join(case.task.text()))?;
        self.load_tokenizer(&case.tokenizer)?;
        self.model = None;
        let lora = self.assets.join(&case.lora);
        let bundle = open_wanted(
            &self.assets.join(&case.model),
            Wanted {
                adapter: Some(&lora),
                apart: true,
                ..Wanted::default()
            },
        )?;
        let settings = bundle
            .attached()
            .ok_or_else(|| unreadable(&case.lora, "no factors"))?
            .settings();
        let model = block_on(Model::for_inference(
            &bundle,
            self.base_storage,
            &self.device.inner(),
            &Interrupt::none(),
        ))?;
        let tokenizer = self
            .tokenizers
            .get(&case.tokenizer)
            .ok_or_else(|| unreadable(&case.tokenizer, "not loaded"))?;
        let subject = Subject {
            model: &model,
            merged: false,
            tokenizer,
            text: &text,
            gradients: None,
        };
        let judged = block_on(judge_lora(&case.task, &subject, &settings))?;
        let mut more = Map::new();
        describe_adapter(&model, judged.digest, &mut more);
        Ok(Judgement::OfAdapter(judged.verdict, more))
    }

    fn load_tokenizer(&mut self, path: &str) -> Result<()> {
        if !self.tokenizers.contains_key(path) {
            let bytes = read_file(&self.assets.join(path))?;
            self.tokenizers
                .insert(path.to_string(), Tokenizer::from_hf(&bytes, None, None)?);
        }
        Ok(())
    }

    fn load(&mut self, case: &Case) -> Result<()> {
        self.load_tokenizer(&case.tokenizer)?;
        if self
            .model
            .as_ref()
            .is_none_or(|(path, lora, _)| (path, lora) != (&case.model, &case.lora))
        {
            // The old weights are freed before the new ones are loaded.
            self.model = None;
            let adapter = case.lora.as_ref().map(|lora| self.assets.join(lora));
            let bundle = open_wanted(
                &self.assets.join(&case.model),
                Wanted {
                    adapter: adapter.as_deref(),
                    ..Wanted::default()
                },
            )?;
            self.model = Some((
                case.model.clone(),
                case.lora.clone(),
                load_model(&bundle, Precision::F32, &self.device)?,
            ));
        }
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<String> {
    Ok(String::from_utf8(read_file(path)?).map_err(|error| {
        let (at, file) = (error.utf8_error().valid_up_to(), path.display().to_string());
        Error::DataEncoding {
            file,
            byte_offset: at,
            byte: error.as_bytes().get(at).copied().unwrap_or_default(),
            looks_like: None,
        }
    })?)
}

/// Reads the tensors of an f32 safetensors file.
fn read_gradients(path: &Path) -> Result<BTreeMap<String, Vec<f32>>> {
    let bytes = read_file(path)?;
    let file =
        SafeTensors::deserialize(&bytes).map_err(|e| unreadable(path.display(), e.to_string()))?;
    let floats = |data: &[u8]| {
        data.chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    };
    Ok(file
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, floats(view.data())))
        .collect())
}
