/** The records of runs in the database, with the training data that are stored with them. */
import { putChunk, writeChunks } from './chunks.js';
import type { NextChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { committed, everyChunk, STRICT } from './database.js';
import { absent, unlessFailed } from './faults.js';
import { chunksOf, dataOf } from './generation-copy.js';
import { readRun } from './manifest.js';
import type { RunRecord } from './manifest.js';
import { resident } from './opfs.js';

/** Training data that are to be stored. */
export interface RunData {
  bytes: number;
  next: NextChunk;
}

/** Writes the record of a run, and its data if they are given; nothing remains of data that cannot be stored as a whole. */
export async function writeRecord(
  connection: Connection,
  record: Omit<RunRecord, 'data'>,
  data: RunData | undefined,
): Promise<void> {
  const { run } = record;
  let kept: RunRecord['data'];
  if (data !== undefined) {
    const put = (index: number, bytes: ArrayBuffer): Promise<void> =>
      connection.use((database) => putChunk(database, [run, 0, index], bytes));
    try {
      const [file] = await writeChunks([{ name: 'data', bytes: data.bytes }], data.next, { put });
      kept = file && { bytes: file.bytes, chunks: file.chunks };
    } catch (thrown) {
      await connection
        .use((database) => database.delete('chunks', everyChunk(run, 0)))
        .catch(() => undefined);
      throw thrown;
    }
  }
  await connection.use((database) => {
    const transaction = database.transaction('runs', 'readwrite', STRICT);
    return committed(transaction, transaction.store.put({ ...record, data: kept }, run));
  });
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

/** Returns the stored training data of a run after verifying them. */
export async function storedData(connection: Connection, run: string): Promise<Blob | undefined> {
  const record = await recordOf(connection, run);
  if (record.data === undefined) return undefined;
  try {
    return await dataOf({ record, data: chunksOf(connection, run, 0).data });
  } catch (thrown) {
    const housed = await resident(run);
    if (housed?.head.run?.data === undefined) throw thrown;
    return dataOf(housed.copy);
  }
}
