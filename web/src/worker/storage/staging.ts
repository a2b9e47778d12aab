/** Imports a generation as a new run: the last transaction makes it visible, and without it everything is removed. */
import { aborted, TabtuneError } from '../../protocol/errors.js';
import type { OnProgress } from '../../protocol/reports.js';
import { putChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { committed, everyChunk, everyGeneration } from './database.js';
import type { Database } from './database.js';
import { noRoom, storageError } from './faults.js';
import { publish } from './generations.js';
import { lockRun } from '../../protocol/run-lock.js';
import type { RunLock } from '../../protocol/run-lock.js';
import { MANIFEST_FORMAT, sumOf } from './manifest.js';
import type { ChunkRecord, FileRecord, Manifest, RunRecord } from './manifest.js';
import { isRunId } from './names.js';
import { resident } from './opfs.js';
import { carried } from './generation-copy.js';
import type { GenerationCopy } from './generation-copy.js';
import { makeRoom } from './quota.js';

export interface Staged {
  manifest: Manifest;
  record: RunRecord;
}

interface Wish {
  /** Preferred id, used if no run has it. */
  run?: string | undefined;
  label: string;
  phase: 'import' | 'save';
  signal?: AbortSignal | undefined;
  onProgress?: OnProgress | undefined;
}

/** Imports the chunks. They are stored under the new run's id, without record and manifest, so that a sweep removes those of a crashed tab. */
export async function takeIn(
  connection: Connection,
  copy: GenerationCopy,
  wish: Wish,
): Promise<Staged> {
  const { data, baseData } = copy.record ?? {};
  const need = copy.manifest.bytes + (data?.bytes ?? 0) + (baseData?.bytes ?? 0);
  await makeRoom(need, async () => undefined);
  const lock = await newRun(connection, wish.run);
  try {
    return await stage(connection, copy, lock.run, wish);
  } catch (thrown) {
    await connection.use((database) => dropStaged(database, lock.run)).catch(() => undefined);
    const error = thrown instanceof TabtuneError ? thrown : storageError(thrown);
    throw error.code === 'QUOTA_EXCEEDED' && error.detail.need === undefined
      ? noRoom(need, undefined, thrown)
      : error;
  } finally {
    lock.release();
  }
}

/** Returns an unused run id, locked against the sweep of another tab. */
async function newRun(connection: Connection, wished: string | undefined): Promise<RunLock> {
  if (wished !== undefined && isRunId(wished) && !(await isKnown(connection, wished))) {
    const lock = await lockRun(wished).catch(() => undefined);
    if (lock) return lock;
  }
  return lockRun(crypto.randomUUID());
}

async function isKnown(connection: Connection, run: string): Promise<boolean> {
  const keys = await connection.use((database) => {
    const transaction = database.transaction(['runs', 'manifests', 'chunks']);
    return Promise.all([
      transaction.objectStore('runs').getKey(run),
      transaction.objectStore('manifests').getKey(everyGeneration(run)),
      transaction.objectStore('chunks').getKey(everyChunk(run)),
    ]);
  });
  return keys.some((key) => key !== undefined) || (await resident(run)) !== undefined;
}

async function stage(
  connection: Connection,
  copy: GenerationCopy,
  run: string,
  { label, phase, signal, onProgress }: Wish,
): Promise<Staged> {
  const put = (generation: number, index: number, bytes: ArrayBuffer): Promise<void> =>
    connection.use((database) => putChunk(database, [run, generation, index], bytes));
  const files: FileRecord[] = copy.manifest.files.map(({ name, bytes }) => ({
    name,
    bytes,
    chunks: [],
  }));
  let index = 0;
  for await (const { bytes, file, record } of carried(copy, phase, signal, onProgress)) {
    await put(1, index, bytes);
    files.find(({ name }) => name === file.name)?.chunks.push({ ...record, index });
    index += 1;
  }
  const data: ChunkRecord[] = [];
  let offset = 0;
  for (const chunk of copy.record?.data?.chunks ?? []) {
    if (signal?.aborted) throw aborted('the call');
    await put(0, data.length, await copy.data(offset, chunk));
    offset += chunk.bytes;
    data.push({ ...chunk, index: data.length });
  }
  const { driver = '{}', dataName = '', dataFiles, base, baseData } = copy.record ?? {};
  // Only a run of this database has them.
  for (const chunk of baseData?.chunks ?? []) {
    if (signal?.aborted) throw aborted('the call');
    await put(0, chunk.index, await copy.data(0, chunk));
  }
  const kept = copy.record?.data && { bytes: sumOf(data), chunks: data };
  const record: RunRecord = {
    run,
    label,
    createdAt: Date.now(),
    dataName,
    dataFiles,
    driver,
    data: kept,
    base,
    baseData,
  };
  const { step, totalSteps, loss, validationLoss, bytes, environment } = copy.manifest;
  const manifest: Manifest = {
    format: MANIFEST_FORMAT,
    run,
    generation: 1,
    label,
    step,
    totalSteps,
    loss,
    validationLoss,
    savedAt: Date.now(),
    bytes,
    environment,
    files,
  };
  if (signal?.aborted) throw aborted('the call');
  const block = { after: undefined, step, entries: copy.history };
  await connection.use((database) =>
    publish(database, { manifest, block, limit: Infinity, damaged: new Set(), record }),
  );
  return { manifest, record };
}

/** Removes all chunks of a run that was not published. */
async function dropStaged(database: Database, run: string): Promise<void> {
  const transaction = database.transaction(['chunks', 'runs'], 'readwrite');
  const known = transaction.objectStore('runs').getKey(run);
  const drop = async (): Promise<unknown> =>
    (await known) === undefined
      ? transaction.objectStore('chunks').delete(everyChunk(run))
      : undefined;
  await committed(transaction, drop());
}
