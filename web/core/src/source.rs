//! Reads files of the page by range, through a synchronous JavaScript function.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::rc::Rc;

use js_sys::{Array, Function, Promise, Reflect, Uint8Array};
use tabtune::data::{DataSource, TokenStorage};
use tabtune::error::{Error, Result};
use tabtune::formats::{ByteSource, Digest, truncated};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::{JsResult, thrown};

/// File of the page: `{ name, size, read(offset, length), ahead(), pieces }`. `ahead`, if present, returns a promise while it fetches what
/// follows the last read; `pieces` is present if the SHA-256 of each piece is known.
pub struct JsSource {
    name: String,
    size: u64,
    object: JsValue,
    read: Function,
    ahead: Option<Function>,
}

impl JsSource {
    /// Creates a source from the fields of `object`.
    pub fn new(object: JsValue) -> JsResult<Self> {
        let field = |key: &str| Reflect::get(&object, &JsValue::from_str(key));
        let name = field("name")?.as_string().unwrap_or_default();
        let wrong = |what: &str| {
            thrown(Error::SourceRead {
                name: name.clone(),
                reason: format!("the source has no {what}"),
            })
        };
        let size = field("size")?
            .as_f64()
            .filter(|size| *size >= 0.0 && *size <= 9_007_199_254_740_991.0)
            .ok_or_else(|| wrong("size"))?;
        let read = field("read")?
            .dyn_into::<Function>()
            .map_err(|_| wrong("read function"))?;
        let ahead = field("ahead")?.dyn_into::<Function>().ok();
        Ok(Self {
            name,
            size: size as u64,
            object,
            read,
            ahead,
        })
    }
}

/// Converts a JavaScript array to sources that can be shared.
pub fn shared(files: Vec<JsValue>) -> JsResult<Vec<Rc<dyn ByteSource>>> {
    files
        .into_iter()
        .map(|file| Ok(Rc::new(JsSource::new(file)?) as Rc<dyn ByteSource>))
        .collect()
}

/// Converts a JavaScript array to sources.
pub fn sources(files: Vec<JsValue>) -> JsResult<Vec<Rc<dyn ByteSource>>> {
    files
        .into_iter()
        .map(|file| Ok(Rc::new(JsSource::new(file)?) as Rc<dyn ByteSource>))
        .collect()
}

/// Returns why a read failed: the reason that the worker's own error states, otherwise the message of the error that was thrown.
fn words(error: &JsValue) -> String {
    let field = |of: &JsValue, key: &str| Reflect::get(of, &JsValue::from_str(key)).ok();
    let text = |of: &JsValue, key: &str| field(of, key).and_then(|value| value.as_string());
    let reason = field(error, "detail").and_then(|detail| text(&detail, "reason"));
    reason
        .or_else(|| text(error, "message"))
        .unwrap_or_else(|| format!("{error:?}"))
}

impl ByteSource for JsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.size
    }

    fn pieces(&self) -> Option<Vec<Digest>> {
        let known = Reflect::get(&self.object, &JsValue::from_str("pieces"))
            .ok()?
            .dyn_into::<Array>()
            .ok()?;
        known
            .iter()
            .map(|sum| Digest::from_hex(&sum.as_string()?))
            .collect()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        read_range(&self.name, &self.object, &self.read, offset, buf)
    }
}

impl DataSource for JsSource {
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
    source: &'a JsSource,
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

/// Fills `buf` with the bytes from `offset` on, which the function `read` of `object` returns.
fn read_range(
    name: &str,
    object: &JsValue,
    read: &Function,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let failed = |reason: String| Error::SourceRead {
        name: name.to_owned(),
        reason,
    };
    let read = read.call2(
        object,
        &JsValue::from_f64(offset as f64),
        &JsValue::from_f64(buf.len() as f64),
    );
    let bytes = read.map_err(|error| failed(words(&error)))?;
    let bytes = bytes
        .dyn_into::<Uint8Array>()
        .map_err(|_| failed("read did not return bytes".into()))?;
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

/// Storage of tokens: `{ append(bytes), read(offset, length) }`, synchronous; `append` returns the offset of the bytes.
pub struct JsStorage {
    object: JsValue,
    append: Function,
    read: Function,
    /// Memory of the page through which all bytes go.
    buffer: RefCell<Uint8Array>,
}

/// Name of the token storage in messages.
const STORAGE: &str = "token storage";

impl JsStorage {
    /// Creates a storage from the functions of `object`.
    pub fn new(object: JsValue) -> JsResult<Self> {
        let function =
            |key: &str| Reflect::get(&object, &JsValue::from_str(key))?.dyn_into::<Function>();
        let (append, read) = (function("append")?, function("read")?);
        Ok(Self {
            object,
            append,
            read,
            buffer: RefCell::new(Uint8Array::new_with_length(0)),
        })
    }
}

impl TokenStorage for JsStorage {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let failed = |reason: String| Error::SourceRead {
            name: STORAGE.to_owned(),
            reason,
        };
        let length = u32::try_from(bytes.len()).map_err(|error| failed(error.to_string()))?;
        let mut buffer = self.buffer.borrow_mut();
        if buffer.length() < length {
            *buffer = Uint8Array::new_with_length(length);
        }
        let part = buffer.subarray(0, length);
        part.copy_from(bytes);
        let offset = self
            .append
            .call1(&self.object, &part)
            .map_err(|error| failed(words(&error)))?;
        offset
            .as_f64()
            .map(|offset| offset as u64)
            .ok_or_else(|| failed("append did not return an offset".into()))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        read_range(STORAGE, &self.object, &self.read, offset, buf)
    }
}
