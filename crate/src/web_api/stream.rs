//! Files to be written, chunk by chunk.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::error::{JsResult, thrown};
use super::plain;
use crate::bundle;
use crate::error::Error;

/// Names and sizes first, then the bytes in order.
#[wasm_bindgen]
pub struct FileStream(Rc<RefCell<Option<bundle::FileStream>>>);

impl FileStream {
    pub(super) fn of(stream: bundle::FileStream) -> Self {
        Self(Rc::new(RefCell::new(Some(stream))))
    }
}

#[wasm_bindgen]
impl FileStream {
    /// `{ name, bytes }` of each file.
    pub fn files(&self) -> JsResult<JsValue> {
        match self.0.borrow().as_ref() {
            Some(stream) => plain(&stream.files()),
            None => Err(thrown(Error::Busy { doing: "reading a chunk" })),
        }
    }

    /// The next bytes, at most 8 MiB and all of one file, or undefined at the end.
    #[wasm_bindgen(js_name = nextChunk)]
    pub fn next_chunk(&self) -> Promise {
        let slot = self.0.clone();
        future_to_promise(async move {
            let taken = slot.borrow_mut().take();
            let mut stream = taken.ok_or_else(|| thrown(Error::Busy { doing: "reading a chunk" }))?;
            let chunk = stream.next_chunk().await;
            *slot.borrow_mut() = Some(stream);
            Ok(match chunk.map_err(thrown)? {
                Some(chunk) => Uint8Array::from(chunk.bytes.as_slice()).into(),
                None => JsValue::UNDEFINED,
            })
        })
    }
}
