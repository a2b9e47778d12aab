/** Compiled cores: a later worker of the page gets one of an earlier worker, and starts without loading and compiling it again. */

/** By the address of the wasm file. A core that no worker uses any more is not kept from the collector. */
const modules = new Map<string | undefined, WeakRef<WebAssembly.Module>>();

/** @internal Returns the compiled core from this address (by default the package's own), if it is still there. */
export const compiledCore = (wasmUrl: string | undefined): WebAssembly.Module | undefined => modules.get(wasmUrl)?.deref();

/** @internal Remembers the core that a worker has compiled. */
export const rememberCore = (wasmUrl: string | undefined, module: WebAssembly.Module): void =>
  void modules.set(wasmUrl, new WeakRef(module));
