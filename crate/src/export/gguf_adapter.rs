//! Writes a trained adapter as one GGUF file, which llama.cpp loads in addition to the base.

use std::collections::BTreeMap;
use std::future::ready;

use super::architecture::architecture;
use super::choice::ExportChoice;
use super::format::Format;
use super::gguf_types::refuse_state;
use super::options::ExportOptions;
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::FileStream;
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::families::{factor_names, names_in_gguf_form, to_gguf};
use crate::formats::{GgufValue, TensorType};
use crate::model::Adaptation;
use crate::state::{Encoded, Reordering, Tensor};

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
    let (own, source) = (&source.weights.config, &*source.in_gguf_form());
    options.check_names(".gguf")?;
    let to = type_of(options)?;
    let config = &source.weights.config;
    let family = architecture(config)?;
    let settings = source.adapter_settings.clone().unwrap_or_default();
    let tensors = source.weights.tensors.iter();
    let mut tensors: BTreeMap<&str, &Tensor> = tensors
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut take = |name: &str| {
        let absent = || Refusal::new(word!("model.tensor.missing")).of("gguf");
        let tensor = tensors.remove(name);
        tensor.ok_or_else(|| Error::from(absent().subject(name)))
    };
    let (mut outputs, mut draft) = (Vec::new(), source.draft());
    let adaptation = Adaptation::new(&settings, own, 0)?;
    let targets = adaptation.targets().iter().flat_map(|(module, target)| {
        let modules = names_in_gguf_form(module, own, config);
        modules.into_iter().map(move |module| (module, target))
    });
    for (module, target) in targets {
        let unnamed = || {
            Refusal::new(word!("export.gguf.arch"))
                .of("gguf")
                .subject(&module)
                .expected(format!("a matrix of {family}"))
        };
        let (matrix, order) =
            to_gguf(&format!("{module}.weight"), family, config).ok_or_else(unnamed)?;
        // The rows of B are those of the matrix, and the columns of A its columns.
        let (order_of_a, order_of_b) = match order {
            Reordering::Transposed => (Reordering::Same, Reordering::Same),
            Reordering::TiledColumns(_) => (order, Reordering::Same),
            rows => (Reordering::Same, rows),
        };
        // The factor is at most 65,536.
        let missing = target.scale / (settings.alpha / target.rank as f64);
        let [a, b] = factor_names(&module);
        let [name_a, name_b] = ["a", "b"].map(|factor| format!("{matrix}.lora_{factor}"));
        outputs.push(output(take(&a)?, &name_a, order_of_a, to, 1.0)?);
        outputs.push(output(take(&b)?, &name_b, order_of_b, to, missing as f32)?);
        if missing as f32 != 1.0 {
            draft.tensors.scaled.insert(name_b, missing);
        }
    }
    refuse_saved(tensors.keys().copied())?;
    let name = options.name.as_deref().unwrap_or(NAME);
    let alpha = settings.alpha as f32;
    let metadata = [
        ("general.architecture", GgufValue::of_text(family)),
        ("general.type", GgufValue::of_text("adapter")),
        ("general.name", GgufValue::of_text(name)),
        ("adapter.type", GgufValue::of_text("lora")),
        ("adapter.lora.alpha", GgufValue::of_f32(alpha)),
    ]
    .map(|(key, value)| (key.to_string(), value));
    let mut stream = FileStream::summed();
    // A factor enters digests as it is in the file.
    stream.push_gguf(&format!("{name}.gguf"), &metadata, outputs, |name| {
        Some((name.to_string(), Reordering::Same))
    })?;
    if let Some(name) = &options.file_name {
        stream.rename_first(name);
    }
    options.finish(stream, draft)
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
        Refusal::new(word!("export.lora.unrepresentable"))
            .of("gguf")
            .subject(name)
            .expected("factors of matrices")
            .found("a module that is trained in full")
            .hint("export peft, or a merged model")
    };
    refuse_all(names.map(refuse).collect())
}

/// Encodes a factor under the file's `name`.
fn output(
    tensor: &Tensor,
    name: &str,
    order: Reordering,
    to: TensorType,
    factor: f32,
) -> Result<Tensor> {
    refuse_state(tensor)?;
    let encoded = Encoded {
        factor,
        ..Encoded::new(tensor.clone(), order, to)
    };
    Ok(Tensor::encoded(name, &tensor.shape, encoded))
}

/// The adapter of a run as one GGUF file.
pub(super) const FORMAT: Format = Format {
    word: "gguf-adapter",
    about: "LoRA adapter, GGUF for llama.cpp",
    ending: ".gguf",
    is_of_adapter: true,
    own_options: &["base", "type"],
    export: |source, _, options| Box::pin(ready(export_gguf_adapter(source, options))),
    choices,
};

fn choices(source: &ExportSource) -> Vec<ExportChoice> {
    let plan = |word: &str| {
        let options = ExportOptions {
            types: Some(word.to_string()),
            ..ExportOptions::default()
        };
        let adapter = export_gguf_adapter(source, &options);
        ExportChoice::planned(ExportFormat::GgufAdapter, Some(word), adapter)
    };
    let adapter = source.adapter_settings.iter();
    adapter.flat_map(|_| ["f32", "f16"].map(plan)).collect()
}
