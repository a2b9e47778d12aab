/** A save: writes chunks, reads one back, checks the GPU once more, and then publishes in one transaction. */
import { aborted, TabtuneError } from '../../protocol/errors.js';
import type { OnProgress } from '../../protocol/reports.js';
import type { HistoryEntry } from '../../protocol/events.js';
import { progressOf } from '../progress.js';
import { dropUnpublished, putChunk, readChunk, writeChunks } from './chunks.js';
import type { Incoming, NextChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { failed, foreign, nameOf, noRoom, storageError, vanished } from './faults.js';
import { dropFurther, publish, generationsOf } from './generations.js';
import { newBlock, readBlocks, startOf, upTo } from './history.js';
import { MANIFEST_FORMAT, sumOf } from './manifest.js';
import type { FileRecord, Manifest } from './manifest.js';
import { resident } from './opfs.js';
import { freeBytes, makeRoom } from './quota.js';

export interface SaveMeta {
  step: number;
  totalSteps: number;
  loss?: number | undefined;
  validationLoss?: number | undefined;
  environment: Manifest['environment'];
  /** Number of generations of the run to keep; at least two. */
  saveTotalLimit: number;
  /** 'decay' if a decay or annealing starts here: the generation is kept for further ones. */
  mark?: 'decay' | undefined;
}

export interface SaveRequest {
  run: string;
  label: string;
  files: readonly Incoming[];
  /** Returns pieces of 8 MiB, the last one of a file shorter; each is copied before the next is requested. */
  next: NextChunk;
  /** Receives the SHA-256 of each piece, in order. */
  hashed?: ((sha256: string) => unknown) | undefined;
  /** Called before the generation is published; a fault of the GPU that it throws is passed on unchanged. */
  confirm?: (() => Promise<void>) | undefined;
  meta: SaveMeta;
  /** History since the last generation. */
  history?: readonly HistoryEntry[] | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: OnProgress | undefined;
}

/** Facts about the run that the store knows in addition to the database. */
export interface SaveContext {
  damaged: ReadonlySet<number>;
  /** Generation that was loaded or saved last. */
  present: number | undefined;
}

export async function saveGeneration(
  connection: Connection,
  request: SaveRequest,
  { damaged, present }: SaveContext,
): Promise<Manifest> {
  const { run, label, files, meta, signal } = request;
  const { saveTotalLimit: limit, mark, ...rest } = meta;
  const status = await connection.use((database) => generationsOf(database, run));
  if (!status.registered) throw vanished(run, 'the record');
  // A run whose database was deleted continues with the number and the history of the alternative storage.
  const housed = status.generations.length === 0 ? await resident(run) : undefined;
  const generation = Math.max(status.highest, housed?.generation ?? 0) + 1;
  const bytes = sumOf(files);
  await makeRoom(bytes, () => dropFurther(connection, run, damaged));
  // Chunks of an interrupted attempt may exist.
  await connection.use((database) => dropUnpublished(database, run, generation));
  try {
    const written = await writeGeneration(connection, request, generation, damaged);
    await readBack(connection, run, generation, written);
    if (signal?.aborted) throw aborted('the save');
    await foreign(async () => request.confirm?.())();
    const manifest: Manifest = {
      format: MANIFEST_FORMAT,
      run,
      generation,
      label,
      savedAt: Date.now(),
      bytes,
      files: written,
      ...rest,
    };
    if (mark) Object.assign(manifest, { mark, kept: true });
    const blocks = await connection.use((database) => readBlocks(database, run));
    const recent = request.history ?? [];
    const entries =
      blocks.size === 0 && housed
        ? [...upTo(housed.copy.history, startOf(recent, meta.step)), ...recent]
        : recent;
    const block = newBlock(blocks, entries, meta.step, present);
    await connection.use((database) => publish(database, { manifest, block, limit, damaged }));
    return manifest;
  } catch (thrown) {
    await connection
      .use((database) => dropUnpublished(database, run, generation))
      .catch(() => undefined);
    throw thrown;
  }
}

async function writeGeneration(
  connection: Connection,
  request: SaveRequest,
  generation: number,
  damaged: ReadonlySet<number>,
): Promise<FileRecord[]> {
  const { run, files, next, hashed, signal, onProgress } = request;
  const total = sumOf(files);
  let loaded = 0;
  const put = async (index: number, bytes: ArrayBuffer): Promise<void> => {
    for (;;) {
      try {
        return await connection.use((database) =>
          putChunk(database, [run, generation, index], bytes),
        );
      } catch (thrown) {
        if (nameOf(thrown) !== 'QuotaExceededError') throw thrown;
        // The estimate may not reflect the quota; if nothing else is known, `loaded` bytes did fit.
        if ((await dropFurther(connection, run, damaged)) === undefined)
          throw noRoom(total, Math.min(loaded, (await freeBytes()) ?? loaded), thrown);
      }
    }
  };
  return writeChunks(files, foreign(next), {
    put,
    hashed: hashed && foreign(hashed),
    signal,
    onBytes: (file, bytes) => {
      loaded += bytes;
      onProgress?.(progressOf('save', file, loaded, total));
    },
  });
}

/** Reads one random chunk back before the generation is published. An error in it is a fault of the disk, not of a checkpoint. */
async function readBack(
  connection: Connection,
  run: string,
  generation: number,
  files: readonly FileRecord[],
): Promise<void> {
  const all = files.flatMap((file) => file.chunks);
  const chosen = all[Math.floor(Math.random() * all.length)];
  if (chosen === undefined) return;
  try {
    await readChunk(connection, [run, generation], chosen);
  } catch (thrown) {
    const error = thrown instanceof TabtuneError ? thrown : storageError(thrown);
    if (error.detail.code === 'checkpoint.chunk.missing')
      throw vanished(run, `chunk ${chosen.index}`);
    throw error.code === 'CHECKPOINT_CORRUPT'
      ? failed(`what was written was not read back: ${error.message}`, error)
      : error;
  }
}
