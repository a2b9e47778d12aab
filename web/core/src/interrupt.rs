//! Ends long calls: the worker sets a flag, and the calls check it after letting the worker receive messages.

use std::future::Future;
use std::pin::Pin;

use js_sys::Promise;
use tabtune::interrupt::Interrupt;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::MessageChannel;

/// Waits for one round of the event loop. A timer would wait for 4 ms.
fn round() -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async {
        let channel = MessageChannel::new().expect("workers have message channels");
        let arrived = Promise::new(&mut |resolve, _| {
            channel.port1().set_onmessage(Some(&resolve));
            let posted = channel.port2().post_message(&JsValue::NULL);
            posted.expect("null can be cloned");
        });
        // The promise is never rejected.
        let _ = JsFuture::from(arrived).await;
        channel.port1().close();
    })
}

thread_local! {
    static INTERRUPT: Interrupt = Interrupt::giving_way(round);
}

/// Returns the interrupt of all calls of this instance.
pub fn interrupt() -> Interrupt {
    INTERRUPT.with(Clone::clone)
}

/// Ends the running calls between micro-batches, batches, tokens or pieces: they reject with `call.aborted`.
#[wasm_bindgen(js_name = requestAbort)]
pub fn request_abort() {
    interrupt().request();
}

/// Withdraws `requestAbort`. Call it before each long call.
#[wasm_bindgen(js_name = clearAbort)]
pub fn clear_abort() {
    interrupt().clear();
}
