/** Opens files by their addresses: what is kept is not requested again. */
import type { OnProgress } from '../protocol/reports.js';
import { blobSource } from './blob-source.js';
import { Download } from './download.js';
import type { Known } from './download.js';
import { MemoryStore } from './download-stores.js';
import { isEncoded, rangeOf, validatorOf } from './http-headers.js';
import { refusedDownload } from './http-refusals.js';
import { hasRanges, request } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import { BEGINNING_BYTES, downloadName, originOf, RemoteSource, unkept } from './remote-source.js';
import type { Kept } from './remote-source.js';
import { dropDownload, fileOf, keptByName, keptBySum } from './storage/kept-downloads.js';
import type { KeptDownload } from './storage/kept-downloads.js';
import type { JsSource } from './wasm.js';
import { aborting } from './whole-download.js';

/** Files whose bytes are needed only when the model is used, except for their beginnings. */
export const isWeights = (name: string): boolean => /\.(gguf|safetensors)$/i.test(name);

/** Returns a source over a whole file that is kept. */
const keptSource = (spec: UrlSpec, { file }: KeptDownload): JsSource =>
  blobSource(spec.name, file, originOf(spec));

/** Opens a file by its address: one that is kept, else its beginning or, unless it holds weights, all of it. */
export async function remoteSource(
  spec: UrlSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<JsSource> {
  const { sum, keep = true } = spec;
  const whole = sum === undefined ? undefined : await keptBySum(sum);
  if (whole) return keptSource(spec, whole);
  const begun = sum === undefined ? await probed(spec, signal) : undefined;
  if (begun && !isRanged(begun)) {
    const store = new MemoryStore();
    const work = new Download(spec, signal, onProgress, store);
    if (begun.status === 206) await begun.body?.cancel();
    await aborting(signal, () => work.load(Infinity, begun.status === 206 ? undefined : begun));
    const blob = new Blob([await store.blob()], { type: work.type });
    return blobSource(spec.name, blob, originOf(spec));
  }
  const known: Partial<Known> = begun
    ? {
        size: rangeOf(begun.headers.get('content-range')).total,
        validator: validatorOf(begun.headers),
      }
    : { size: spec.size };
  // The parts of a Request may be secret.
  const isKept = keep && (sum !== undefined || spec.parts === undefined);
  const found = isKept ? await keptPart(spec, known) : undefined;
  if (found?.whole) {
    await begun?.body?.cancel();
    return keptSource(spec, found.whole);
  }
  const source = new RemoteSource(spec, found?.kept, { ...known, ...found?.known });
  if (isKept && !found)
    source.warning = unkept(downloadName(spec), 'this browser has no files for it');
  if (found?.kept.part) await begun?.body?.cancel();
  await source.begin(1, signal, onProgress, found?.kept.part ? undefined : begun);
  if (!isWeights(spec.name)) await source.complete(signal, onProgress);
  return source;
}

/** Requests the first bytes, to see whether the server has ranges of a file that it can name. */
async function probed(spec: UrlSpec, signal: AbortSignal): Promise<Response | undefined> {
  // The facts about a file that is kept need none of its bytes.
  const last = (await keptByName(downloadName(spec))) ? 0 : BEGINNING_BYTES - 1;
  const range: [string, string][] = hasRanges(spec) ? [['range', `bytes=0-${last}`]] : [];
  return aborting(signal, async () => {
    try {
      return await request(spec, signal, range);
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof TypeError)) throw thrown;
      throw refusedDownload(spec, thrown);
    }
  });
}

const isRanged = ({ status, headers }: Response): boolean => {
  const { from, total } = rangeOf(headers.get('content-range'));
  return (
    status === 206 &&
    from === 0 &&
    total !== undefined &&
    !isEncoded(headers) &&
    validatorOf(headers) !== undefined
  );
};

/** Returns what is kept of a file, if it is still the same; a part of another one is removed. */
async function keptPart(
  spec: UrlSpec,
  { size, validator }: Partial<Known>,
): Promise<{ kept: Kept; known?: Partial<Known>; whole?: KeptDownload } | undefined> {
  const name = downloadName(spec);
  try {
    const found = await keptByName(name);
    const isSame =
      found !== undefined &&
      (spec.sum === undefined
        ? found.validator === validator && found.size === size
        : !found.whole && found.sums.includes(spec.sum));
    if (found && !isSame) await dropDownload(name);
    const handle = await fileOf(name);
    if (!handle) return undefined;
    if (!found || !isSame) return { kept: { handle, part: undefined } };
    const known = { size: found.size, validator: found.validator };
    if (found.whole) return { kept: { handle, part: undefined }, whole: found };
    return { kept: { handle, part: found.file }, known };
  } catch {
    return undefined;
  }
}

/** Runs a call of the core that reads the beginnings of files, and again whenever it needed more of one. */
export async function headed<T>(
  sources: readonly JsSource[],
  signal: AbortSignal,
  onProgress: OnProgress,
  work: () => Promise<T> | T,
): Promise<T> {
  for (;;) {
    let end: { value: T } | { thrown: unknown };
    try {
      end = { value: await work() };
    } catch (thrown) {
      end = { thrown };
    }
    const short = sources.filter(
      (source): source is RemoteSource =>
        source instanceof RemoteSource && source.wanted !== undefined,
    );
    if (short.length === 0) {
      if ('thrown' in end) throw end.thrown;
      return end.value;
    }
    for (const source of short) await source.begin(source.wanted ?? 0, signal, onProgress);
  }
}

/** Loads all of the files, before their weights are used. */
export async function completed(
  sources: readonly JsSource[],
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<void> {
  for (const source of sources)
    if (source instanceof RemoteSource) await source.complete(signal, onProgress);
}
