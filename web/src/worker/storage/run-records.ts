/** The records of runs in the database, with the training data that are stored with them. */
import type { BaseFile, StoredBaseFile } from '../../protocol/base-files.js';
import { putChunk, writeChunks } from './chunks.js';
import type { NextChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { STRICT, within } from './database.js';
import { absent, unlessFailed } from './faults.js';
import { bytesIn, chunksOf, dataOf } from './generation-copy.js';
import { readRun } from './manifest.js';
import type { RunRecord } from './manifest.js';
import { resident } from './opfs.js';

/** Bytes of inputs that are to be stored with a run. */
export interface RunData {
  bytes: number;
  next: NextChunk;
}

/** Index of the first chunk of base files, far behind those of training data, so that either is written without the other. */
const BASE_INDEX = 2 ** 32;

/** Stores bytes among the run's own chunks, from this index on; nothing remains of bytes that cannot be stored as a whole. */
async function storedBytes(
  connection: Connection,
  run: string,
  first: number,
  data: RunData | undefined,
): Promise<RunRecord['data']> {
  if (data === undefined) return undefined;
  const put = (index: number, bytes: ArrayBuffer): Promise<void> =>
    connection.use((database) => putChunk(database, [run, 0, first + index], bytes));
  try {
    const [file] = await writeChunks([{ name: 'data', bytes: data.bytes }], data.next, { put });
    return (
      file && {
        bytes: file.bytes,
        chunks: file.chunks.map((chunk) => ({ ...chunk, index: first + chunk.index })),
      }
    );
  } catch (thrown) {
    const all = IDBKeyRange.bound([run, 0, first], [run, 0, first + BASE_INDEX - 1]);
    await connection.use((database) => database.delete('chunks', all)).catch(() => undefined);
    throw thrown;
  }
}

/** Writes the record of a run, and its data if they are given. The files of a base that it has already are kept. */
export async function writeRecord(
  connection: Connection,
  record: Omit<RunRecord, 'data' | 'base' | 'baseData'>,
  data: RunData | undefined,
): Promise<void> {
  const { run } = record;
  const kept = await storedBytes(connection, run, 0, data);
  await connection.use((database) => {
    const transaction = database.transaction('runs', 'readwrite', STRICT);
    return within(transaction, async () => {
      const before = Object(await transaction.store.get(run)) as object;
      await transaction.store.put({ ...before, ...record, data: kept }, run);
    });
  });
}

/** Records the files of an adapter's base, and stores the bytes of those that are marked as stored. */
export async function writeBase(
  connection: Connection,
  run: string,
  base: readonly BaseFile[],
  bytes: RunData | undefined,
): Promise<void> {
  const baseData = await storedBytes(connection, run, BASE_INDEX, bytes);
  const record = await recordOf(connection, run);
  await connection.use((database) => database.put('runs', { ...record, base, baseData }, run));
}

/** Returns the record of a run, from the database or else from the alternative storage. */
export async function recordOf(connection: Connection, run: string): Promise<RunRecord> {
  const stored: unknown = await connection
    .use((database) => database.get('runs', run))
    .catch(unlessFailed(undefined));
  try {
    if (stored !== undefined) return readRun(stored, run);
  } catch (thrown) {
    const housed = (await resident(run))?.head.run;
    if (housed) return housed;
    throw thrown;
  }
  const housed = (await resident(run))?.head.run;
  if (housed) return housed;
  throw absent(run);
}

/** Returns the files of an adapter's base, with the bytes of those that are stored; damaged ones count as none. */
export async function storedBase(connection: Connection, run: string): Promise<StoredBaseFile[]> {
  const { base = [], baseData } = await recordOf(connection, run);
  const bytes = await bytesIn(baseData, chunksOf(connection, run, 0).data).catch(() => undefined);
  let at = 0;
  return base.map((file) => ({
    ...file,
    blob: file.stored && bytes ? bytes.slice(at, (at += file.bytes)) : undefined,
  }));
}

/** Returns the stored training data of a run after verifying them. */
export async function storedData(connection: Connection, run: string): Promise<Blob | undefined> {
  const record = await recordOf(connection, run);
  if (record.data === undefined) return undefined;
  try {
    return await bytesIn(record.data, chunksOf(connection, run, 0).data);
  } catch (thrown) {
    const housed = await resident(run);
    if (housed?.head.run?.data === undefined) throw thrown;
    return dataOf(housed.copy);
  }
}
