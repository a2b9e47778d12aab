/** Writing and reading one generation: chunks first, read-back, then manifest and head in one strict transaction. */
import { TabtuneError } from '../errors.js';
import { CHUNK_BYTES, exactBuffer, MANIFEST_FORMAT, manifestShape, sha256, storageError } from './database.js';
import type { Database, Manifest } from './database.js';

/** A file on its way into storage. */
export interface Incoming {
  name: string;
  bytes: number;
}
/** Chunks of all files, in their order; a chunk never crosses a file. */
export type NextChunk = () => Promise<Uint8Array | undefined>;

interface ChunkRecord {
  index: number;
  bytes: number;
  sha256: string;
}

const everyChunk = (run: string, generation: number) => IDBKeyRange.bound([run, generation, 0], [run, generation, Number.MAX_SAFE_INTEGER]);

/** Puts one chunk and resolves when the disk has it. */
async function putChunk(database: Database, run: string, generation: number, index: number, bytes: ArrayBuffer): Promise<ChunkRecord> {
  const hash = await sha256(bytes);
  const length = bytes.byteLength;
  const transaction = database.transaction('chunks', 'readwrite', { durability: 'strict' });
  void transaction.store.put(bytes, [run, generation, index]).catch(() => undefined);
  await transaction.done;
  return { index, bytes: length, sha256: hash };
}

/** Streams `files` into the chunks of a generation; on failure nothing of them remains. */
export async function writeChunks(database: Database, run: string, generation: number, files: Incoming[], next: NextChunk): Promise<Manifest['files']> {
  const written: Manifest['files'] = [];
  let index = 0;
  try {
    for (const file of files) {
      const chunks: ChunkRecord[] = [];
      let got = 0;
      while (got < file.bytes) {
        const chunk = await next();
        if (chunk === undefined || chunk.byteLength === 0 || got + chunk.byteLength > file.bytes) {
          throw new TabtuneError('STORAGE_FAILED', `the checkpoint stream of ${file.name} ended at ${got} of ${file.bytes} bytes`, { code: 'storage.stream' });
        }
        for (let at = 0; at < chunk.byteLength; at += CHUNK_BYTES) {
          const piece = chunk.subarray(at, Math.min(at + CHUNK_BYTES, chunk.byteLength));
          chunks.push(await putChunk(database, run, generation, index++, exactBuffer(piece)));
        }
        got += chunk.byteLength;
      }
      written.push({ name: file.name, bytes: file.bytes, chunks });
    }
    await readBack(database, run, generation, written);
    return written;
  } catch (thrown) {
    await dropChunks(database, run, generation).catch(() => undefined);
    throw storageError(thrown);
  }
}

/** One random chunk is read again before the generation may count. */
async function readBack(database: Database, run: string, generation: number, files: Manifest['files']): Promise<void> {
  const all = files.flatMap((file) => file.chunks);
  const chosen = all[Math.floor(Math.random() * all.length)];
  if (chosen === undefined) return;
  await verified(database, run, generation, chosen);
}

async function verified(database: Database, run: string, generation: number, chunk: ChunkRecord): Promise<ArrayBuffer> {
  const bytes = await database.get('chunks', [run, generation, chunk.index]);
  const where = `chunk ${chunk.index} of run ${run}, generation ${generation}`;
  if (bytes === undefined) throw corrupt(`${where} is missing`, 'checkpoint.chunk.missing');
  if (bytes.byteLength !== chunk.bytes) throw corrupt(`${where}: expected ${chunk.bytes} bytes, found ${bytes.byteLength}`, 'checkpoint.chunk.length');
  if ((await sha256(bytes)) !== chunk.sha256) throw corrupt(`${where}: its SHA-256 differs`, 'checkpoint.chunk.hash');
  return bytes;
}

export const corrupt = (what: string, code: string): TabtuneError => new TabtuneError('CHECKPOINT_CORRUPT', `checkpoint is damaged: ${what}`, { code });

/** Every chunk of the files, verified, as Blobs: they may leave memory for disk again. */
export async function readFiles(database: Database, run: string, generation: number, files: Manifest['files']): Promise<Map<string, Blob>> {
  const blobs = new Map<string, Blob>();
  for (const file of files) {
    const pieces: Blob[] = [];
    for (const chunk of file.chunks) pieces.push(new Blob([await verified(database, run, generation, chunk)]));
    const blob = new Blob(pieces);
    if (blob.size !== file.bytes) throw corrupt(`${file.name}: expected ${file.bytes} bytes, found ${blob.size}`, 'checkpoint.file.length');
    blobs.set(file.name, blob);
  }
  return blobs;
}

/** The step that makes a generation exist: manifest, head, and the removal of what is now too old. */
export async function publish(database: Database, manifest: Manifest, keep: number): Promise<void> {
  const { run, generation } = manifest;
  const transaction = database.transaction(['manifests', 'heads', 'chunks'], 'readwrite', { durability: 'strict' });
  const manifests = transaction.objectStore('manifests');
  const older = (await manifests.getAllKeys(IDBKeyRange.bound([run, 0], [run, generation - 1]))).map(([, g]) => g);
  const doomed = older.slice(0, Math.max(0, older.length - (keep - 1)));
  for (const old of doomed) {
    void manifests.delete([run, old]).catch(() => undefined);
    void transaction.objectStore('chunks').delete(everyChunk(run, old)).catch(() => undefined);
  }
  void manifests.put(manifest, [run, generation]).catch(() => undefined);
  void transaction.objectStore('heads').put(generation, run).catch(() => undefined);
  await transaction.done;
}

export async function dropChunks(database: Database, run: string, generation: number): Promise<void> {
  const transaction = database.transaction('chunks', 'readwrite');
  void transaction.store.delete(everyChunk(run, generation)).catch(() => undefined);
  await transaction.done;
}

/** A stored manifest, checked; `undefined` if there is none. */
export async function readManifest(database: Database, run: string, generation: number): Promise<Manifest | undefined> {
  const stored = await database.get('manifests', [run, generation]);
  if (stored === undefined) return undefined;
  const format: unknown = typeof stored === 'object' && stored !== null ? Reflect.get(stored, 'format') : undefined;
  if (typeof format === 'number' && format > MANIFEST_FORMAT) {
    throw new TabtuneError('CHECKPOINT_VERSION', `checkpoint format ${format}: this version reads up to ${MANIFEST_FORMAT}. Update the page.`, { code: 'checkpoint.version' });
  }
  try {
    return manifestShape(stored, 'manifest');
  } catch (thrown) {
    throw corrupt(`manifest of run ${run}, generation ${generation}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, 'checkpoint.manifest');
  }
}
