//! Arguments of `tabtune estimate`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::SettingsArgs;

/// Arguments of `estimate`. Settings that do not affect memory are accepted too, so that a run's options can be passed unchanged.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("shape").required(true).args(["model", "config"])))]
pub struct EstimateArgs {
    /// GGUF file, safetensors folder or checkpoint folder. Only its headers are read, not its weights.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Hugging Face config.json, for a model without weights.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Type of the matrices of an adapter's base, as `convert --type` names it, such as q4_k_m [default: the type in the files of --model;
    /// f32 for --config].
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Option<String>,
    /// Folder of a PEFT LoRA adapter to continue training, separate from --model.
    #[arg(long, value_name = "DIR", requires = "model", conflicts_with = "lora")]
    pub adapter: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsArgs,
}
