/** A generation that is copied from one storage location to another. */
import { aborted } from '../../protocol/errors.js';
import type { OnProgress, Progress } from '../../protocol/reports.js';
import type { HistoryEntry } from '../../protocol/events.js';
import { progressOf } from '../progress.js';
import { checked, readChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { corrupt, quoted } from './faults.js';
import type { ChunkRecord, FileRecord, Manifest, RunRecord } from './manifest.js';

/** A generation with its records; its chunks are read one at a time, and each is verified. */
export interface GenerationCopy {
  manifest: Manifest;
  record: RunRecord | undefined;
  history: HistoryEntry[];
  /** Returns the bytes of the chunk that begins at `offset` of the file. */
  chunk: (file: FileRecord, offset: number, chunk: ChunkRecord) => Promise<ArrayBuffer>;
  /** Returns the same for the run's stored data. */
  data: (offset: number, chunk: ChunkRecord) => Promise<ArrayBuffer>;
  /** The files, if every chunk was already verified. */
  verified?: ReadonlyMap<string, Blob>;
}

/** Returns readers for the chunks of a generation in the database. */
export function chunksOf(
  connection: Connection,
  run: string,
  generation: number,
): Pick<GenerationCopy, 'chunk' | 'data'> {
  return {
    chunk: (_file, _offset, chunk) => readChunk(connection, [run, generation], chunk),
    data: (_offset, chunk) => readChunk(connection, [run, 0], chunk),
  };
}

/** Returns readers for the chunks of files; `refuse` makes the error for bytes that differ from the expected ones. */
export function chunksIn(
  files: ReadonlyMap<string, Blob>,
  data: Blob | undefined,
  refuse?: (where: string) => Error,
): Pick<GenerationCopy, 'chunk' | 'data'> {
  const read = async (
    blob: Blob | undefined,
    name: string,
    offset: number,
    chunk: ChunkRecord,
  ): Promise<ArrayBuffer> => {
    const where = `${quoted(name)}, bytes ${offset} to ${offset + chunk.bytes}`;
    const bytes = await blob
      ?.slice(offset, offset + chunk.bytes)
      .arrayBuffer()
      .catch(() => undefined);
    if (bytes === undefined)
      throw (
        refuse?.(`${where}: it cannot be read`) ??
        corrupt(`${where}: it cannot be read`, 'checkpoint.chunk.missing', { chunk: chunk.index })
      );
    await checked(bytes, chunk, where).catch((thrown: unknown) => {
      throw refuse?.(`${where}: other bytes than its sum says`) ?? thrown;
    });
    return bytes;
  };
  return {
    chunk: (file, offset, chunk) => read(files.get(file.name), file.name, offset, chunk),
    data: (offset, chunk) => read(data, 'data', offset, chunk),
  };
}

interface Carried {
  bytes: ArrayBuffer;
  file: FileRecord;
  offset: number;
  record: ChunkRecord;
}

/** Yields only the bytes of the chunks. */
export async function* bytesOf(
  chunks: AsyncIterable<Pick<Carried, 'bytes'>>,
): AsyncGenerator<ArrayBuffer> {
  for await (const { bytes } of chunks) yield bytes;
}

/** Yields every chunk of the files in order, with progress, checking the signal before each. */
export async function* carried(
  copy: Pick<GenerationCopy, 'manifest' | 'chunk'>,
  phase: Progress['phase'],
  signal?: AbortSignal,
  onProgress?: OnProgress,
): AsyncGenerator<Carried> {
  const total = copy.manifest.bytes;
  let loaded = 0;
  for (const file of copy.manifest.files) {
    let offset = 0;
    for (const record of file.chunks) {
      if (signal?.aborted) throw aborted('the call');
      yield { bytes: await copy.chunk(file, offset, record), file, offset, record };
      offset += record.bytes;
      loaded += record.bytes;
      onProgress?.(progressOf(phase, file.name, loaded, total));
    }
  }
}

/** Returns the files as Blobs, which the browser may move to disk, after verifying every chunk. */
export async function filesOf(
  copy: Pick<GenerationCopy, 'manifest' | 'chunk'>,
  phase: Progress['phase'],
  signal?: AbortSignal,
  onProgress?: OnProgress,
): Promise<Map<string, Blob>> {
  const pieces = new Map<string, Blob[]>(copy.manifest.files.map((file) => [file.name, []]));
  for await (const { bytes, file } of carried(copy, phase, signal, onProgress))
    pieces.get(file.name)?.push(new Blob([bytes]));
  return new Map([...pieces].map(([name, blobs]) => [name, new Blob(blobs)]));
}

/** Returns the bytes that a run has stored, after verifying them. */
export async function bytesIn(
  stored: RunRecord['data'],
  read: GenerationCopy['data'],
): Promise<Blob | undefined> {
  if (stored === undefined) return undefined;
  const pieces: Blob[] = [];
  let offset = 0;
  for (const chunk of stored.chunks) {
    pieces.push(new Blob([await read(offset, chunk)]));
    offset += chunk.bytes;
  }
  return new Blob(pieces);
}

/** Returns the run's stored data after verifying them. */
export const dataOf = ({
  record,
  data,
}: Pick<GenerationCopy, 'record' | 'data'>): Promise<Blob | undefined> =>
  bytesIn(record?.data, data);
