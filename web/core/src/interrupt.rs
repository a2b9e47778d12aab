//! Ends long calls: the worker sets a flag, and the calls check it after letting the worker receive messages.

use std::future::Future;
use std::pin::Pin;

use js_sys::{Function, Promise};
use tabtune::interrupt::Interrupt;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    type MessageChannel;
    #[wasm_bindgen(constructor)]
    fn new() -> MessageChannel;
    #[wasm_bindgen(method, getter)]
    fn port1(this: &MessageChannel) -> MessagePort;
    #[wasm_bindgen(method, getter)]
    fn port2(this: &MessageChannel) -> MessagePort;

    type MessagePort;
    #[wasm_bindgen(method, setter)]
    fn set_onmessage(this: &MessagePort, listener: &Function);
    #[wasm_bindgen(method, js_name = postMessage)]
    fn post_message(this: &MessagePort, message: &JsValue);
    #[wasm_bindgen(method)]
    fn close(this: &MessagePort);
}

/// Waits for one round of the event loop. A timer would wait for 4 ms.
fn round() -> Pin<Box<dyn Future<Output = ()>>> {
    let channel = MessageChannel::new();
    let arrived = Promise::new(&mut |resolve, _| {
        channel.port1().set_onmessage(&resolve);
        channel.port2().post_message(&JsValue::NULL);
    });
    Box::pin(async move {
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
