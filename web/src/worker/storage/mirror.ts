/** Copies between the database and the alternative storage, in both directions. */
import { TabtuneError } from '../../protocol/errors.js';
import { putChunk } from './chunks.js';
import type { Connection } from './connection.js';
import { everyGeneration, STRICT, within } from './database.js';
import { nameOf } from './faults.js';
import { historyOf, readBlocks } from './history.js';
import type { HistoryBlock } from './history.js';
import { readManifest, readRun } from './manifest.js';
import { evict, resident, writeResident } from './opfs.js';
import { chunksOf } from './generation-copy.js';
import { freeBytes } from './quota.js';

/** Writes the newest generation to the alternative storage; returns false if there is no room for two. */
export async function mirrorNewest(connection: Connection, run: string): Promise<boolean> {
  const keys = await connection.use((database) =>
    database.getAllKeys('manifests', everyGeneration(run)),
  );
  const generation = keys.at(-1)?.[1];
  if (generation === undefined) return false;
  if ((await resident(run))?.generation === generation) return true;
  const [stored, known] = await connection.use((database) => {
    const transaction = database.transaction(['manifests', 'runs']);
    return Promise.all([
      transaction.objectStore('manifests').get([run, generation]),
      transaction.objectStore('runs').get(run),
    ]);
  });
  const manifest = readManifest(stored, run, generation);
  if (((await freeBytes()) ?? Infinity) < 2 * manifest.bytes) return false;
  const blocks = await connection.use((database) => readBlocks(database, run));
  const history = historyOf(blocks, manifest.step, generation);
  const isThere = async (): Promise<boolean> =>
    (await connection.use((database) => database.getKey('manifests', [run, generation]))) !==
    undefined;
  try {
    await writeResident({
      manifest,
      record: readRun(known, run),
      history,
      ...chunksOf(connection, run, generation),
    });
  } catch (thrown) {
    if (nameOf(thrown) === 'QuotaExceededError' || nameOf(thrown) === 'NotSupportedError')
      return false;
    // A generation that was removed in the meantime needs no copy.
    if (thrown instanceof TabtuneError && !(await isThere())) return false;
    throw thrown;
  }
  if (await isThere()) return true;
  await evict(run, generation);
  return false;
}

/** Restores the data that the database lacks of a run read from the alternative storage, except for the generation itself: the next save adds one. */
export async function restoreRun(connection: Connection, run: string): Promise<boolean> {
  const there = await resident(run);
  if (there?.head.run === undefined) return false;
  const { run: record, manifest } = there.head;
  try {
    const known: unknown = await connection.use((database) => database.get('runs', run));
    if (known !== undefined) return false;
    let offset = 0;
    for (const chunk of record.data?.chunks ?? []) {
      const bytes = await there.copy.data(offset, chunk);
      await connection.use((database) => putChunk(database, [run, 0, chunk.index], bytes));
      offset += chunk.bytes;
    }
    const block: HistoryBlock = {
      after: undefined,
      step: manifest.step,
      entries: there.copy.history,
    };
    await connection.use((database) => {
      const transaction = database.transaction(['runs', 'history'], 'readwrite', STRICT);
      return within(transaction, async () => {
        await Promise.all([
          transaction.objectStore('runs').put(record, run),
          transaction.objectStore('history').put(block, [run, manifest.generation]),
        ]);
      });
    });
    return true;
  } catch {
    // The checkpoint itself was read; if there is no room for the rest, the next save registers the run again.
    return false;
  }
}
