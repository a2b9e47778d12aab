/** Writes files to the database in chunks, and reads them back. */
import { aborted } from '../../protocol/errors.js';
import type { Connection } from './connection.js';
import { CHUNK_BYTES, committed, everyChunk, STRICT } from './database.js';
import type { ChunkKey, Database } from './database.js';
import { broken, corrupt, nameOf, quoted } from './faults.js';
import type { ChunkRecord, FileRecord } from './manifest.js';

/** A file that is being written to storage. */
export interface Incoming {
  name: string;
  bytes: number;
}
/** Returns the chunks of all files in order: 8 MiB each, except that the last chunk of a file is shorter. */
export type NextChunk = () => Promise<Uint8Array | undefined>;

/** Returns the SHA-256 in lower-case hex. */
export async function sha256(bytes: ArrayBuffer): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Copies the bytes of a view out of wasm memory, to an ArrayBuffer of exactly its length. */
export function exactBuffer(view: Uint8Array): ArrayBuffer {
  return new Uint8Array(view).buffer;
}

/** Stores one chunk and resolves when it is on disk. */
export async function putChunk(
  database: Database,
  key: ChunkKey,
  bytes: ArrayBuffer,
): Promise<void> {
  const transaction = database.transaction('chunks', 'readwrite', STRICT);
  await committed(transaction, transaction.store.put(bytes, key));
}

export interface Writing {
  /** Stores one chunk; if there is no room it may free some and try again. */
  put: (index: number, bytes: ArrayBuffer) => Promise<void>;
  hashed?: ((sha256: string) => unknown) | undefined;
  signal?: AbortSignal | undefined;
  onBytes?: ((file: string, bytes: number) => void) | undefined;
}

/** Streams files into chunks. Two are in memory: one is being read while the previous one is hashed and written. */
export async function writeChunks(
  files: readonly Incoming[],
  next: NextChunk,
  { put, hashed, signal, onBytes }: Writing,
): Promise<FileRecord[]> {
  const written: FileRecord[] = [];
  let flying: Promise<void> = Promise.resolve();
  let count = 0;
  const send = async (
    file: Incoming,
    chunks: ChunkRecord[],
    index: number,
    bytes: ArrayBuffer,
  ): Promise<void> => {
    const { byteLength } = bytes;
    const [hash] = await Promise.all([sha256(bytes), put(index, bytes)]);
    chunks.push({ index, bytes: byteLength, sha256: hash });
    await hashed?.(hash);
    onBytes?.(file.name, byteLength);
  };
  try {
    for (const file of files) {
      const chunks: ChunkRecord[] = [];
      written.push({ name: file.name, bytes: file.bytes, chunks });
      // The last file of a checkpoint contains the hashes of the files before it.
      await flying;
      for (let at = 0; at < file.bytes; at += CHUNK_BYTES) {
        if (signal?.aborted) throw aborted('the save');
        const wanted = Math.min(CHUNK_BYTES, file.bytes - at);
        const piece = await next();
        if (piece?.byteLength !== wanted)
          throw broken(
            file.name,
            `expected ${wanted} bytes at ${at} of ${file.bytes}, found ${piece?.byteLength ?? 'its end'}`,
          );
        await flying;
        flying = send(file, chunks, count++, exactBuffer(piece));
        flying.catch(() => undefined);
      }
    }
    await flying;
    return written;
  } catch (thrown) {
    await flying.catch(() => undefined);
    throw thrown;
  }
}

/** Reads a chunk and verifies that it is unchanged. */
export async function readChunk(
  connection: Connection,
  [run, generation]: [string, number],
  chunk: ChunkRecord,
): Promise<ArrayBuffer> {
  const where = `chunk ${chunk.index} of run ${quoted(run)}, generation ${generation}`;
  const bytes: unknown = await connection.use((database) =>
    database.get('chunks', [run, generation, chunk.index]).catch((thrown: unknown) => {
      // Browsers keep large values in separate files, which may be missing.
      const name = nameOf(thrown);
      if (name === 'InvalidStateError' || name === 'AbortError') throw thrown;
      return undefined;
    }),
  );
  if (!(bytes instanceof ArrayBuffer))
    throw corrupt(`${where} is missing`, 'checkpoint.chunk.missing', { chunk: chunk.index });
  await checked(bytes, chunk, where);
  return bytes;
}

/** Refuses bytes that do not match the chunk's length and hash. */
export async function checked(
  bytes: ArrayBuffer,
  chunk: ChunkRecord,
  where: string,
): Promise<void> {
  if (bytes.byteLength !== chunk.bytes)
    throw corrupt(
      `${where}: expected ${chunk.bytes} bytes, found ${bytes.byteLength}`,
      'checkpoint.chunk.length',
      { chunk: chunk.index },
    );
  if ((await sha256(bytes)) !== chunk.sha256)
    throw corrupt(`${where}: its SHA-256 differs`, 'checkpoint.chunk.hash', { chunk: chunk.index });
}

/** Removes the chunks of a failed save, unless the generation was published after all. */
export async function dropUnpublished(
  database: Database,
  run: string,
  generation: number,
): Promise<void> {
  const transaction = database.transaction(['chunks', 'manifests'], 'readwrite');
  const published = transaction.objectStore('manifests').getKey([run, generation]);
  const drop = async (): Promise<unknown> =>
    (await published) === undefined
      ? transaction.objectStore('chunks').delete(everyChunk(run, generation))
      : undefined;
  await committed(transaction, drop());
}
