//! Reads files of the page by range, through synchronous functions of the worker.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;

use js_sys::{Function, Promise, Reflect, Uint8Array};
use tabtune::data::{DataSource, TokenStorage};
use tabtune::error::{Error, Result};
use tabtune::formats::{ByteSource, Digest, HubOrigin, truncated};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::{JsResult, thrown};

#[wasm_bindgen(typescript_custom_section)]
const INTERFACES: &str = "
/** A file that the core reads. */
export interface JsSource {
  name: string;
  size: number;
  /** Returns the bytes of a range, which are valid until the next call of `ahead`. */
  read(offset: number, length: number): Uint8Array;
  /** Fetches what follows the last read; returns `undefined` if there is nothing to wait for. */
  ahead?: () => Promise<void> | undefined;
  /** SHA-256 of each piece of 8 MiB, if they are known. */
  pieces?: string[];
  /** Repository that it came from. */
  hub?: { repo: string; revision: string; commit: string; page: string } | undefined;
  /** Location from which the worker can open the source again without asking. */
  origin?: FileSystemFileHandle | string | undefined;
  /** Warning about how the source was served. */
  warning?: { code: string; message: string } | undefined;
}

/** Storage of tokens; `append` returns the offset of the bytes. */
export interface JsStorage {
  append(bytes: Uint8Array): number;
  read(offset: number, length: number): Uint8Array;
}
";

#[wasm_bindgen]
extern "C" {
    /// A file of the worker.
    #[wasm_bindgen(typescript_type = "JsSource")]
    pub type JsSource;
    #[wasm_bindgen(method, getter)]
    fn name(this: &JsSource) -> String;
    #[wasm_bindgen(method, getter)]
    fn size(this: &JsSource) -> f64;
    #[wasm_bindgen(method, getter)]
    fn ahead(this: &JsSource) -> Option<Function>;
    #[wasm_bindgen(method, getter)]
    fn pieces(this: &JsSource) -> Option<Vec<String>>;
    #[wasm_bindgen(method, getter)]
    fn hub(this: &JsSource) -> Option<Hub>;
    #[wasm_bindgen(method, catch)]
    fn read(this: &JsSource, offset: f64, length: f64) -> std::result::Result<Uint8Array, JsValue>;

    /// Place in a hub of a file of the worker.
    type Hub;
    #[wasm_bindgen(method, getter)]
    fn repo(this: &Hub) -> String;
    #[wasm_bindgen(method, getter)]
    fn revision(this: &Hub) -> String;
    #[wasm_bindgen(method, getter)]
    fn commit(this: &Hub) -> String;

    /// Storage of tokens of the worker.
    #[wasm_bindgen(typescript_type = "JsStorage")]
    pub type JsStorage;
    #[wasm_bindgen(method, catch)]
    fn append(this: &JsStorage, bytes: &Uint8Array) -> std::result::Result<f64, JsValue>;
    #[wasm_bindgen(method, catch, js_name = read)]
    fn read_back(
        this: &JsStorage,
        offset: f64,
        length: f64,
    ) -> std::result::Result<Uint8Array, JsValue>;
}

/// A file of the page. `ahead`, if present, returns a promise while it fetches what follows the last read.
pub struct Source {
    name: String,
    size: u64,
    object: JsSource,
    ahead: Option<Function>,
}

impl Source {
    /// Creates a source that reads from `object`.
    pub fn new(object: JsSource) -> JsResult<Self> {
        let (name, size, ahead) = (object.name(), object.size(), object.ahead());
        if !(0.0..=9_007_199_254_740_991.0).contains(&size) {
            return Err(thrown(failed(&name, "the source has no size")));
        }
        Ok(Self {
            name,
            size: size as u64,
            object,
            ahead,
        })
    }
}

/// Converts a list to sources.
pub fn sources(files: Vec<JsSource>) -> JsResult<Vec<Rc<dyn ByteSource>>> {
    files
        .into_iter()
        .map(|file| Ok(Rc::new(Source::new(file)?) as Rc<dyn ByteSource>))
        .collect()
}

fn failed(name: &str, reason: impl Into<String>) -> Error {
    Error::SourceRead {
        name: name.to_owned(),
        reason: reason.into(),
    }
}

/// Returns why a read failed: the reason that the worker's own error states, otherwise the message of what was thrown, which may be anything.
fn words(error: &JsValue) -> String {
    let field = |of: &JsValue, key: &str| Reflect::get(of, &JsValue::from_str(key)).ok();
    let text = |of: &JsValue, key: &str| field(of, key).and_then(|value| value.as_string());
    let reason = field(error, "detail").and_then(|detail| text(&detail, "reason"));
    reason
        .or_else(|| text(error, "message"))
        .unwrap_or_else(|| format!("{error:?}"))
}

impl ByteSource for Source {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.size
    }

    fn pieces(&self) -> Option<Vec<Digest>> {
        let known = self.object.pieces()?;
        known.iter().map(|sum| Digest::from_hex(sum)).collect()
    }

    fn hub(&self) -> Option<HubOrigin> {
        let hub = self.object.hub()?;
        Some(HubOrigin {
            repo: hub.repo(),
            revision: Some(hub.revision()),
            commit: hub.commit(),
        })
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let read = self.object.read(offset as f64, buf.len() as f64);
        fill(&self.name, offset, buf, read)
    }
}

impl DataSource for Source {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(Reader {
            source: self,
            offset: 0,
        }))
    }

    fn read_ahead(&self) -> Option<Pin<Box<dyn Future<Output = ()> + '_>>> {
        let fetched = self
            .ahead
            .as_ref()?
            .call0(&self.object)
            .ok()?
            .dyn_into::<Promise>()
            .ok()?;
        Some(Box::pin(async move { drop(JsFuture::from(fetched).await) }))
    }
}

/// Reads a source from its beginning.
struct Reader<'a> {
    source: &'a Source,
    offset: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size.saturating_sub(self.offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.source
            .read_at(self.offset, buf.get_mut(..count).unwrap_or_default())
            .map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Fills `buf` with bytes that were read at `offset`.
fn fill(name: &str, offset: u64, buf: &mut [u8], read: JsResult<Uint8Array>) -> Result<()> {
    let bytes = read.map_err(|error| failed(name, words(&error)))?;
    if !bytes.is_instance_of::<Uint8Array>() {
        return Err(failed(name, "read did not return bytes"));
    }
    if bytes.length() as usize != buf.len() {
        return Err(truncated(
            name,
            offset,
            buf.len() as u64,
            u64::from(bytes.length()),
        ));
    }
    bytes.copy_to(buf);
    Ok(())
}

/// Storage of tokens in the worker.
pub struct Storage {
    object: JsStorage,
    /// Memory of the page through which all bytes go.
    buffer: RefCell<Uint8Array>,
}

/// Name of the token storage in messages.
const STORAGE: &str = "token storage";

impl Storage {
    /// Creates a storage that writes to `object`.
    pub fn new(object: JsStorage) -> Self {
        Self {
            object,
            buffer: RefCell::new(Uint8Array::new_with_length(0)),
        }
    }
}

impl TokenStorage for Storage {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let length =
            u32::try_from(bytes.len()).map_err(|error| failed(STORAGE, error.to_string()))?;
        let mut buffer = self.buffer.borrow_mut();
        if buffer.length() < length {
            *buffer = Uint8Array::new_with_length(length);
        }
        let part = buffer.subarray(0, length);
        part.copy_from(bytes);
        let offset = self.object.append(&part);
        offset
            .map(|offset| offset as u64)
            .map_err(|error| failed(STORAGE, words(&error)))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let read = self.object.read_back(offset as f64, buf.len() as f64);
        fill(STORAGE, offset, buf, read)
    }
}
