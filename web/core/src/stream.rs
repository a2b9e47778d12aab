//! Streams files piece by piece.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Promise, Uint8Array};
use tabtune::bundle;
use tabtune::error::{Error, Result};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::values::{Report, plain};

/// Stream of files: names and sizes first, then the bytes in order.
#[wasm_bindgen]
pub struct FileStream(Rc<RefCell<State>>);

struct State {
    /// `None` while a piece is read.
    stream: Option<bundle::FileStream>,
    files: Vec<bundle::FileInfo>,
    /// Digests that were received meanwhile.
    waiting: Vec<String>,
}

impl FileStream {
    pub(crate) fn of(stream: bundle::FileStream) -> Self {
        let files = stream.files().to_vec();
        Self(Rc::new(RefCell::new(State {
            stream: Some(stream),
            files,
            waiting: Vec::new(),
        })))
    }
}

#[wasm_bindgen]
impl FileStream {
    /// Returns `{ name, bytes }` of each file.
    pub fn files(&self) -> JsResult<Report> {
        plain(&self.0.borrow().files)
    }

    /// Returns the next piece: 8 MiB of one file, or less at the end of a file; undefined at the end.
    #[wasm_bindgen(
        js_name = nextChunk,
        unchecked_return_type = "Promise<Uint8Array | undefined>"
    )]
    pub fn next_chunk(&self) -> Promise {
        let state = self.0.clone();
        future_to_promise(async move {
            let taken = state.borrow_mut().stream.take();
            let mut stream = taken.ok_or_else(|| {
                thrown(Error::Busy {
                    doing: "reading a chunk",
                })
            })?;
            let waiting = std::mem::take(&mut state.borrow_mut().waiting);
            let chunk = next(&mut stream, waiting).await;
            state.borrow_mut().stream = Some(stream);
            Ok(match chunk.map_err(thrown)? {
                Some(chunk) => Uint8Array::from(chunk.bytes.as_slice()).into(),
                None => JsValue::UNDEFINED,
            })
        })
    }

    /// Returns the receipt, after the last piece; undefined before, and for a stream without one.
    pub fn receipt(&self) -> JsResult<Report> {
        let state = self.0.borrow();
        match state.stream.as_ref().and_then(bundle::FileStream::receipt) {
            Some(receipt) => plain(receipt),
            None => Ok(JsValue::UNDEFINED.unchecked_into()),
        }
    }

    /// Receives the SHA-256 of the next piece that was given, in hex and in order. The digests of all earlier files must be given before
    /// the first piece of checkpoint.json is requested; an export does not need them.
    pub fn hashed(&self, sha256: String) {
        self.0.borrow_mut().waiting.push(sha256);
    }
}

async fn next(
    stream: &mut bundle::FileStream,
    digests: Vec<String>,
) -> Result<Option<bundle::Chunk>> {
    digests
        .iter()
        .try_for_each(|digest| stream.hashed(digest))?;
    interrupt().pause().await?;
    stream.next_chunk().await
}
