/** Checks sources that the core reads as a whole: its memory is at most 4 GiB, and running out of it would be a trap. */
import { escaped, fault } from '../protocol/errors.js';
import type { JsSource } from './wasm.js';

/** Memory that is left for data, apart from the core itself and the pieces of a checkpoint. */
const MEMORY_BYTES = 3 * 2 ** 30;
/** A text is held together with the ids of its tokens, which may be single bytes; token ids are held twice while they are checked. */
const bytesPerByte = (name: string): number => (name.endsWith('.tokens') ? 2 : 5);

/** The source, if it fits into the core's memory. */
export function wholeSource(source: JsSource): JsSource {
  const { name, size } = source;
  const need = size * bytesPerByte(name);
  if (need > MEMORY_BYTES) {
    const message = `${escaped(name)} has ${size} bytes; the memory of a tab holds ${Math.floor(MEMORY_BYTES / bytesPerByte(name))} of such data. Use a part of it.`;
    throw fault('source.too-large', message, { limit: 'wasm memory', need, have: MEMORY_BYTES, path: name });
  }
  return source;
}
