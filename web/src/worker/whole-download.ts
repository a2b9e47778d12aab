/** Downloads of whole files into memory. */
import { aborted } from '../protocol/errors.js';
import type { OnProgress } from '../protocol/reports.js';
import { Download } from './download.js';
import { MemoryStore } from './download-stores.js';
import type { UrlSpec } from './http-request.js';
import { nameOf } from './storage/faults.js';

/** Returns what `work` downloads; an abort is reported as that of the download. */
export async function aborting<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (signal.aborted || nameOf(thrown) === 'AbortError') throw aborted('the download');
    throw thrown;
  }
}

export async function download(
  spec: UrlSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<Blob> {
  const store = new MemoryStore();
  const work = new Download(spec, signal, onProgress, store);
  await aborting(signal, () => work.load());
  return new Blob([await store.blob()], { type: work.type });
}
