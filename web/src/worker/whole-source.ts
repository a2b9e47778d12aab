/** Sources that the core reads as a whole. */
import { checkWhole } from '../protocol/whole.js';
import type { JsSource } from './wasm.js';

/** The source, if it fits into the core's memory. */
export function wholeSource(source: JsSource): JsSource {
  checkWhole(source.name, source.size);
  return source;
}
