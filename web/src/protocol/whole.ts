/** Checks that data fit into the core's memory, which is at most 4 GiB; running out of it would be a trap. */
import { escaped, fault } from './errors.js';

/** Memory available for data, apart from the core itself and the pieces of a checkpoint. */
export const MEMORY_BYTES = 3 * 2 ** 30;
/** Bytes in memory per byte of the file: a token id takes 4 bytes, and a token may be a single byte of a text. */
const bytesPerByte = (name: string): number => (name.endsWith('.tokens') ? 1 : 4);

/** Returns the maximum number of bytes that the tokens of a file take. */
export const tokenBytes = (name: string, size: number): number => size * bytesPerByte(name);

/** Refuses data whose tokens do not fit into the core's memory; used if the browser has no files for them. */
export function checkWhole(name: string, size: number): void {
  const need = tokenBytes(name, size);
  if (need > MEMORY_BYTES) {
    const expected = `at most ${Math.floor(MEMORY_BYTES / bytesPerByte(name))} bytes, for which a tab has memory`;
    const values = { artifact: escaped(name), expected, found: size, hint: 'use a part of it' };
    throw fault('source.too-large', values, {
      limit: 'wasm memory',
      need,
      have: MEMORY_BYTES,
      path: name,
    });
  }
}
