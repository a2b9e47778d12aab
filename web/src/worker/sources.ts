/** The only module that reads files: inputs of the page become sources of synchronous range reads. */
import { download } from './download.js';
import { ReadAhead } from './read-ahead.js';
import { RangedSource, rangedSource } from './ranges.js';
import { fault, messageOf } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { pageWarning } from './http-headers.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { Finding, OnProgress } from '../protocol/reports.js';
import { CHUNK_BYTES } from './storage/database.js';
import { quoted } from './storage/faults.js';
import type { JsSource } from './wasm.js';

/** Returns a source over a Blob; it reads one range at a time, so that a weight file is never in memory as a whole. */
export function blobSource(name: string, blob: Blob, origin?: JsSource['origin']): JsSource {
  const reader = new FileReaderSync();
  const ahead = new ReadAhead(blob);
  return {
    name,
    size: blob.size,
    origin,
    // The type of a Blob that was downloaded is the one that its server stated.
    warning: pageWarning(name, blob.type),
    ahead: () => ahead.fetch(),
    read(offset, length) {
      const end = offset + length;
      if (end > blob.size)
        throw readError(name, `bytes ${offset} to ${end} were requested, but it has ${blob.size}`);
      const fetched = ahead.read(offset, length);
      if (fetched !== undefined) return fetched;
      try {
        return new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset, end)));
      } catch (thrown) {
        throw readError(name, messageOf(thrown));
      }
    },
  };
}

export function bytesSource(name: string, bytes: Uint8Array): JsSource {
  return {
    name,
    size: bytes.byteLength,
    read(offset, length) {
      if (offset + length > bytes.byteLength)
        throw readError(
          name,
          `bytes ${offset} to ${offset + length} were requested, but it has ${bytes.byteLength}`,
        );
      return bytes.subarray(offset, offset + length);
    },
  };
}

const readError = (name: string, reason: string): TabtuneError =>
  fault('source.read', { subject: quoted(name), found: reason }, { path: name, reason });

/** Opens an input; a URL is downloaded to a Blob first, unless reading by ranges is possible and allowed. */
export async function openSource(
  spec: SourceSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
  ranged = false,
): Promise<JsSource> {
  switch (spec.kind) {
    case 'blob':
      return blobSource(spec.name, spec.blob, spec.handle);
    case 'bytes':
      return bytesSource(spec.name, new Uint8Array(spec.bytes));
    case 'url':
      return (
        (ranged ? await rangedSource(spec, signal) : undefined) ??
        blobSource(
          spec.name,
          await download(spec, signal, onProgress),
          spec.parts ? undefined : spec.url,
        )
      );
    default:
      return spec satisfies never;
  }
}

export async function openSources(
  specs: SourceSpec[],
  signal: AbortSignal,
  onProgress: OnProgress,
  ranged = false,
): Promise<JsSource[]> {
  const sources: JsSource[] = [];
  for (const spec of specs) sources.push(await openSource(spec, signal, onProgress, ranged));
  return sources;
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
