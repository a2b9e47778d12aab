//! Writes a trained adapter as one GGUF file, which llama.cpp loads in addition to the base.

use std::collections::BTreeMap;

use super::architecture::architecture;
use super::choice::ExportChoice;
use super::format::{BaseFiles, Exporting, Format};
use super::gguf_types::refuse_state;
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::FileStream;
use crate::error::{Error, Refusal, Result, word};
use crate::families::{factor_names, to_gguf};
use crate::formats::{GgufValue, TensorType};
use crate::model::Adaptation;
use crate::state::{Encoded, RECEIPT, Reordering, Tensor};

/// Default name of the file, without its ending.
const NAME: &str = "adapter";

/// Writes `<name>.gguf`: the factors of every target, A as `<name of the matrix>.lora_a` [r, in] and B as `.lora_b` [out, r], F32 or F16 by the
/// option `type`; then its receipt. The rows of B are ordered as those of the matrix.
///
/// A reader multiplies the product of a target by alpha / r with the single alpha of the file and the target's own r. If the adapter's scale is
/// another (rsLoRA, an alpha of its own), B is multiplied by the missing factor, and the receipt lists it.
///
/// # Errors
/// `export.adapter` for a whole model, `export.gguf.type` for another type, `export.gguf.arch` for a model that no architecture of GGUF
/// describes, `export.lora.unrepresentable` for modules that are trained in full. While the stream is read, `export.overflow` for values
/// beyond F16.
pub(crate) fn export_gguf_adapter(
    source: &ExportSource,
    options: &ExportOptions,
) -> Result<FileStream> {
    check_kind(source, ExportFormat::GgufAdapter)?;
    options.check_names(".gguf")?;
    let to = type_of(options)?;
    let config = &source.weights.config;
    let family = architecture(config)?;
    let settings = source.adapter_settings.clone().unwrap_or_default();
    let mut tensors: BTreeMap<&str, &Tensor> = source
        .weights
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut take = |name: &str| {
        let absent = || {
            Error::from(
                Refusal::new(word!("model.tensor.missing"))
                    .of("gguf")
                    .subject(name),
            )
        };
        tensors.remove(name).ok_or_else(absent)
    };
    let (mut outputs, mut draft) = (Vec::new(), source.draft());
    for (module, target) in Adaptation::new(&settings, config, 0)?.targets() {
        let unnamed = || {
            Refusal::new(word!("export.gguf.arch"))
                .of("gguf")
                .subject(module)
                .expected(format!("a matrix of {family}"))
        };
        let (matrix, order) =
            to_gguf(&format!("{module}.weight"), family, config).ok_or_else(unnamed)?;
        // The factor is at most 65,536.
        let missing = target.scale / (settings.alpha / target.rank as f64);
        let [a, b] = factor_names(module);
        let lies = if order == Reordering::Transposed {
            Reordering::Same
        } else {
            order
        };
        outputs.push(output(
            take(&a)?,
            format!("{matrix}.lora_a"),
            Reordering::Same,
            to,
            1.0,
        )?);
        outputs.push(output(
            take(&b)?,
            format!("{matrix}.lora_b"),
            lies,
            to,
            missing as f32,
        )?);
        if missing as f32 != 1.0 {
            draft
                .tensors
                .scaled
                .insert(format!("{matrix}.lora_b"), missing);
        }
    }
    refuse_saved(tensors.keys().copied())?;
    let name = options.name.as_deref().unwrap_or(NAME);
    let metadata = [
        ("general.architecture", GgufValue::of_text(family)),
        ("general.type", GgufValue::of_text("adapter")),
        ("general.name", GgufValue::of_text(name)),
        ("adapter.type", GgufValue::of_text("lora")),
        (
            "adapter.lora.alpha",
            GgufValue::of_f32(settings.alpha as f32),
        ),
    ];
    let mut stream = FileStream::summed();
    let metadata = metadata.map(|(key, value)| (key.to_string(), value));
    // A factor enters digests as it is in the file.
    stream.push_gguf(&format!("{name}.gguf"), &metadata, outputs, |name| {
        Some((name.to_string(), Reordering::Same))
    })?;
    options
        .file_name
        .iter()
        .for_each(|name| stream.rename_first(name));
    stream.allow_non_finite(options.allow_non_finite);
    stream.push_receipt(RECEIPT, draft)?;
    Ok(stream)
}

fn type_of(options: &ExportOptions) -> Result<TensorType> {
    match options.types.as_deref() {
        None | Some("f32") => Ok(TensorType::F32),
        Some("f16") => Ok(TensorType::F16),
        Some(other) => Err(Refusal::new(word!("export.gguf.type"))
            .of("gguf")
            .expected("f32 or f16 for an adapter")
            .found(other)
            .into()),
    }
}

/// Refuses modules that are trained in full: readers know factors only, and silently ignore some tensors of other names.
fn refuse_saved<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let refuse = |name: &str| {
        let refusal = Refusal::new(word!("export.lora.unrepresentable"))
            .of("gguf")
            .subject(name);
        refusal
            .expected("factors of matrices")
            .found("a module that is trained in full")
            .hint("export peft, or a merged model")
    };
    let refusals: Vec<Refusal> = names.map(refuse).collect();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Encodes a factor under the file's `name`.
fn output(
    tensor: &Tensor,
    name: String,
    order: Reordering,
    to: TensorType,
    factor: f32,
) -> Result<Tensor> {
    refuse_state(tensor).map_err(|refusal| *refusal)?;
    let encoded = Encoded {
        factor,
        ..Encoded::new(tensor.clone(), order, to)
    };
    Ok(Tensor::encoded(&name, &tensor.shape, encoded))
}

/// The adapter of a run as one GGUF file.
pub(super) struct GgufAdapter;

impl Format for GgufAdapter {
    fn word(&self) -> &'static str {
        "gguf-adapter"
    }

    fn about(&self) -> &'static str {
        "LoRA adapter, GGUF for llama.cpp"
    }

    fn ending(&self) -> &'static str {
        ".gguf"
    }

    fn is_of_adapter(&self) -> bool {
        true
    }

    fn own_options(&self) -> &'static [&'static str] {
        &["base", "type"]
    }

    fn export<'a>(
        &self,
        source: &'a ExportSource,
        _: BaseFiles,
        options: &'a ExportOptions,
    ) -> Exporting<'a> {
        Box::pin(async move { export_gguf_adapter(source, options) })
    }

    fn choices(&self, source: &ExportSource) -> Vec<ExportChoice> {
        let plan = |word: &str| {
            let options = ExportOptions {
                types: Some(word.to_string()),
                ..ExportOptions::default()
            };
            ExportChoice::planned(
                ExportFormat::GgufAdapter,
                Some(word),
                export_gguf_adapter(source, &options),
            )
        };
        source
            .adapter_settings
            .iter()
            .flat_map(|_| ["f32", "f16"].map(plan))
            .collect()
    }
}
