/** Returns the module with a trap in place of each function that nothing calls. */
export function withoutUnreached(wasm: Buffer): Buffer<ArrayBuffer>;
