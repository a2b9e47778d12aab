//! Facts about models and adapters.

use serde::Serialize;
use tabtune::config::{AdapterConfig, ModelConfig, Precision, TrainConfig};
use tabtune::error::Result;
use tabtune::model::{Adaptation, ParameterRequest, Plan, planned_parameters};
use tabtune::portable::TokenizerFacts;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Notice;

/// Facts about an adapter.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdapterInfo {
    /// Rank of the factors.
    r: u64,
    /// Their product is multiplied by alpha / r; by alpha / √r with rslora.
    alpha: f64,
    /// Names of the modules with factors.
    targets: Vec<String>,
    /// Number of trained values.
    parameters: usize,
    /// Size of these values on the device in bytes.
    bytes: usize,
}

impl AdapterInfo {
    /// Collects the facts about an adapter of a model of this configuration, stored in this precision.
    pub fn new(
        settings: &AdapterConfig,
        model: &ModelConfig,
        precision: Precision,
    ) -> Result<Self> {
        let adaptation = Adaptation::new(settings, model, 0)?;
        let plan = Plan::of(model, Some(&adaptation))?;
        let elements = |request: &ParameterRequest| request.shape.iter().product::<usize>();
        let narrow =
            |request: &ParameterRequest| precision == Precision::Bf16 && request.kind.is_matrix();
        let (mut parameters, mut bytes) = (0, 0);
        for asked in plan.parameters.iter().filter(|asked| asked.trained) {
            parameters += elements(asked);
            bytes += elements(asked) * if narrow(asked) { 2 } else { 4 };
        }
        let targets = adaptation.targets().keys().cloned().collect();
        Ok(Self {
            r: settings.r,
            alpha: settings.alpha,
            targets,
            parameters,
            bytes,
        })
    }

    /// Collects the facts about the adapter of a run, if it trains one.
    pub fn of_run(train: &TrainConfig, model: &ModelConfig) -> Result<Option<Self>> {
        train
            .adapter
            .as_ref()
            .map(|settings| Self::new(settings, model, train.precision))
            .transpose()
    }
}

/// Facts about a tensor.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TensorInfo {
    /// Name in Hugging Face's format.
    name: String,
    /// Type in its file, such as `BF16` or `GGML:Q4_K`.
    dtype: String,
    /// Shape, outermost dimension first.
    shape: Vec<usize>,
}

/// Facts about a model.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelInfo {
    /// Family of the model, such as `llama`.
    architecture: String,
    /// Number of weights.
    parameters: usize,
    /// Tensors with weights.
    tensors: Vec<TensorInfo>,
    /// Configuration under the names that tabtune gives to the sizes and switches of all families.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "serde_json::Map<String, serde_json::Value>")
    )]
    config: ModelConfig,
    /// Number of rows of the table of embeddings.
    vocab_size: usize,
    /// The tokenizer; null for a model without one.
    tokenizer: Option<TokenizerFacts>,
    /// Form of the files: `hf_folder` or `gguf`; `scratch` for a new model.
    source_format: String,
    /// The separate adapter of the model, if it was opened with one.
    pub adapter: Option<AdapterInfo>,
    /// Warnings about the files.
    pub warnings: Vec<Notice>,
}

impl ModelInfo {
    /// Collects the facts about a model of this shape.
    pub fn new(
        config: &ModelConfig,
        tokenizer: Option<&Tokenizer>,
        source_format: &str,
        dtype: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let tensors: Vec<TensorInfo> = planned_parameters(config)
            .unwrap_or_default()
            .into_iter()
            .map(|(name, shape)| TensorInfo {
                dtype: dtype(&name).unwrap_or_else(|| "F32".into()),
                name,
                shape,
            })
            .collect();
        Self {
            architecture: config.model_type.clone(),
            parameters: tensors
                .iter()
                .map(|t| t.shape.iter().product::<usize>())
                .sum(),
            tensors,
            config: config.clone(),
            vocab_size: config.vocab_size,
            tokenizer: tokenizer.map(TokenizerFacts::of),
            source_format: source_format.into(),
            adapter: None,
            warnings: Vec::new(),
        }
    }
}
