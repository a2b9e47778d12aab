/** The checkpoints of this origin: save, list, load with fallback, remove. */
import { escaped, TabtuneError } from '../errors.js';
import type { CheckpointInfo } from '../protocol.js';
import { MANIFEST_FORMAT, openDatabase, runShape, storageError } from './database.js';
import type { Database, Manifest, RunRecord } from './database.js';
import { corrupt, dropChunks, publish, readFiles, readManifest, writeChunks } from './generations.js';
import type { Incoming, NextChunk } from './generations.js';

/** State that a save carries beside its bytes. */
export interface SaveMeta {
  step: number;
  totalSteps: number;
  loss: number | undefined;
  /** Generations kept of the run; at least two, so that one bad disk block is not the end. */
  keep: number;
  environment: Manifest['environment'];
}

export interface Loaded {
  manifest: Manifest;
  files: Map<string, Blob>;
  /** Why the newest generation was passed over, if it was. */
  fellBack: TabtuneError | undefined;
}

export class CheckpointStore {
  #database: Promise<Database> | undefined;
  #saving: { run: string; generation: number } | undefined;

  #open(): Promise<Database> {
    this.#database ??= openDatabase(() => {
      this.#database = undefined;
    }).catch((thrown: unknown) => {
      this.#database = undefined;
      throw thrown;
    });
    return this.#database;
  }

  /** Runs `work` on the database; a lost connection is opened once more, unless `work` consumes a stream. */
  async #with<T>(work: (database: Database) => Promise<T>, repeatable = true): Promise<T> {
    try {
      return await work(await this.#open());
    } catch (thrown) {
      const name: unknown = typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'name') : undefined;
      if (name !== 'InvalidStateError' || !repeatable) throw storageError(thrown);
      this.#database = undefined;
      try {
        return await work(await this.#open());
      } catch (again) {
        throw storageError(again);
      }
    }
  }

  /** Whether the run is registered. */
  async hasRun(run: string): Promise<boolean> {
    return (await this.#with((database) => database.getKey('runs', run))) !== undefined;
  }

  /** Registers a run, with its training data if that is to be kept. */
  createRun(record: Omit<RunRecord, 'data'>, data: { bytes: number; next: NextChunk } | undefined): Promise<void> {
    return this.#with(async (database) => {
      let kept: RunRecord['data'];
      if (data !== undefined) {
        const [file] = await writeChunks(database, record.run, 0, [{ name: 'data', bytes: data.bytes }], data.next);
        kept = file && { bytes: file.bytes, chunks: file.chunks };
      }
      const transaction = database.transaction('runs', 'readwrite', { durability: 'strict' });
      void transaction.store.put({ ...record, data: kept }, record.run).catch(() => undefined);
      await transaction.done;
    }, false);
  }

  async runRecord(run: string): Promise<RunRecord> {
    const stored = await this.#with((database) => database.get('runs', run));
    if (stored === undefined) throw missing(run);
    try {
      return runShape(stored, 'run');
    } catch {
      throw corrupt(`the record of run ${escaped(run)}`, 'checkpoint.run');
    }
  }

  /** The run's kept training data, verified. */
  async runData(run: string): Promise<Blob | undefined> {
    const { data } = await this.runRecord(run);
    if (data === undefined) return undefined;
    const files = await this.#with((database) => readFiles(database, run, 0, [{ name: 'data', ...data }]));
    return files.get('data');
  }

  /** Streams a generation in; the old head stays until the new one is whole. */
  save(run: string, label: string, files: Incoming[], next: NextChunk, meta: SaveMeta): Promise<Manifest> {
    return this.#with(async (database) => {
      const { keep, ...rest } = meta;
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      await checkRoom(bytes);
      const generation = ((await database.get('heads', run)) ?? 0) + 1;
      this.#saving = { run, generation };
      try {
        // Chunks of an attempt that died halfway may lie there.
        await dropChunks(database, run, generation);
        const written = await writeChunks(database, run, generation, files, next);
        const manifest: Manifest = { format: MANIFEST_FORMAT, run, generation, label, savedAt: Date.now(), bytes, files: written, ...rest };
        await publish(database, manifest, Math.max(2, keep));
        return manifest;
      } catch (thrown) {
        await dropChunks(database, run, generation).catch(() => undefined);
        throw thrown;
      } finally {
        this.#saving = undefined;
      }
    }, false);
  }

  /** The given generation, or the newest that is whole. */
  load(run: string, generation?: number): Promise<Loaded> {
    return this.#with(async (database) => {
      const keys = await database.getAllKeys('manifests', IDBKeyRange.bound([run, 0], [run, Number.MAX_SAFE_INTEGER]));
      const candidates = keys.map(([, g]) => g).filter((g) => generation === undefined || g === generation).reverse();
      let fault: TabtuneError | undefined;
      for (const candidate of candidates) {
        try {
          const manifest = await readManifest(database, run, candidate);
          if (manifest === undefined) continue;
          return { manifest, files: await readFiles(database, run, candidate, manifest.files), fellBack: fault };
        } catch (thrown) {
          if (!(thrown instanceof TabtuneError) || thrown.code !== 'CHECKPOINT_CORRUPT') throw thrown;
          fault ??= thrown;
        }
      }
      throw fault ?? missing(run);
    });
  }

  /** Every whole generation, newest first. Damaged manifests are left out: they cannot be resumed. */
  list(run?: string): Promise<CheckpointInfo[]> {
    return this.#with(async (database) => {
      const found: CheckpointInfo[] = [];
      for (const [owner, generation] of await database.getAllKeys('manifests')) {
        if (run !== undefined && owner !== run) continue;
        const manifest = await readManifest(database, owner, generation).catch(() => undefined);
        if (manifest === undefined) continue;
        const record = await this.runRecord(owner).catch(() => undefined);
        found.push(infoOf(manifest, record));
      }
      return found.sort((a, b) => b.savedAt - a.savedAt);
    });
  }

  /** Removes one generation, or the run with everything it has. */
  remove(run: string, generation?: number): Promise<void> {
    return this.#with(async (database) => {
      const transaction = database.transaction(['manifests', 'heads', 'chunks', 'runs'], 'readwrite', { durability: 'strict' });
      const manifests = transaction.objectStore('manifests');
      const keys = await manifests.getAllKeys(IDBKeyRange.bound([run, 0], [run, Number.MAX_SAFE_INTEGER]));
      const left = generation === undefined ? [] : keys.filter(([, g]) => g !== generation);
      const range = (low: number, high: number) => IDBKeyRange.bound([run, low, 0], [run, high, Number.MAX_SAFE_INTEGER]);
      const drop = left.length === 0 ? range(0, Number.MAX_SAFE_INTEGER) : range(generation ?? 0, generation ?? 0);
      void transaction.objectStore('chunks').delete(drop).catch(() => undefined);
      for (const key of keys) if (!left.includes(key)) void manifests.delete(key).catch(() => undefined);
      const newest = left.at(-1)?.[1];
      if (newest === undefined) {
        void transaction.objectStore('heads').delete(run).catch(() => undefined);
        void transaction.objectStore('runs').delete(run).catch(() => undefined);
      } else void transaction.objectStore('heads').put(newest, run).catch(() => undefined);
      await transaction.done;
    });
  }

  /** Deletes chunks that no manifest names; never while a save runs. */
  sweep(run: string): Promise<void> {
    return this.#with(async (database) => {
      if (this.#saving !== undefined) return;
      const manifests = await database.getAllKeys('manifests', IDBKeyRange.bound([run, 0], [run, Number.MAX_SAFE_INTEGER]));
      const known = new Set([0, ...manifests.map(([, g]) => g)]);
      const chunks = await database.getAllKeys('chunks', IDBKeyRange.bound([run, 0, 0], [run, Number.MAX_SAFE_INTEGER, 0]));
      for (const orphan of new Set(chunks.map(([, g]) => g))) if (!known.has(orphan)) await dropChunks(database, run, orphan);
    });
  }
}

const missing = (run: string): TabtuneError => new TabtuneError('CHECKPOINT_CORRUPT', `run ${escaped(run)} has no checkpoint in this browser`, { code: 'checkpoint.none' });

export function infoOf(manifest: Manifest, record: RunRecord | undefined): CheckpointInfo {
  const { run, generation, step, totalSteps, loss, bytes, savedAt, label } = manifest;
  return { run, generation, step, totalSteps, loss, bytes, savedAt, label, dataName: record?.dataName ?? '', hasData: record?.data !== undefined };
}

/** Compares the need with the browser's own estimate before the first byte is written. */
async function checkRoom(need: number): Promise<void> {
  const estimate = await globalThis.navigator?.storage?.estimate?.().catch(() => undefined);
  if (estimate?.quota === undefined) return;
  const free = estimate.quota - (estimate.usage ?? 0);
  if (need > free) {
    const message = `this checkpoint needs ${need} bytes and the browser allows ${free} more. Delete older runs, or export to a file.`;
    throw new TabtuneError('QUOTA_EXCEEDED', message, { code: 'storage.quota', need, have: free });
  }
}
