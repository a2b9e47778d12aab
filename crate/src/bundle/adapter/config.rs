//! `adapter_config.json` of PEFT: what a LoRA adapter must say (crate/FORMATS.md, "PEFT adapter").

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::targets::{Pattern, Targets, check_length};
use crate::bundle::digest::Digest;
use crate::bundle::index::MAX_DEPTH;
use crate::bundle::json::{self, Json, JsonFault};
use crate::bundle::refusal::{Warning, add_warning};
use crate::bundle::source::{ByteSource, read_document};
use crate::error::{Error, Refusal, Result, word};

const MAX_RANK: u64 = 65_536;
/// Maximum number of patterns, names or numbers in a field: more than the largest model has matrices in its blocks.
const MAX_PATTERNS: usize = 4_096;
/// Largest `adapter_config.json`.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Fields of PEFT's LoraConfig, and the digest of the base that this crate reads.
const KNOWN: [&str; 39] = [
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "auto_mapping",
    "base_model_name_or_path",
    "base_weights_digest",
    "bias",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "init_lora_weights",
    "layer_replication",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_bias",
    "lora_dropout",
    "megatron_config",
    "megatron_core",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "target_parameters",
    "task_type",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "use_rslora",
];

/// What a plain LoRA's `adapter_config.json` says, under PEFT's names.
#[derive(Debug, Clone)]
pub struct LoraConfig {
    /// Rank of a pair.
    pub r: u64,
    /// The product is scaled by this over the rank.
    pub lora_alpha: f64,
    /// Scale by alpha / √r (arXiv:2312.03732) instead of alpha / r.
    pub use_rslora: bool,
    /// Ranks of the modules that a pattern matches; the first match counts.
    pub rank_pattern: Vec<(Pattern, u64)>,
    /// The same for alpha.
    pub alpha_pattern: Vec<(Pattern, f64)>,
    /// Modules with a pair.
    pub target_modules: Targets,
    /// Modules that are stored in full, by the ends of their names.
    pub modules_to_save: Vec<String>,
    /// The base's weights are `[in, out]`. Only told: like PEFT, merging asks the base, where GPT-2 alone has such weights.
    pub fan_in_fan_out: bool,
    /// A change of the input embedding is meant for a head that is tied to it too.
    pub ensure_weight_tying: bool,
    /// What the adapter's maker called the base. It is shown and never opened.
    pub base_model_name_or_path: Option<String>,
    /// Numbers of the blocks whose modules have a pair; `None` means all.
    pub layers_to_transform: Option<BTreeSet<u64>>,
    /// Digest of the base's weights, if the adapter states it. PEFT does not.
    pub base_weights_digest: Option<Digest>,
    /// Fields that are unknown.
    pub warnings: Vec<Warning>,
}

impl LoraConfig {
    /// Reads `adapter_config.json`.
    ///
    /// # Errors
    /// `adapter.*` for an adapter that is not a plain LoRA, in the order of crate/FORMATS.md; the subject is the path of the field.
    pub fn open(source: &dyn ByteSource) -> Result<Self> {
        let bytes = read_document(source, MAX_DOCUMENT_BYTES)?;
        read(&bytes).map_err(|error| error.in_file(source.name()))
    }

    /// Those of `modules`, with the block that each stands in, that are to have no pair. Like PEFT, `layers_to_transform` limits modules that
    /// are named by their end.
    pub(super) fn untargeted<'a>(&self, modules: &[(&'a str, Option<usize>)]) -> Result<BTreeSet<&'a str>> {
        let names: Vec<&str> = modules.iter().map(|(module, _)| *module).collect();
        let mut others: BTreeSet<&str> = self.target_modules.others(&names)?.into_iter().collect();
        if let (Some(layers), false) = (&self.layers_to_transform, matches!(self.target_modules, Targets::Pattern(_))) {
            let within = |block: Option<usize>| block.is_some_and(|block| layers.contains(&(block as u64)));
            let outside = modules.iter().filter(|(module, block)| !within(*block) && !self.target_modules.has_whole(module));
            others.extend(outside.map(|(module, _)| *module));
        }
        Ok(others)
    }
}

fn read(bytes: &[u8]) -> Result<LoraConfig> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::new(word!("adapter.json")).at(e.valid_up_to() as u64))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Refusal::new(word!("adapter.json")).at(at as u64),
        JsonFault::Depth { at } => Refusal::new(word!("adapter.depth")).at(at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("adapter.key.duplicate")).subject(&path).at(at as u64),
    })?;
    let entries = document.object().ok_or_else(|| Refusal::new(word!("adapter.field.type")).expected("an object"))?;
    let fields = Fields(document);
    let need = |key: &str| fields.get(key).ok_or_else(|| Error::from(Refusal::new(word!("adapter.field.missing")).subject(key)));
    let (kind, r, alpha, targets) = (need("peft_type")?, need("r")?, need("lora_alpha")?, need("target_modules")?);
    let word = kind.text().ok_or_else(|| typed("peft_type", "text"))?;
    if word != "LORA" {
        return Err(Refusal::new(word!("adapter.type.unsupported")).subject(&word).expected("LORA").into());
    }
    let r = rank("r", r)?;
    let rank_pattern = fields.pattern("rank_pattern", rank)?;
    let lora_alpha = alpha_of("lora_alpha", alpha)?;
    let alpha_pattern = fields.pattern("alpha_pattern", alpha_of)?;
    fields.check_features()?;
    let target_modules = targets_of(targets)?;
    let mut warnings = Vec::new();
    for (key, _) in entries.filter(|(key, _)| !KNOWN.contains(&key.as_ref())) {
        add_warning(&mut warnings, word!("adapter.field.unknown"), &key);
    }
    Ok(LoraConfig {
        r,
        lora_alpha,
        use_rslora: fields.flag("use_rslora")?,
        rank_pattern,
        alpha_pattern,
        target_modules,
        modules_to_save: fields.get("modules_to_save").map(|value| names("modules_to_save", value)).transpose()?.unwrap_or_default(),
        fan_in_fan_out: fields.flag("fan_in_fan_out")?,
        ensure_weight_tying: fields.flag("ensure_weight_tying")?,
        base_model_name_or_path: fields.text("base_model_name_or_path")?,
        layers_to_transform: fields.layers()?,
        base_weights_digest: fields.digest("base_weights_digest")?,
        warnings,
    })
}

fn typed(path: &str, expected: &str) -> Refusal {
    Refusal::new(word!("adapter.field.type")).subject(path).expected(expected)
}

fn check_count(key: &str, found: usize) -> Result<()> {
    let refusal = || Refusal::new(word!("adapter.pattern.count")).subject(key).expected(format!("at most {MAX_PATTERNS}")).found(found);
    if found > MAX_PATTERNS { Err(refusal().into()) } else { Ok(()) }
}

fn rank(path: &str, value: Json<'_>) -> Result<u64> {
    let refused = || Refusal::new(word!("adapter.rank")).subject(path).expected(format!("an integer from 1 to {MAX_RANK}"));
    Ok(value.count().filter(|rank| (1..=MAX_RANK).contains(rank)).ok_or_else(refused)?)
}

fn alpha_of(path: &str, value: Json<'_>) -> Result<f64> {
    let number = if let Json::Number(digits) = value { digits.parse::<f64>().ok() } else { None };
    let refused = || Refusal::new(word!("adapter.alpha")).subject(path).expected("finite and positive");
    Ok(number.filter(|alpha| alpha.is_finite() && *alpha > 0.0).ok_or_else(refused)?)
}

/// One pattern, or a list of names.
fn targets_of(value: Json<'_>) -> Result<Targets> {
    let key = "target_modules";
    let none = || Refusal::new(word!("adapter.target.none")).subject(key);
    match value.text().as_deref() {
        Some("") => Err(none().into()),
        Some("all-linear") => Ok(Targets::AllLinear),
        Some(text) => Pattern::whole(key, text).map(Targets::Pattern),
        None => {
            let names = names(key, value)?;
            if names.is_empty() { Err(none().into()) } else { Ok(Targets::Names(names.into_iter().collect())) }
        }
    }
}

/// A list of names of modules.
fn names(key: &str, value: Json<'_>) -> Result<Vec<String>> {
    let list = value.list().ok_or_else(|| typed(key, "a list of texts"))?;
    check_count(key, list.clone().count())?;
    let name = |(at, value): (usize, Json<'_>)| {
        let path = format!("{key}/{at}");
        let text = value.text().ok_or_else(|| typed(&path, "text"))?;
        check_length(&path, &text)?;
        Ok(text.into_owned())
    };
    list.enumerate().map(name).collect()
}

/// The fields of the document.
struct Fields<'a>(Json<'a>);

impl<'a> Fields<'a> {
    /// The value of `key`, if there is one other than null.
    fn get(&self, key: &str) -> Option<Json<'a>> {
        self.0.get(key).filter(|value| *value != Json::Null)
    }

    fn flag(&self, key: &str) -> Result<bool> {
        match self.get(key) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(_) => Err(typed(key, "true or false").into()),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        let text = |value: Json<'_>| Ok(value.text().ok_or_else(|| typed(key, "text"))?.into_owned());
        self.get(key).map(text).transpose()
    }

    fn digest(&self, key: &str) -> Result<Option<Digest>> {
        let digest = |text: String| Ok(Digest::from_hex(&text).ok_or_else(|| typed(key, "a SHA-256 in lower-case hex"))?);
        self.text(key)?.map(digest).transpose()
    }

    /// One number, or a list of numbers; an empty list means all.
    fn layers(&self) -> Result<Option<BTreeSet<u64>>> {
        let key = "layers_to_transform";
        let number = |path: &str, value: Json<'_>| Ok(value.count().ok_or_else(|| typed(path, "an integer of 0 or more"))?);
        match self.get(key) {
            None => Ok(None),
            Some(value) => {
                let Some(list) = value.list() else { return number(key, value).map(|layer| Some(BTreeSet::from([layer]))) };
                check_count(key, list.clone().count())?;
                let layers = list.enumerate().map(|(at, value)| number(&format!("{key}/{at}"), value));
                layers.collect::<Result<BTreeSet<u64>>>().map(|layers| (!layers.is_empty()).then_some(layers))
            }
        }
    }

    fn pattern<T>(&self, key: &str, rule: fn(&str, Json<'_>) -> Result<T>) -> Result<Vec<(Pattern, T)>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let of = |(module, value): (Cow<'_, str>, Json<'_>)| {
            let path = format!("{key}/{module}");
            Ok((Pattern::end(&path, &module)?, rule(&path, value)?))
        };
        let entries = value.object().ok_or_else(|| typed(key, "an object"))?;
        check_count(key, entries.clone().count())?;
        entries.map(of).collect()
    }

    /// Refuses what changes the arithmetic of a plain LoRA, and ways of starting that change the base, so that the adapter fits no other.
    fn check_features(&self) -> Result<()> {
        let refuse = |key: &str| Refusal::new(word!("adapter.feature.unsupported")).subject(key);
        for key in ["use_dora", "use_qalora", "use_bdlora", "lora_bias"] {
            if self.get(key).is_some_and(|value| value != Json::Bool(false)) {
                return Err(refuse(key).into());
            }
        }
        if self.get("bias").is_some_and(|value| value.text().as_deref() != Some("none")) {
            return Err(refuse("bias").expected("none").into());
        }
        for key in ["layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens", "arrow_config"] {
            let items = |value: Json<'_>| value.list().map(Iterator::count).or_else(|| value.object().map(Iterator::count));
            if self.get(key).is_some_and(|value| items(value) != Some(0)) {
                return Err(refuse(key).into());
            }
        }
        let start = self.get("init_lora_weights").and_then(Json::text).unwrap_or_default();
        if matches!(start.as_ref(), "pissa" | "olora" | "corda" | "loftq" | "lora_ga") || start.starts_with("pissa_niter_") {
            return Err(refuse("init_lora_weights").found(start).into());
        }
        Ok(())
    }
}
