//! Token ids, in memory or, if they do not fit, in storage.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::examples::{DOCUMENT, StoredExample, StoredExamples};
use super::hash::{le_bytes, le_bytes_mut};
use crate::data::chat::Example;
use crate::data::read::TokenStorage;
use crate::error::{Error, Result};

/// Maximum number of ids kept in memory, if there is storage.
const IN_MEMORY: usize = 1 << 20;
/// Number of ids that go to storage at once.
const AT_ONCE: usize = 256 << 10;
/// Bit that marks an id of an example as learned. Ids are smaller.
pub(super) const LEARNED: u32 = 1 << 31;

/// Ids in order, which are appended and then read by range.
#[derive(Clone, Default)]
pub(super) struct TokenStore {
    memory: Vec<u32>,
    /// Maximum of all ids.
    largest: u32,
    storage: Option<Rc<dyn TokenStorage>>,
    /// Number of ids in storage, which precede those in memory, and the byte at which they begin.
    stored: usize,
    base: u64,
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStore")
            .field("ids", &self.len())
            .field("stored", &self.stored)
            .finish()
    }
}

impl TokenStore {
    pub fn new(storage: Option<Rc<dyn TokenStorage>>) -> Self {
        Self {
            storage,
            ..Self::default()
        }
    }

    pub fn of(memory: Vec<u32>) -> Self {
        let largest = memory.iter().copied().max().unwrap_or(0);
        Self {
            memory,
            largest,
            ..Self::default()
        }
    }

    pub fn len(&self) -> usize {
        self.stored + self.memory.len()
    }

    /// Appends ids, some of which may be marked as [`LEARNED`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn extend(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<()> {
        let mut largest = self.largest;
        self.memory.extend(
            ids.into_iter()
                .inspect(|id| largest = largest.max(*id & !LEARNED)),
        );
        self.largest = largest;
        let most = if self.stored == 0 { IN_MEMORY } else { AT_ONCE };
        if self.memory.len() >= most {
            self.store()?;
        }
        Ok(())
    }

    /// Moves the ids in memory to storage, if there is one.
    fn store(&mut self) -> Result<()> {
        let Some(storage) = &self.storage else {
            return Ok(());
        };
        for ids in self.memory.chunks(AT_ONCE) {
            let offset = storage.append(le_bytes(ids))?;
            if self.stored == 0 {
                self.base = offset;
            }
            self.stored += ids.len();
        }
        self.memory.clear();
        self.memory.shrink_to(AT_ONCE);
        Ok(())
    }

    /// Completes the store after everything was appended.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn finish(&mut self) -> Result<()> {
        if self.stored > 0 {
            self.store()?;
        }
        self.memory.shrink_to_fit();
        Ok(())
    }

    /// Checks that a vocabulary of `size` tokens has every id.
    ///
    /// # Errors
    /// `model.token-range` with the first id that it lacks, and those of the storage.
    pub fn check(&self, size: usize) -> Result<()> {
        let beyond = |id: u32| (id & !LEARNED) as usize >= size;
        if !beyond(self.largest) {
            return Ok(());
        }
        for start in (0..self.len()).step_by(AT_ONCE) {
            let ids = self.read(start..start + AT_ONCE)?;
            if let Some((position, id)) = (start..).zip(ids.iter()).find(|(_, id)| beyond(**id)) {
                return Err(Error::TokenRange {
                    id: i64::from(id & !LEARNED),
                    position,
                    vocab_size: size,
                });
            }
        }
        Ok(())
    }

    /// Returns the ids of a range, cut at the end.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u32]>> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        let (Some(storage), true) = (&self.storage, range.start < self.stored) else {
            let in_memory =
                range.start.saturating_sub(self.stored)..range.end.saturating_sub(self.stored);
            return Ok(self.memory.get(in_memory).unwrap_or_default().into());
        };
        let from_storage = range.start..range.end.min(self.stored);
        let mut ids = vec![0; from_storage.len()];
        let offset = self.base + from_storage.start as u64 * size_of::<u32>() as u64;
        storage.read_at(offset, le_bytes_mut(&mut ids))?;
        let rest = range.end.saturating_sub(self.stored);
        ids.extend_from_slice(self.memory.get(..rest).unwrap_or_default());
        Ok(Cow::Owned(ids))
    }
}

/// Examples, stored one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct ExampleStore {
    pub examples: StoredExamples,
    pub tokens: TokenStore,
}

impl ExampleStore {
    /// Appends an example of the row `row`.
    ///
    /// # Errors
    /// `data.tokens` for more rows or tokens than can be counted, and those of the storage.
    pub fn push(&mut self, example: &Example, row: u32) -> Result<()> {
        let targets = || (1..example.ids.len()).filter(|at| example.counts(*at));
        let [start, length] = [self.tokens.len(), example.ids.len()].map(u32::try_from);
        let (Ok(start), Ok(length), true) = (start, length, row < DOCUMENT) else {
            return Err(Error::DataTokens {
                reason: "expected fewer than 2^31 rows of fewer than 2^32 tokens".to_owned(),
            });
        };
        self.examples.push(StoredExample {
            start,
            length,
            row: if example.document {
                row | DOCUMENT
            } else {
                row
            },
            first: targets().next().unwrap_or(0) as u32,
            learned: targets().count() as u32,
        });
        let marked = example.ids.iter().zip(&example.counted);
        let marked = marked.map(|(id, counted)| if *counted { id | LEARNED } else { *id });
        self.tokens.extend(marked)
    }
}

/// Checks that ids fit i32, the type of ids in batches, where a negative target does not count.
pub(super) fn check_ids(ids: &[u32], offset: usize) -> Result<()> {
    match (offset..)
        .zip(ids)
        .find(|(_, id)| i32::try_from(**id).is_err())
    {
        Some((at, id)) => Err(Error::DataTokens {
            reason: format!("expected ids below 2^31, found {id} at {at}"),
        }),
        None => Ok(()),
    }
}
