//! Facts about a model other than its weights.

use serde::Serialize;
use tabtune::error::Result;
use tabtune::export::{ExportChoice, ExportSource};
use tabtune::portable::{self, ModelIoCompatibilityContract};
use tabtune::state::{Base, ModelIoArtifactReceipt, Operation};

/// Facts about a model other than its weights.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Details {
    /// Forms in which it can leave.
    exports: Vec<ExportChoice>,
    /// Parts of the model that import, export and a round trip preserve, for every format that a model can take.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<ModelIoCompatibilityContract>,
    /// Receipt of the import, for a model that was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ModelIoArtifactReceipt>,
    /// Files that training starts from, with their checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Base>,
}

impl Details {
    /// Returns the details of a model that cannot be exported and that started from `base`.
    pub fn of_base(base: Base) -> Self {
        Self {
            base: Some(base),
            ..Self::default()
        }
    }

    /// Collects the details of the model that `source` exports.
    ///
    /// # Errors
    /// Errors of the planned exports.
    pub fn of(source: &ExportSource) -> Result<Self> {
        let (exports, contract) = portable::export_options_of(source)?;
        let receipt = match &source.training {
            Some(_) => None,
            None => {
                let contract_digest = Some(contract.contract_digest);
                Some(
                    ModelIoArtifactReceipt {
                        operation: Operation::Import,
                        contract_digest,
                        ..source.draft()
                    }
                    .seal()?,
                )
            }
        };
        Ok(Self {
            exports,
            contract: Some(contract),
            receipt,
            base: source.base.clone(),
        })
    }
}
