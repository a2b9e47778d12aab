/** Checksums of an adapter's base files: its checkpoints record every piece of them, and a resume compares them. */
import { aborted } from '../protocol/errors.js';
import type { OnProgress } from '../protocol/reports.js';
import { progressOf } from './progress.js';
import { inPieces } from './sources.js';
import { exactBuffer, sha256 } from './storage/chunks.js';
import type { JsSource } from './wasm.js';

/** Computes the checksums of the weight files among the sources, piece by piece, so that the core need not do it without a pause. */
export async function summed(
  sources: readonly JsSource[],
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<JsSource[]> {
  const weights = sources.filter(
    ({ name, pieces }) => pieces === undefined && /\.(gguf|safetensors)$/i.test(name),
  );
  const total = weights.reduce((sum, { size }) => sum + size, 0);
  let loaded = 0;
  for (const source of weights) {
    const sums: string[] = [];
    const next = inPieces([source]);
    for (let piece = await next(); piece !== undefined; piece = await next()) {
      if (signal.aborted) throw aborted('the start');
      sums.push(await sha256(exactBuffer(piece)));
      loaded += piece.byteLength;
      onProgress(progressOf('verify', source.name, loaded, total));
    }
    source.pieces = sums;
  }
  return [...sources];
}
