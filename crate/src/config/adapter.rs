//! Settings of a low-rank adapter (LoRA, arXiv:2106.09685), with the meaning that Python PEFT gives them.

use super::adapter_values::{Bias, Init, Layers, Names, Table};
use super::declare::{settings, words};
use super::hyperparameters::POSITIVE_F32;
use super::optimizer_kind::Range;
use super::patterns::{BlockPattern, Pattern, check_count, check_length};
use super::rules::{Rules, is_positive_f32};
use crate::error::{Error, Fault, Result};

/// Maximum rank of a module's factors.
pub(crate) const MAX_RANK: u64 = 65_536;
/// Value of `target_modules` that means every matrix inside the blocks.
const ALL_LINEAR: &str = "all-linear";

settings! {
    /// Settings of LoRA factors that are trained on a frozen base: y = x Wᵀ + scale · x Aᵀ Bᵀ with A [r, in] and B
    /// [out, r]. The names are PEFT's, where `alpha`, `dropout`, `rslora` and `init` are called `"lora_alpha"`,
    /// `"lora_dropout"`, `"use_rslora"` and
    /// `"init_lora_weights"`.
    pub struct AdapterConfig {
        /// Rank of the factors, from 1 to 65,536.
        r: u64 = 8,
        /// Numerator of the adapter's scale, > 0: the product of the factors is multiplied by alpha / r.
        alpha: f64 = 8.0,
        /// Modules that get factors, which are matrices inside the blocks: a list of names, or of their ends after a
        /// dot; or one text, which is
        /// `"all-linear"` or a regular expression of whole names. If absent, `"q_proj"` and `"v_proj"`; for GPT-2
        /// `"c_attn"`.
        target_modules: Option<Names> = None,
        /// Modules that get no factors although they are targets: a list of names or of their ends, or one regular
        /// expression of whole names.
        exclude_modules: Option<Names> = None,
        /// Numbers of the blocks that get factors, counted from 0: one number or a list; all blocks if absent. Requires
        /// `target_modules` to be a list, whose whole names are exempt.
        layers_to_transform: Option<Layers> = None,
        /// Regular expression, or a list of them, for the part of a name that precedes the number of a block; any part
        /// if absent. Requires
        /// `layers_to_transform`.
        layers_pattern: Option<Names> = None,
        /// Ranks that replace `r` in some modules, from 1 to 65,536. A key is a regular expression that matches a whole
        /// name, or its end after a dot; the first key that matches counts.
        #[cfg_attr(
            feature = "schema",
            schemars(with = "std::collections::BTreeMap<String, u64>")
        )]
        rank_pattern: Table<u64> = Table::default(),
        /// Values that replace `alpha` in some modules, with keys as in `rank_pattern`. The two tables are searched
        /// independently.
        #[cfg_attr(
            feature = "schema",
            schemars(with = "std::collections::BTreeMap<String, f64>")
        )]
        alpha_pattern: Table<f64> = Table::default(),
        /// Dropout probability of the inputs of the factors in training: 0 ≤ p < 1.
        dropout: f64 = 0.0,
        /// Scale by alpha / √r (rsLoRA, arXiv:2312.03732) instead of alpha / r.
        rslora: bool = false,
        /// Modules that are trained in full, given by the ends of their names: norms, and an embedding or a head that
        /// is not tied.
        modules_to_save: Option<Vec<String>> = None,
        /// Initial values of A: true for uniform in ±1/√in, `"gaussian"` for normal with standard deviation 1/r. B
        /// starts at 0.
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value", extend("enum" = [true, "gaussian"])))]
        init: Init = Init::Uniform,
        /// Biases of the base that are trained; none is the only choice.
        bias: Bias = Bias::None,
    }
}

words! {
    /// Storage type of the base's weights while an adapter is trained. Arithmetic is f32.
    pub enum BaseStorage {
        /// As in the file: 2-byte values and quantized blocks are not widened.
        #[default]
        Stored,
        /// bf16, 2 bytes a weight.
        Bf16,
        /// f32, 4 bytes a weight.
        F32,
    }
}

/// Returns true if a text of `target_modules` means every matrix inside the blocks. As in PEFT, case does not matter.
pub(crate) fn is_all_linear(text: &str) -> bool {
    text.eq_ignore_ascii_case(ALL_LINEAR)
}

/// The factor of the product of two factors: alpha / r, or alpha / √r with `rslora`.
pub(crate) fn adapter_scale(rank: u64, alpha: f64, rslora: bool) -> f64 {
    // At most 65,536, so exact in f64.
    let rank = rank as f64;
    alpha / if rslora { rank.sqrt() } else { rank }
}

#[doc(hidden)]
impl AdapterConfig {
    /// The rules that these values break; keys begin with `adapter.`.
    pub fn faults(&self) -> Vec<Fault> {
        let mut rules = Rules::of("adapter");
        let ranks = (1..=MAX_RANK).contains(&self.r);
        rules.check(
            ranks,
            "r",
            format!("an integer from 1 to {MAX_RANK}"),
            self.r,
        );
        let Range(rule, holds) = POSITIVE_F32;
        rules.check(holds(self.alpha), "alpha", rule, self.alpha);
        rules.check(
            (0.0..1.0).contains(&(self.dropout as f32)),
            "dropout",
            "0 ≤ p < 1 in f32",
            self.dropout,
        );
        for (name, rank) in &self.rank_pattern.0 {
            rules.check(
                (1..=MAX_RANK).contains(rank),
                "rank_pattern",
                format!("integers from 1 to {MAX_RANK}"),
                format!("{name}: {rank}"),
            );
        }
        for (name, alpha) in &self.alpha_pattern.0 {
            rules.check(
                is_positive_f32(*alpha),
                "alpha_pattern",
                "numbers that are finite and > 0 in f32",
                format!("{name}: {alpha}"),
            );
        }
        self.check_layers(&mut rules);
        self.check_patterns(&mut rules);
        rules.faults
    }

    /// Checks that blocks are chosen for lists of targets only, as in PEFT: a regular expression can select blocks by
    /// itself.
    fn check_layers(&self, rules: &mut Rules<'_>) {
        let text = matches!(self.target_modules, Some(Names::One(_)));
        let layers = self.layers().map(|numbers| format!("{numbers:?}"));
        let pattern = self.layer_patterns().map(|patterns| patterns.join(", "));
        for (key, given) in [
            ("layers_to_transform", &layers),
            ("layers_pattern", &pattern),
        ] {
            if let Some(given) = given {
                rules.check(!text, key, "absent unless target_modules is a list", given);
            }
        }
        if let Some(pattern) = pattern {
            rules.check(
                layers.is_some(),
                "layers_pattern",
                "absent without layers_to_transform",
                pattern,
            );
        }
    }

    fn check_patterns(&self, rules: &mut Rules<'_>) {
        let mut all: Vec<(&str, Result<()>)> = Vec::new();
        let one = |kind: fn(&str, &str) -> Result<Pattern>, key: &str, text: &str| {
            kind(key, text).map(drop)
        };
        for (key, names) in [
            ("target_modules", &self.target_modules),
            ("exclude_modules", &self.exclude_modules),
        ] {
            match names {
                Some(names) if names.is_empty() => {
                    rules.check(false, key, "at least one name, or absent", "none")
                }
                Some(Names::One(text)) if key == "target_modules" && is_all_linear(text) => {}
                Some(Names::One(text)) => all.push((key, one(Pattern::whole, key, text))),
                Some(Names::Many(list)) => {
                    all.push((key, check_count(key, list.len())));
                    all.extend(list.iter().map(|name| (key, check_length(key, name))));
                }
                None => {}
            }
        }
        for (key, texts) in self.tables() {
            all.push((key, check_count(key, texts.len())));
            let checked = texts.into_iter().map(|text| one(Pattern::end, key, text));
            all.extend(checked.map(|result| (key, result)));
        }
        let key = "layers_pattern";
        all.extend(
            self.layer_patterns()
                .into_iter()
                .flatten()
                .map(|text| (key, BlockPattern::new(key, Some(text)).map(drop))),
        );
        let key = "modules_to_save";
        let saved = self.modules_to_save.as_deref().unwrap_or_default();
        rules.check(
            saved.iter().all(|name| !name.is_empty()),
            key,
            "names that are not empty",
            "an empty one",
        );
        all.push((key, check_count(key, saved.len())));
        all.extend(
            saved
                .iter()
                .map(|text| (key, one(Pattern::part, key, text))),
        );
        for (key, result) in all {
            if let Err(Error::Refused(list)) = result {
                for refusal in list {
                    rules.check(
                        false,
                        key,
                        refusal.expected.unwrap_or_default(),
                        refusal.found.unwrap_or_default(),
                    );
                }
            }
        }
    }

    /// The patterns of the two tables, with the keys of these.
    pub(super) fn tables(&self) -> [(&'static str, Vec<&str>); 2] {
        [
            ("rank_pattern", self.rank_pattern.texts()),
            ("alpha_pattern", self.alpha_pattern.texts()),
        ]
    }

    /// The blocks that the settings are limited to; an empty list limits nothing.
    pub(super) fn layers(&self) -> Option<&[u64]> {
        self.layers_to_transform
            .as_ref()
            .map(Layers::numbers)
            .filter(|numbers| !numbers.is_empty())
    }

    /// The patterns of the part before the number of a block; an empty list or text means any part.
    pub(super) fn layer_patterns(&self) -> Option<&[String]> {
        self.layers_pattern
            .as_ref()
            .filter(|patterns| !patterns.is_empty())
            .map(Names::texts)
    }
}
