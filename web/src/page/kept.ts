/**
 * Parts of the package that the page keeps of its first worker: later ones start from them without loading and compiling the core again, and even if
 * the site has changed in the meantime or cannot be reached.
 */

/** Compiled cores by the address of the wasm file, by default the package's own. */
const cores = new Map<string | undefined, WebAssembly.Module>();
let first: string | undefined;

/** A core, the text of a script, or both. */
export interface Kept {
  core?: WebAssembly.Module | undefined;
  script?: string | undefined;
}

/** @internal Keeps what a worker has compiled or read. */
export function keep(wasmUrl: string | undefined, { core, script }: Kept): void {
  if (core) cores.set(wasmUrl, core);
  first ??= script;
}

/** @internal Returns what a worker with this core can start from. */
export const kept = (wasmUrl?: string): Kept => ({ core: cores.get(wasmUrl), script: first });
