/**
 * Parts of the package that the page keeps of its first worker: later ones start from them without loading and compiling the core again, and even if
 * the site has changed in the meantime or cannot be reached.
 */

/** Compiled cores by the address of the wasm file. */
const cores = new Map<string | undefined, WebAssembly.Module>();
let script: string | undefined;

/** @internal Returns the compiled core from this address (by default the package's own), if a worker has compiled it. */
export const keptCore = (wasmUrl: string | undefined): WebAssembly.Module | undefined => cores.get(wasmUrl);
/** @internal Keeps the core that a worker has compiled. */
export const keepCore = (wasmUrl: string | undefined, core: WebAssembly.Module): void => void cores.set(wasmUrl, core);

/** @internal Returns the script of the first worker, if it could be read. */
export const keptScript = (): string | undefined => script;
/** @internal Keeps the script of a worker. */
export const keepScript = (text: string): void => void (script ??= text);
