/** Streams of the core gathered into Blobs, chunk by chunk, so that memory holds one chunk and the disk the rest. */
import { Zip, ZipPassThrough } from 'fflate';

import { aborted, TabtuneError } from '../protocol/errors.js';
import type { NamedFile, OnProgress } from '../protocol/reports.js';
import { exactBuffer } from './storage/chunks.js';
import { CHUNK_BYTES } from './storage/database.js';
import type { FileStream, JsSource } from './wasm.js';

/** Signal and progress callback of an export. */
export interface ExportCall {
  signal: AbortSignal;
  onProgress: OnProgress;
}

interface Listed {
  name: string;
  bytes: number;
}

/** Calls `write` for every chunk of every file, in order, and tells it which chunk is the last of a file. */
async function eachChunk(files: Listed[], stream: FileStream, { signal, onProgress }: ExportCall, write: (file: Listed, chunk: ArrayBuffer, last: boolean) => void): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let loaded = 0;
  for (const file of files) {
    let got = 0;
    do {
      if (signal.aborted) throw aborted('the export');
      const chunk = file.bytes === 0 ? new Uint8Array() : await stream.nextChunk();
      if (chunk === undefined || got + chunk.byteLength > file.bytes || (chunk.byteLength === 0 && file.bytes > 0)) {
        throw new TabtuneError('STORAGE_FAILED', `the export of ${file.name} ended at ${got} of ${file.bytes} bytes`, { code: 'export.stream' });
      }
      got += chunk.byteLength;
      write(file, exactBuffer(chunk), got === file.bytes);
      loaded += chunk.byteLength;
      onProgress({ phase: 'export', file: file.name, loaded, total, fraction: total > 0 ? loaded / total : 1 });
    } while (got < file.bytes);
  }
}

export async function gatherFiles(files: Listed[], stream: FileStream, call: ExportCall): Promise<NamedFile[]> {
  const done: NamedFile[] = [];
  let pieces: Blob[] = [];
  await eachChunk(files, stream, call, (file, chunk, last) => {
    pieces.push(new Blob([chunk]));
    if (!last) return;
    done.push({ name: file.name, blob: new Blob(pieces) });
    pieces = [];
  });
  return done;
}

/** Zip of the files, stored without compression: weights do not compress. */
export async function zipped(name: string, files: Listed[], stream: FileStream, call: ExportCall): Promise<NamedFile> {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  if (total >= 2 ** 32 - 2 ** 20) {
    throw new TabtuneError('LIMIT_EXCEEDED', 'a zip holds at most 4 GiB: export as separate files instead', { code: 'export.zip-size', need: total, have: 2 ** 32 });
  }
  const pieces: Blob[] = [];
  let failure: Error | undefined;
  const zip = new Zip((error, data) => {
    if (error) failure ??= error;
    else pieces.push(new Blob([exactBuffer(data)]));
  });
  let entry: ZipPassThrough | undefined;
  await eachChunk(files, stream, call, (file, chunk, last) => {
    if (!entry) {
      entry = new ZipPassThrough(file.name);
      zip.add(entry);
    }
    entry.push(new Uint8Array(chunk), last);
    if (last) entry = undefined;
    if (failure) throw failure;
  });
  zip.end();
  if (failure) throw failure;
  return { name, blob: new Blob(pieces, { type: 'application/zip' }) };
}

/** A source's bytes in chunks of storage's size; `undefined` at the end. */
export function inPieces(source: JsSource): () => Promise<Uint8Array | undefined> {
  let at = 0;
  return async () => {
    const length = Math.min(CHUNK_BYTES, source.size - at);
    if (length <= 0) return undefined;
    at += length;
    return source.read(at - length, length);
  };
}
