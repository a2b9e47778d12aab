/** Sources that the core reads as a whole. */
import { escaped, fault } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { OnProgress } from '../protocol/reports.js';
import { checkWhole } from '../protocol/whole.js';
import { blobSource, openSource } from './sources.js';
import type { JsSource } from './wasm.js';

/** The source, if it fits into the core's memory. */
export function wholeSource(source: JsSource): JsSource {
  checkWhole(source.name, source.size);
  return source;
}

/** Training data: a file of gzip is unpacked, and keeps the name of what is in it. */
export async function openData(spec: SourceSpec, signal: AbortSignal, onProgress: OnProgress): Promise<JsSource> {
  const source = wholeSource(await openSource(spec, signal, onProgress));
  const packed = source.size > 1 && source.read(0, 2).join() === '31,139';
  if (!packed) return source;
  const bytes = source.read(0, source.size).slice();
  try {
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'), { signal });
    return wholeSource(blobSource(source.name.replace(/\.gz$/i, ''), await new Response(unpacked).blob()));
  } catch (thrown) {
    signal.throwIfAborted();
    throw fault('data.gzip', `${escaped(source.name)} is not a whole file of gzip: ${thrown instanceof Error ? thrown.message : String(thrown)}. Pack it again, or give it unpacked.`, { path: source.name }, thrown);
  }
}
