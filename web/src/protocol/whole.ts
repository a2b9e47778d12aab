/** What is read as a whole: the core's memory is at most 4 GiB, and running out of it would be a trap. */
import { escaped, fault } from './errors.js';

/** Memory that is left for data, apart from the core itself and the pieces of a checkpoint. */
const MEMORY_BYTES = 3 * 2 ** 30;
/** A text is held together with the ids of its tokens, which may be single bytes; token ids are held twice while they are checked. */
const bytesPerByte = (name: string): number => (name.endsWith('.tokens') ? 2 : 5);

/** Refuses data that do not fit into the core's memory. */
export function checkWhole(name: string, size: number): void {
  const need = size * bytesPerByte(name);
  if (need > MEMORY_BYTES) {
    const message = `${escaped(name)} has ${size} bytes; the memory of a tab holds ${Math.floor(MEMORY_BYTES / bytesPerByte(name))} of such data. Use a part of it.`;
    throw fault('source.too-large', message, { limit: 'wasm memory', need, have: MEMORY_BYTES, path: name });
  }
}
