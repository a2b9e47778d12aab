//! Computes mean loss and accuracy of a model over batches.

use super::loss::evaluation_sums;
use super::report::EvalReport;
use crate::data::Batch;
use crate::error::{Error, Refusal, Result, word};
use crate::gpu::read_f32;
use crate::interrupt::Interrupt;
use crate::model::Model;

/// Computes mean token loss and accuracy over `batches`, with a pause between them.
///
/// # Errors
/// [`Error::DataTooShort`] for batches without a counted target, `train.non-finite` for a mean that is not finite, [`Error::Aborted`], and
/// the errors of the batches.
pub async fn evaluate(
    model: &Model,
    batches: impl Iterator<Item = Result<Batch>>,
    interrupt: &Interrupt,
) -> Result<EvalReport> {
    let (mut sum, mut hits, mut tokens) = (0.0, 0.0, 0u64);
    for batch in batches {
        let batch = batch?;
        interrupt.pause().await?;
        let sums = read_f32(evaluation_sums(model, &batch)?).await?;
        sum += f64::from(sums[0]);
        hits += f64::from(sums[1]);
        tokens += batch.counted() as u64;
    }
    if tokens == 0 {
        return Err(Error::DataTooShort { need: 2, have: 0 });
    }
    let loss = sum / tokens as f64;
    if !loss.is_finite() {
        let refusal = Refusal::new(word!("train.non-finite"))
            .subject("loss")
            .expected(format!("a finite mean over {tokens} tokens"));
        return Err(refusal
            .found(loss)
            .hint("the weights give no number on these data")
            .into());
    }
    let perplexity = Some(loss.exp()).filter(|perplexity| perplexity.is_finite());
    Ok(EvalReport {
        loss,
        perplexity,
        perplexity_overflow: perplexity.is_none(),
        accuracy: hits / tokens as f64,
        tokens,
    })
}
