//! PEFT's `adapter_config.json`: the requirements on a LoRA adapter (crate/FORMATS.md, "PEFT adapter").

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fields::{Fields, alpha_of, names, rank, targets_of, typed};
use crate::bundle::files::MAX_DOCUMENT_BYTES;
use crate::bundle::json_document::parsed;
use crate::config::{AdapterConfig, Init, Layers, Names, Pattern, Table, ends};
use crate::error::{Error, Refusal, Result, Warning, add_warning, word};
use crate::families::Targets;
use crate::formats::{ByteSource, Digest, Json, json_typed, read_document};

/// Largest `adapter_config.json` whose unknown fields are kept: as values they take many times the memory of their text.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// Fields that name the base.
pub(super) const BASE_NAMES: [&str; 2] = ["base_model_name_or_path", "revision"];

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

/// Contents of a plain LoRA's `adapter_config.json`, under PEFT's names.
#[derive(Debug, Clone)]
pub struct LoraConfig {
    /// Rank of a pair.
    pub r: u64,
    /// Numerator of the scale: the product is multiplied by this over the rank.
    pub lora_alpha: f64,
    /// True if the scale is alpha / √r (arXiv:2312.03732) instead of alpha / r.
    pub use_rslora: bool,
    /// Ranks of the modules that match a pattern; the first match counts.
    pub rank_pattern: Vec<(Pattern, u64)>,
    /// Values of alpha of the modules that match a pattern; the first match counts.
    pub alpha_pattern: Vec<(Pattern, f64)>,
    /// Modules with a pair.
    pub target_modules: Targets,
    /// Modules without a pair although they are targets: a pair of theirs in the file is not used. The following fields up to `gaussian` are
    /// for training: merging follows the tensors.
    pub exclude_modules: Option<Names>,
    /// Part of a name that the number of a block follows.
    pub layers_pattern: Option<Names>,
    /// Share of a target's inputs that its pair does not see in training.
    pub lora_dropout: f64,
    /// True if A was initialised with normal noise.
    pub gaussian: bool,
    /// Modules that are stored in full, by the ends of their names.
    pub modules_to_save: Vec<String>,
    /// True if the base's weights are `[in, out]`. It is informative only: like PEFT, merging looks at the base, where GPT-2 alone has such
    /// weights.
    pub fan_in_fan_out: bool,
    /// True if a change of the input embedding also applies to a head that is tied to it.
    pub ensure_weight_tying: bool,
    /// Numbers of the blocks whose modules have a pair; `None` means all.
    pub layers_to_transform: Option<BTreeSet<u64>>,
    /// Digest of the base's weights, if the adapter states it. PEFT does not.
    pub base_weights_digest: Option<Digest>,
    /// Unknown fields, which a new adapter that continues from this one keeps, and those that name the base unless it is another one.
    pub unknown: Map<String, Value>,
    /// Warnings about the unknown fields.
    pub warnings: Vec<Warning>,
}

impl LoraConfig {
    /// Reads `adapter_config.json`.
    ///
    /// # Errors
    /// `source.too-large`, errors of reading, and `adapter.*` for an adapter that is not a plain LoRA, in the order of crate/FORMATS.md; the
    /// subject is the path of the field.
    pub fn open(source: &dyn ByteSource) -> Result<Self> {
        let bytes = read_document(source, MAX_DOCUMENT_BYTES)?;
        read(&bytes).map_err(|error| error.in_file(source.name()))
    }

    /// The contents as settings of training.
    pub fn settings(&self) -> AdapterConfig {
        fn table<T: Copy>(patterns: &[(Pattern, T)]) -> Table<T> {
            let rows = patterns.iter();
            let row = |(pattern, value): &(Pattern, T)| (pattern.text().to_string(), *value);
            Table(rows.map(row).collect())
        }
        let layers = self.layers_to_transform.as_ref();
        AdapterConfig {
            r: self.r,
            alpha: self.lora_alpha,
            target_modules: Some(self.target_modules.names()),
            exclude_modules: self.exclude_modules.clone(),
            layers_to_transform: layers
                .map(|layers| Layers::Many(layers.iter().copied().collect())),
            layers_pattern: self.layers_pattern.clone(),
            rank_pattern: table(&self.rank_pattern),
            alpha_pattern: table(&self.alpha_pattern),
            dropout: self.lora_dropout,
            rslora: self.use_rslora,
            modules_to_save: (!self.modules_to_save.is_empty())
                .then(|| self.modules_to_save.clone()),
            init: if self.gaussian {
                Init::Gaussian
            } else {
                Init::Uniform
            },
            ..AdapterConfig::default()
        }
    }

    /// Lists those of `modules`, given with the block that each belongs to, that must not have a pair. As in PEFT, `layers_to_transform`
    /// limits modules that are named by their end.
    pub(super) fn untargeted<'a>(
        &self,
        modules: &[(&'a str, Option<usize>)],
    ) -> Result<BTreeSet<&'a str>> {
        let names: Vec<&str> = modules.iter().map(|(module, _)| *module).collect();
        let mut others: BTreeSet<&str> = self.target_modules.others(&names)?.into_iter().collect();
        let by_end = !matches!(self.target_modules, Targets::Pattern(_));
        if let Some(layers) = self.layers_to_transform.as_ref().filter(|_| by_end) {
            for (module, block) in modules {
                let within = block.is_some_and(|block| layers.contains(&(block as u64)));
                if !within && !self.target_modules.has_whole(module) {
                    others.insert(module);
                }
            }
        }
        Ok(others)
    }

    /// Lists those of `modules` whose pairs PEFT ignores, because `exclude_modules` or `modules_to_save` names them, and the patterns that
    /// cannot be read, each with its key.
    pub(super) fn spared<'a>(&self, modules: &[&'a str]) -> (BTreeSet<&'a str>, Vec<String>) {
        let (mut spared, mut unread) = (BTreeSet::new(), Vec::new());
        // One pattern is compiled at a time, so that many of them take little memory.
        let (exclude, save) = ("exclude_modules", "modules_to_save");
        let excluded = match &self.exclude_modules {
            Some(Names::One(text)) if !text.is_empty() => Some(text),
            _ => None,
        };
        let whole = excluded.map(|text| (exclude, text, Pattern::whole(exclude, text)));
        let saved = self.modules_to_save.iter();
        let parts = saved.map(|text| (save, text, Pattern::part(save, text)));
        for (key, text, pattern) in whole.into_iter().chain(parts) {
            match pattern.and_then(|pattern| pattern.prepared()) {
                Ok(matches) => spared.extend(modules.iter().filter(|module| matches(module))),
                Err(_) => unread.push(format!("{text} in {key}")),
            }
        }
        if let Some(Names::Many(list)) = &self.exclude_modules {
            let list: BTreeSet<&str> = list.iter().map(String::as_str).collect();
            let listed = |module: &&&str| ends(module).any(|end| list.contains(end));
            spared.extend(modules.iter().filter(listed));
        }
        (spared, unread)
    }
}

/// Adds to a refusal that an adapter of MLX was found, and the way out.
pub(super) fn of_mlx(refusal: Refusal) -> Refusal {
    refusal
        .found("an adapter of MLX")
        .hint("merge it with mlx_lm.fuse and open the result, or save its pairs transposed under PEFT's names")
}

/// Reads the bytes of an `adapter_config.json`, with the errors of [`LoraConfig::open`].
pub(super) fn read(bytes: &[u8]) -> Result<LoraConfig> {
    let codes = [
        word!("adapter.json"),
        word!("adapter.depth"),
        word!("adapter.key.duplicate"),
    ];
    let document = parsed(bytes, codes, Some("peft_type"))?;
    let has = |key: &str| document.get(key).is_some();
    if !has("peft_type") && (has("lora_parameters") || has("fine_tune_type")) {
        let refusal = Refusal::new(word!("format.unsupported"));
        return Err(of_mlx(refusal.expected("PEFT's adapter_config.json")).into());
    }
    let entries = document
        .object()
        .ok_or_else(|| Refusal::new(word!("adapter.field.type")).expected("an object"))?;
    let fields = Fields(document);
    let need = |key: &str| {
        let absent = Refusal::new(word!("adapter.field.missing")).subject(key);
        fields.get(key).ok_or_else(|| Error::from(absent))
    };
    let (kind, r) = (need("peft_type")?, need("r")?);
    let (alpha, targets) = (need("lora_alpha")?, need("target_modules")?);
    let word = kind.text().ok_or_else(|| typed("peft_type", "text"))?;
    if word != "LORA" {
        return Err(Refusal::new(word!("adapter.type.unsupported"))
            .subject(&word)
            .expected("LORA")
            .into());
    }
    let r = rank("r", r)?;
    let rank_pattern = fields.pattern("rank_pattern", rank)?;
    let lora_alpha = alpha_of("lora_alpha", alpha)?;
    let alpha_pattern = fields.pattern("alpha_pattern", alpha_of)?;
    let start = fields.get("init_lora_weights").and_then(Json::text);
    fields.check_features(start.as_deref().unwrap_or_default())?;
    let target_modules = targets_of(targets)?;
    let (mut warnings, mut unknown) = (Vec::new(), Map::new());
    for (key, value) in entries.filter(|(key, _)| !KNOWN.contains(&key.as_ref())) {
        add_warning(&mut warnings, word!("adapter.field.unknown"), &key);
        if bytes.len() <= MAX_KEPT_BYTES {
            let refuse = || Refusal::new(word!("adapter.json")).subject(&key);
            let value = json_typed(value, &key).map_err(|wrong| refuse().found(wrong.found))?;
            unknown.insert(key.into_owned(), value);
        }
    }
    // These fields name the base until another name is given.
    for key in BASE_NAMES {
        let named = fields.text(key)?;
        unknown.extend(named.map(|name| (key.to_string(), Value::String(name))));
    }
    Ok(LoraConfig {
        r,
        lora_alpha,
        use_rslora: fields.flag("use_rslora")?,
        rank_pattern,
        alpha_pattern,
        target_modules,
        exclude_modules: fields.names("exclude_modules")?,
        layers_pattern: fields.names("layers_pattern")?,
        lora_dropout: fields.number("lora_dropout")?,
        gaussian: start.as_deref() == Some("gaussian"),
        modules_to_save: match fields.get("modules_to_save") {
            Some(value) => names("modules_to_save", value)?,
            None => Vec::new(),
        },
        fan_in_fan_out: fields.flag("fan_in_fan_out")?,
        ensure_weight_tying: fields.flag("ensure_weight_tying")?,
        layers_to_transform: fields.layers()?,
        base_weights_digest: fields.digest("base_weights_digest")?,
        unknown,
        warnings,
    })
}
