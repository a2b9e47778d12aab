//! The options of `tabtune estimate`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::SettingsArgs;

/// `estimate`. Settings that decide no byte may be given all the same: those of the run that is asked about.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("shape").required(true).args(["model", "config"])))]
pub struct EstimateArgs {
    /// GGUF file, safetensors folder or checkpoint folder; its headers are read, and no weights.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Hugging Face config.json of a model that is not there.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Type of the matrices of the base beside an adapter, in the words of `convert --type`, such as q4_k_m [default: that in the files of
    /// --model; f32 of a --config].
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Option<String>,
    /// Folder of a LoRA adapter of PEFT that is trained on beside --model.
    #[arg(long, value_name = "DIR", requires = "model", conflicts_with = "lora")]
    pub adapter: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsArgs,
}
