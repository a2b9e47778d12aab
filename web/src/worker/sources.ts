/** The only module that reads files: inputs of the page become sources of synchronous range reads. */
import { blobSource, bytesSource } from './blob-source.js';
import type { UrlSpec } from './http-request.js';
import { hubFiles } from './hub.js';
import { RangedSource, rangedSource } from './ranges.js';
import { completed, remoteSource } from './remote.js';
import { originOf } from './remote-source.js';
import { fault } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { Finding, OnProgress } from '../protocol/reports.js';
import { CHUNK_BYTES } from './storage/database.js';
import { quoted } from './storage/faults.js';
import type { JsSource } from './wasm.js';
import { download } from './whole-download.js';

export { blobSource, bytesSource } from './blob-source.js';

/**
 * How the bytes behind an address are read: `ranges` requests only what the core reads, `beginning` keeps what it loads and completes weights later, and
 * `whole` loads all of them.
 */
export type Extent = 'ranges' | 'beginning' | 'whole';

async function openUrl(
  spec: UrlSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
  extent: Extent,
): Promise<JsSource> {
  if (extent === 'beginning' || spec.sum !== undefined) {
    const source = await remoteSource(spec, signal, onProgress);
    if (extent === 'whole') await completed([source], signal, onProgress);
    return source;
  }
  const ranged = extent === 'ranges' ? await rangedSource(spec, signal) : undefined;
  return ranged ?? blobSource(spec.name, await download(spec, signal, onProgress), originOf(spec));
}

/** Opens the files of an input; a name of a hub means several. */
async function openAll(
  spec: SourceSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
  extent: Extent,
): Promise<JsSource[]> {
  switch (spec.kind) {
    case 'blob':
      return [blobSource(spec.name, spec.blob, spec.handle)];
    case 'bytes':
      return [bytesSource(spec.name, new Uint8Array(spec.bytes))];
    case 'url':
      return [await openUrl(spec, signal, onProgress, extent)];
    case 'hub': {
      const { specs, warnings } = await hubFiles(spec, signal, onProgress);
      const sources: JsSource[] = [];
      for (const each of specs) {
        const source = await openUrl(each, signal, onProgress, extent);
        source.hub = each.hub;
        sources.push(source);
      }
      sources.forEach((source, at) => (source.warning ??= warnings[at]));
      return sources;
    }
    default:
      return spec satisfies never;
  }
}

export async function openSources(
  specs: SourceSpec[],
  signal: AbortSignal,
  onProgress: OnProgress,
  extent: Extent = 'whole',
): Promise<JsSource[]> {
  const sources: JsSource[] = [];
  for (const spec of specs) sources.push(...(await openAll(spec, signal, onProgress, extent)));
  return sources;
}

/** Opens an input that must be one file. */
export async function openSource(
  spec: SourceSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
  extent: Extent = 'whole',
): Promise<JsSource> {
  const [source, other] = await openAll(spec, signal, onProgress, extent);
  if (source === undefined || other !== undefined)
    throw fault('hub.files', {
      subject: quoted(spec.name),
      expected: 'one file',
      found: `several; name it: ${quoted(spec.name)}/FILE`,
    });
  return source;
}

/** Returns the warnings about how these sources were served. */
export const warningsOf = (sources: readonly JsSource[]): Finding[] =>
  sources.flatMap(({ warning }) => warning ?? []);

/** Returns a report with the warnings about how its files were served. */
export const withWarnings = <T extends { warnings: Finding[] }>(
  report: T,
  sources: readonly JsSource[],
): T => ({ ...report, warnings: [...report.warnings, ...warningsOf(sources)] });

/** Runs a call of the core on these sources. If reading one of them failed, throws that error instead of the one that the core made of it. */
export function reading<T>(sources: readonly JsSource[], work: () => T): T {
  let result: { value: T } | { thrown: unknown };
  try {
    result = { value: work() };
  } catch (thrown) {
    result = { thrown };
  }
  for (const source of sources)
    if (source instanceof RangedSource && source.failure) throw source.failure;
  if ('thrown' in result) throw result.thrown;
  return result.value;
}

/** The same for a call that takes its time. */
export async function readingLong<T>(
  sources: readonly JsSource[],
  work: () => Promise<T>,
): Promise<T> {
  const [end] = await Promise.allSettled([work()]);
  return reading(sources, () => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

/** Returns the bytes of the sources one after the other, in chunks of the storage's size; `undefined` at the end. */
export function inPieces(sources: readonly JsSource[]): () => Promise<Uint8Array | undefined> {
  const left = sources.map((source) => ({ source, at: 0 }));
  return async () => {
    const pieces: Uint8Array[] = [];
    let room = CHUNK_BYTES;
    for (const part of left) {
      const length = Math.min(room, part.source.size - part.at);
      if (length <= 0) continue;
      pieces.push(part.source.read(part.at, length));
      part.at += length;
      room -= length;
    }
    return pieces.length === 0 ? undefined : joined(pieces, CHUNK_BYTES - room);
  };
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}
