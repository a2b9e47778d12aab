//! Arguments of the commands that export, convert, select, merge and verify.

use std::path::PathBuf;

use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use clap::{Args, Subcommand};
use tabtune::export::ExportFormat;

/// Parses the word of an export format.
fn formats() -> impl TypedValueParser<Value = ExportFormat> {
    let word = |format: ExportFormat| PossibleValue::new(format.word()).help(format.about());
    PossibleValuesParser::new(ExportFormat::ALL.map(word)).map(|word| {
        ExportFormat::ALL
            .into_iter()
            .find(|format| format.word() == word)
            .expect("one of the words that are accepted")
    })
}

/// Options for the files that a command writes.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Folder to create, which must be absent or empty; with --format gguf, gguf-adapter or json, the file to create, which must not
    /// exist.
    #[arg(long, value_name = "PATH")]
    pub to: PathBuf,
    /// Format to write.
    #[arg(long, default_value = ExportFormat::default().word(), value_parser = formats())]
    pub format: ExportFormat,
    /// With --format gguf: type of the matrices, one of f32, f16, bf16, q8_0, q6_k, q5_1, q5_0, q4_k, q4_1, q4_0, the mixture q4_k_m, or
    /// as-base, which keeps each matrix's type in --base, or without --base its type in the model [default: as-base]. Matrices of a base in
    /// GGUF that nothing changed keep their bytes. With --format gguf-adapter: f32 or f16 [default: f32].
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Option<String>,
    /// With --format safetensors or peft: dtype of all tensors, f32, bf16, f16, or stored, which keeps the dtype of each [default: stored].
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// With --format gguf: the GGUF file that the model comes from, or all parts of a split one. Its metadata, its tokenizer and the tensors
    /// that nothing changed are kept byte for byte; without --base a new file is written. For the checkpoint of an adapter: the model that it
    /// was trained on, needed to merge the adapter (--format safetensors or gguf) and for gguf-adapter.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub base: Vec<PathBuf>,
    /// With --format safetensors: maximum size of a shard, in bytes [default: 1900000000].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub shard_bytes: Option<u64>,
    /// With --format safetensors or json: write the optimizer's state as well; safetensors has a file of its own for it.
    #[arg(long)]
    pub optimizer: bool,
    /// Write the manifest, which lists the tensors that each optimizer trains.
    #[arg(long)]
    pub manifest: bool,
    /// Allow blocks of one quantised type to be encoded as another, which loses precision a second time.
    #[arg(long)]
    pub requantise: bool,
    /// With --format json: encoding of the values, numbers, or base64 of the stored bytes [default: numbers].
    #[arg(long, value_name = "WORD")]
    pub encoding: Option<String>,
    /// Write weights that are NaN or infinite, if the format can hold them; with --format json this needs --encoding base64.
    #[arg(long)]
    pub allow_non_finite: bool,
    #[command(flatten)]
    pub card: CardArgs,
}

/// Author's notes on a model for its model card.
#[derive(Debug, Args)]
pub struct CardArgs {
    /// Name of the model.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// License of the weights.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub license: Option<String>,
    /// Model that this one was made from, by its name on the hub.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub base_model: Option<String>,
    /// Description of the training data.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub data_note: Option<String>,
    /// Further text for the model card.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub note: Option<String>,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Checkpoint folder.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// GGUF file, safetensors folder or checkpoint folder.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Folder of a PEFT LoRA adapter to merge into the weights.
    #[arg(long, value_name = "DIR")]
    pub merge_adapter: Option<PathBuf>,
    /// Let the adapter's embedding and head replace those of the model although they have more rows: tokens were added before it was trained.
    #[arg(long, requires = "merge_adapter")]
    pub resize_vocabulary: bool,
    #[command(flatten)]
    pub request: RequestArgs,
}

/// Options that select and rename tensors of a model.
#[derive(Debug, Default, Args)]
pub struct RequestArgs {
    /// Take only the tensors whose whole names match: * any text, ? one character, {a,b} either [default: all].
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub include: Vec<String>,
    /// Leave out the tensors whose whole names match [default: none].
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub exclude: Vec<String>,
    /// Rename a tensor; all renamings happen at once.
    #[arg(long, value_name = "OLD=NEW", num_args = 1..)]
    pub rename: Vec<String>,
    /// JSON file with an object of old names and their new names.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Rename optimizer state tensors along with their parameters.
    #[arg(long)]
    pub rename_state: bool,
    /// Drop parameter groups and optimizer state.
    #[arg(long)]
    pub weights_only: bool,
}

impl RequestArgs {
    /// Returns true if one of the options was given.
    pub fn is_given(&self) -> bool {
        let names = !self.include.is_empty()
            || !self.exclude.is_empty()
            || !self.rename.is_empty()
            || self.map.is_some();
        names || self.rename_state || self.weights_only
    }
}

/// Arguments of `delta`.
#[derive(Debug, Args)]
pub struct DeltaArgs {
    /// Operation to perform.
    #[command(subcommand)]
    pub action: DeltaAction,
}

/// Operations of `delta`. A model is a safetensors file, a Hugging Face folder, a JSON state dict, a checkpoint folder or a GGUF file.
#[derive(Debug, Subcommand)]
pub enum DeltaAction {
    /// Write the exact difference of two models, which have the same tensors.
    Derive {
        /// Model that the difference starts from.
        #[arg(long, value_name = "PATH")]
        base: PathBuf,
        /// Model that the difference leads to.
        #[arg(long, value_name = "PATH")]
        target: PathBuf,
        /// File to create, which ends in .safetensors.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// Name of the difference.
        #[arg(long, value_name = "TEXT", default_value = "delta")]
        name: String,
    },
    /// Add a difference to its base, which gives the target bit for bit.
    Apply(DeltaUseArgs),
    /// Subtract a difference from its target, which gives the base bit for bit.
    Remove(DeltaUseArgs),
}

/// Arguments of `delta apply` and `delta remove`.
#[derive(Debug, Args)]
pub struct DeltaUseArgs {
    /// Model to change: the base for apply, the target for remove.
    #[arg(long, value_name = "PATH")]
    pub model: PathBuf,
    /// File of the difference.
    #[arg(long, value_name = "FILE")]
    pub delta: PathBuf,
    /// File to create, with the ending of the model's weight file; for a model of several weight files a folder, which must be absent or
    /// empty. The weights are written, without optimizer state and without the model's other files.
    #[arg(long, value_name = "PATH")]
    pub to: PathBuf,
}

/// Arguments of `adapter`.
#[derive(Debug, Args)]
pub struct AdapterArgs {
    /// Operation to perform.
    #[command(subcommand)]
    pub action: AdapterAction,
}

/// Operations of `adapter`.
#[derive(Debug, Subcommand)]
pub enum AdapterAction {
    /// Merge a PEFT LoRA adapter into its base.
    Merge {
        /// GGUF file or safetensors folder of the base.
        #[arg(long, value_name = "PATH")]
        model: PathBuf,
        /// Folder of the adapter.
        #[arg(long, value_name = "DIR")]
        adapter: PathBuf,
        /// Let the adapter's embedding and head replace those of the base although they have more rows: tokens were added before it was trained.
        #[arg(long)]
        resize_vocabulary: bool,
        #[command(flatten)]
        output: Box<OutputArgs>,
    },
    /// Write the PEFT LoRA adapter that comes closest to the difference of two models.
    Extract {
        /// GGUF file or safetensors folder of the trained model.
        #[arg(long, value_name = "PATH")]
        model: PathBuf,
        /// GGUF file or safetensors folder of the model that it was trained from.
        #[arg(long, value_name = "PATH")]
        base: PathBuf,
        /// Rank of the factors.
        #[arg(long, value_name = "R")]
        rank: u64,
        /// Matrices that get factors: names or their ends, separated by commas; a regular expression of whole names; or all-linear.
        #[arg(long, value_name = "NAMES", default_value = "all-linear")]
        targets: String,
        /// Folder to create, which must be absent or empty.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Folder with a receipt, a receipt next to its files, or files together with their receipt. Each folder is verified by itself; files
    /// that are named with it can be its inputs.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}
