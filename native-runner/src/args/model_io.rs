//! The options of commands that convert, select, merge and verify.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What leaves the program, and how.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Folder to create, which must not exist, or be empty; with --format gguf, gguf-adapter or json the file to create, which must
    /// not exist.
    #[arg(long, value_name = "PATH")]
    pub to: PathBuf,
    /// Format of the weights.
    #[arg(long, value_enum, default_value = "safetensors")]
    pub format: ExportFormat,
    /// With --format gguf, the type of matrices: f32, f16, bf16, q8_0, q6_k, q5_1, q5_0, q4_k, q4_1, q4_0, the mixture q4_k_m, or as-base,
    /// the type that each has in the base, and without a base that of the model [default: as-base]. With --format gguf-adapter f32 or f16
    /// [default: f32].
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Option<String>,
    /// With --format safetensors, the dtype of all tensors: f32, bf16, f16, or stored, as each one is [default: stored].
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// With --format gguf, the GGUF file that training started from, or all parts of a split one: its metadata, its tokenizer and the
    /// tensors that were not trained are kept byte for byte. Without it a new file is made. Of a checkpoint of an adapter, the model that it was
    /// trained beside: needed to merge the adapter into it (--format safetensors or gguf), and for gguf-adapter.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub base: Vec<PathBuf>,
    /// Largest shard of a folder.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub shard_bytes: Option<u64>,
    /// Write the optimizer's state too, in a file of its own.
    #[arg(long)]
    pub optimizer: bool,
    /// Write the manifest: which optimizer trains which tensors.
    #[arg(long)]
    pub manifest: bool,
    /// Encode blocks of one type as another type, which loses precision a second time.
    #[arg(long)]
    pub requantise: bool,
    /// With --format json: numbers, or base64 for the stored bytes [default: numbers].
    #[arg(long, value_name = "WORD")]
    pub encoding: Option<String>,
    /// Write weights with NaN or infinity, where the format has them; with --format json that is --encoding base64.
    #[arg(long)]
    pub allow_non_finite: bool,
    #[command(flatten)]
    pub card: CardArgs,
}

/// What a person says of a model; it stands in the model card.
#[derive(Debug, Args)]
pub struct CardArgs {
    /// Name of the model.
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// License of the weights.
    #[arg(long, value_name = "TEXT")]
    pub license: Option<String>,
    /// The model that this one was made from, as a hub names it.
    #[arg(long, value_name = "TEXT")]
    pub base_model: Option<String>,
    /// What the training data are.
    #[arg(long, value_name = "TEXT")]
    pub data_note: Option<String>,
    /// More about the model.
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// Format of exported weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A Hugging Face folder.
    Safetensors,
    /// One file for llama.cpp.
    Gguf,
    /// One JSON document.
    Json,
    /// The folder of an adapter for PEFT, of a run that trains one.
    Peft,
    /// The adapter of a run that trains one, as one file for llama.cpp.
    GgufAdapter,
}

impl ExportFormat {
    /// Whether it is a folder, not one file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Safetensors | Self::Peft)
    }
}

/// `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Checkpoint folder.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Folder of a LoRA adapter of PEFT, merged into the weights.
    #[arg(long, value_name = "DIR")]
    pub merge_adapter: Option<PathBuf>,
    /// Let the adapter's embedding and head, of more rows than the base's, take their place: tokens were added before it was trained.
    #[arg(long, requires = "merge_adapter")]
    pub resize_vocabulary: bool,
    #[command(flatten)]
    pub request: RequestArgs,
}

/// What is taken of a file, and under which names.
#[derive(Debug, Default, Args)]
pub struct RequestArgs {
    /// Take the tensors whose whole names match: * any text, ? one character, {a,b} either.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub include: Vec<String>,
    /// Leave out the tensors whose whole names match.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub exclude: Vec<String>,
    /// Rename a tensor; all renamings happen at once.
    #[arg(long, value_name = "OLD=NEW", num_args = 1..)]
    pub rename: Vec<String>,
    /// JSON object of old and new names.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Rename state tensors along with their parameters.
    #[arg(long)]
    pub rename_state: bool,
    /// Drop groups and optimizer state.
    #[arg(long)]
    pub weights_only: bool,
}

/// `delta`.
#[derive(Debug, Args)]
pub struct DeltaArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: DeltaAction,
}

/// What `delta` does. Each path is a safetensors file.
#[derive(Debug, Subcommand)]
pub enum DeltaAction {
    /// Write the exact difference of two models.
    Derive {
        /// The model that the difference starts from.
        #[arg(long, value_name = "FILE")]
        base: PathBuf,
        /// The model that it leads to.
        #[arg(long, value_name = "FILE")]
        target: PathBuf,
        /// File to create.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// Name of the difference.
        #[arg(long, value_name = "TEXT", default_value = "delta")]
        name: String,
    },
    /// Base and difference give the target, bit for bit.
    Apply(DeltaUse),
    /// Target and difference give the base, bit for bit.
    Remove(DeltaUse),
}

/// `delta apply` and `delta remove`.
#[derive(Debug, Args)]
pub struct DeltaUse {
    /// The model: the base for apply, the target for remove.
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// The difference.
    #[arg(long, value_name = "FILE")]
    pub delta: PathBuf,
    /// File to create.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

/// `adapter`.
#[derive(Debug, Args)]
pub struct AdapterArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: AdapterAction,
}

/// What `adapter` does.
#[derive(Debug, Subcommand)]
pub enum AdapterAction {
    /// Merge a LoRA adapter of PEFT into its base.
    Merge {
        /// GGUF file or safetensors folder of the base.
        #[arg(long, value_name = "PATH")]
        model: PathBuf,
        /// Folder of the adapter.
        #[arg(long, value_name = "DIR")]
        adapter: PathBuf,
        /// Let its embedding and head, of more rows than the base's, take their place: tokens were added before it was trained.
        #[arg(long)]
        resize_vocabulary: bool,
        #[command(flatten)]
        output: Box<OutputArgs>,
    },
    /// Write the LoRA adapter of PEFT that comes closest to the difference of two models.
    Extract {
        /// GGUF file or safetensors folder of the model that was trained.
        #[arg(long, value_name = "PATH")]
        model: PathBuf,
        /// The same of the model that it was trained from.
        #[arg(long, value_name = "PATH")]
        base: PathBuf,
        /// Rank of the factors.
        #[arg(long, value_name = "R")]
        rank: u64,
        /// Matrices with factors: names or their ends, separated by commas; a regular expression of whole names; or all-linear.
        #[arg(long, value_name = "NAMES", default_value = "all-linear")]
        targets: String,
        /// Folder to create, which must not exist, or be empty.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Folder with a receipt, or a receipt beside its files, or files and their receipt.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}
