/**
 * Parts of the package that the page keeps of its first worker: later ones start from them without loading and compiling the core again, and even if
 * the site has changed in the meantime or cannot be reached.
 */

/** A core that a worker has compiled, the text of its script, or both. */
export interface Kept {
  core?: WebAssembly.Module | undefined;
  script?: string | undefined;
}

/** @internal Compiled cores by the address of the wasm file, by default the package's own. */
export const cores = new Map<string | undefined, WebAssembly.Module>();
/** @internal Scripts of workers by their address, which is not known of a caller's function and in a bundle. */
export const scripts = new Map<string | undefined, string>();
