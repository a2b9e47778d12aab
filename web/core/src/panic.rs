//! Reports a panic before the instance traps.

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::prelude::*;

thread_local! {
    static LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Registers `on_panic`, which is called with the message and the location of a panic. The instance cannot be used after it returns.
#[wasm_bindgen(js_name = setPanicHook)]
pub fn set_panic_hook(
    #[wasm_bindgen(unchecked_param_type = "(message: string) => void")] on_panic: Function,
) {
    LISTENER.with_borrow_mut(|listener| *listener = Some(on_panic));
    std::panic::set_hook(Box::new(|panic| {
        let listener = LISTENER.try_with(|listener| {
            listener
                .try_borrow()
                .ok()
                .and_then(|listener| listener.clone())
        });
        if let Ok(Some(listener)) = listener {
            // Nothing is left to do if the listener throws.
            let _ = listener.call1(&JsValue::NULL, &JsValue::from_str(&panic.to_string()));
        }
    }));
}

/// Panics, to test the recovery from a crash of the core. The released core does not contain it.
#[cfg(feature = "replay")]
#[wasm_bindgen(js_name = panicForTest, skip_typescript)]
pub fn panic_for_test() {
    std::panic::panic_any("a panic that a test asked for");
}
