//! Compares a manifest with the tensors that its files contain.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{Findings, Steps};
use super::manifest::{StateManifest, TensorRecord};
use crate::error::{Result, Word, word};

const TENSOR_MISSING: Word = word!("manifest.tensor.missing");
const TENSOR_UNLISTED: Word = word!("manifest.tensor.unlisted");
const TENSOR_MISMATCH: Word = word!("manifest.tensor.mismatch");
const STEPS: Steps = &[&[TENSOR_MISSING], &[TENSOR_UNLISTED], &[TENSOR_MISMATCH]];

/// dtype, shape and file of each tensor that the files contain.
type Found = BTreeMap<String, (String, Vec<u64>, String)>;

impl StateManifest {
    /// Names of files that hold only state tensors of this manifest, none of which is in `found`: the optimizer file that was left
    /// behind.
    pub fn absent_optimizer_files(&self, found: &Found) -> BTreeSet<&str> {
        let is_there = |(key, record): &(&String, &TensorRecord)| {
            !record.role.is_state() || found.contains_key(*key)
        };
        let needed: BTreeSet<&str> = self
            .tensors
            .iter()
            .filter(is_there)
            .map(|(_, record)| record.file.as_str())
            .collect();
        self.tensors
            .values()
            .map(|record| record.file.as_str())
            .filter(|file| !needed.contains(file))
            .collect()
    }

    /// Compares the manifest with the tensors that its files contain: dtype, shape and file of each. File names count only where the weights
    /// are in several files. State tensors of [`Self::absent_optimizer_files`] may be missing.
    ///
    /// # Errors
    /// `manifest.tensor.missing`, `.unlisted` and `.mismatch`: all findings, in this order and then by key.
    pub fn check_against(&self, found: &Found, artifact: &str) -> Result<()> {
        let mut findings = Findings::new(artifact, STEPS);
        let left = self.absent_optimizer_files(found);
        let shards: BTreeSet<&str> = self
            .tensors
            .values()
            .filter(|record| !record.role.is_state())
            .map(|record| record.file.as_str())
            .collect();
        for (key, record) in &self.tensors {
            let Some((dtype, shape, file)) = found.get(key) else {
                if !left.contains(record.file.as_str()) {
                    findings.lacks(TENSOR_MISSING, key, format!("a tensor of {}", record.file));
                }
                continue;
            };
            if (dtype, shape) != (&record.dtype, &record.shape) {
                let expected = format!("{} {:?}", record.dtype, record.shape);
                findings.differs(TENSOR_MISMATCH, key, expected, format!("{dtype} {shape:?}"));
            } else if shards.len() > 1 && *file != record.file {
                findings.differs(TENSOR_MISMATCH, key, &record.file, file);
            }
        }
        for (key, (dtype, shape, _)) in found
            .iter()
            .filter(|(key, _)| !self.tensors.contains_key(*key))
        {
            findings.add(TENSOR_UNLISTED, key, |refusal| {
                refusal.found(format!("{dtype} {shape:?}"))
            });
        }
        findings.result()
    }
}
