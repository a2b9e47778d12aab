/** Generations of a run in the database: list, publish, remove. */
import type { Connection } from './connection.js';
import { everyChunk, everyGeneration, SAVES, STORES, STRICT, within } from './database.js';
import type { Database } from './database.js';
import { vanished } from './faults.js';
import type { HistoryBlock } from './history.js';
import { readManifest } from './manifest.js';
import type { Manifest, RunRecord } from './manifest.js';
import { beyondLimit, nextToGo } from './retention.js';

/** Facts about a run that a save needs. */
export interface RunStatus {
  registered: boolean;
  /** Highest generation number that may still be referenced. */
  highest: number;
  generations: number[];
}

/** Returns a number from `heads`, or 0 if there is none. */
const numberIn = (stored: unknown): number => (Number.isSafeInteger(stored) ? Number(stored) : 0);

export async function generationsOf(database: Database, run: string): Promise<RunStatus> {
  const transaction = database.transaction(['manifests', 'heads', 'runs', 'history']);
  const [record, head, manifests, blocks] = await Promise.all([
    transaction.objectStore('runs').getKey(run),
    transaction.objectStore('heads').get(run),
    transaction.objectStore('manifests').getAllKeys(everyGeneration(run)),
    transaction.objectStore('history').getAllKeys(everyGeneration(run)),
  ]);
  const generations = manifests.map(([, generation]) => generation);
  const highest = Math.max(
    numberIn(head),
    ...generations,
    ...blocks.map(([, generation]) => generation),
  );
  return { registered: record !== undefined, highest, generations };
}

/** Returns the readable manifests of a run, and the generations with a damaged manifest. A manifest of a newer format is neither. */
async function sorted(
  stored: { keys: [string, number][]; values: unknown[] },
  run: string,
): Promise<{ whole: Manifest[]; damaged: number[] }> {
  const whole: Manifest[] = [];
  const damaged: number[] = [];
  for (const [at, [, generation]] of stored.keys.entries()) {
    try {
      whole.push(readManifest(stored.values[at], run, generation));
    } catch (thrown) {
      if (Reflect.get(Object(thrown), 'code') === 'CHECKPOINT_CORRUPT') damaged.push(generation);
    }
  }
  return { whole, damaged };
}

export interface Publication {
  manifest: Manifest;
  block: HistoryBlock;
  /** Number of generations to keep. */
  limit: number;
  /** Generations that are known to be damaged, and do not count as kept. */
  damaged: ReadonlySet<number>;
  /** Record of a run that is registered together with this, its first generation. */
  record?: RunRecord | undefined;
}

/** Publishes a generation in a single transaction; repeating it changes nothing. */
export async function publish(
  database: Database,
  { manifest, block, limit, damaged, record }: Publication,
): Promise<void> {
  const { run, generation } = manifest;
  const transaction = database.transaction(STORES, 'readwrite', STRICT);
  const manifests = transaction.objectStore('manifests');
  const chunks = transaction.objectStore('chunks');
  const heads = transaction.objectStore('heads');
  await within(transaction, async () => {
    const [saves, known, count, dataCount] = await Promise.all([
      heads.get(SAVES),
      transaction.objectStore('runs').getKey(run),
      chunks.count(everyChunk(run, generation)),
      record ? chunks.count(everyChunk(run, 0)) : undefined,
    ]);
    if (known === undefined && record === undefined) throw vanished(run, 'the record');
    const expected = manifest.files.reduce((sum, file) => sum + file.chunks.length, 0);
    if (count !== expected) throw vanished(run, `${expected - count} of ${expected} chunks`);
    const inputs = [record?.data, record?.baseData].flatMap((stored) => stored?.chunks ?? []);
    if (dataCount !== undefined && dataCount !== inputs.length) throw vanished(run, 'the data');
    const keys = await manifests.getAllKeys(everyGeneration(run));
    const found = await sorted({ keys, values: await manifests.getAll(everyGeneration(run)) }, run);
    const older = found.whole.filter(
      (other) => other.generation !== generation && !damaged.has(other.generation),
    );
    const bad = [
      ...found.damaged,
      ...[...damaged].filter((other) => keys.some(([, key]) => key === other)),
    ].filter((other) => other !== generation);
    const serial = numberIn(saves) + 1;
    const requests: Promise<unknown>[] = [
      manifests.put({ ...manifest, serial }, [run, generation]),
      transaction.objectStore('history').put(block, [run, generation]),
      heads.put(generation, run),
      heads.put(serial, SAVES),
    ];
    if (record) requests.push(transaction.objectStore('runs').put(record, run));
    for (const gone of [
      ...beyondLimit([...older, manifest], limit),
      ...beyondBad(older.length, bad),
    ]) {
      requests.push(manifests.delete([run, gone]), chunks.delete(everyChunk(run, gone)));
    }
    await Promise.all(requests);
  });
}

/** Returns the damaged generations to remove: all, once there is another complete one in addition to the new one. */
const beyondBad = (whole: number, bad: readonly number[]): readonly number[] =>
  whole > 0 ? bad : [];

/** Removes the generation that retention would remove next. Returns its bytes, or `undefined` if all must be kept. */
export async function dropFurther(
  connection: Connection,
  run: string,
  damaged: ReadonlySet<number>,
): Promise<number | undefined> {
  return connection.use(async (database) => {
    const transaction = database.transaction(['manifests', 'chunks'], 'readwrite', STRICT);
    const manifests = transaction.objectStore('manifests');
    return within(transaction, async () => {
      const keys = await manifests.getAllKeys(everyGeneration(run));
      const { whole } = await sorted(
        { keys, values: await manifests.getAll(everyGeneration(run)) },
        run,
      );
      const next = nextToGo(whole.filter(({ generation }) => !damaged.has(generation)));
      const gone = whole.find(({ generation }) => generation === next);
      if (gone === undefined) return undefined;
      await Promise.all([
        manifests.delete([run, gone.generation]),
        transaction.objectStore('chunks').delete(everyChunk(run, gone.generation)),
      ]);
      return gone.bytes;
    });
  });
}

/** Marks a generation as kept, or removes the mark. */
export async function markKept(
  database: Database,
  run: string,
  generation: number,
  kept: boolean,
): Promise<boolean> {
  const transaction = database.transaction('manifests', 'readwrite', STRICT);
  return within(transaction, async () => {
    const stored: unknown = await transaction.store.get([run, generation]);
    if (stored === undefined) return false;
    await transaction.store.put({ ...readManifest(stored, run, generation), kept }, [
      run,
      generation,
    ]);
    return true;
  });
}

/**
 * Removes one generation, or the run with everything it has. A generation that is being written is kept, and so is its run. Nothing is written: a
 * browser without room refuses a transaction that writes, even if it removes more.
 */
export async function removeFrom(
  database: Database,
  run: string,
  generation: number | undefined,
  saving: boolean,
): Promise<'run' | 'generation'> {
  const transaction = database.transaction(STORES, 'readwrite', STRICT);
  const manifests = transaction.objectStore('manifests');
  const chunks = transaction.objectStore('chunks');
  return within(transaction, async () => {
    const keys = await manifests.getAllKeys(everyGeneration(run));
    const left =
      generation === undefined
        ? []
        : keys.map(([, key]) => key).filter((key) => key !== generation);
    const others = await chunks.getAllKeys(everyChunk(run));
    const writing = saving || others.some(([, key]) => key !== 0 && key !== generation);
    const newest = left.at(-1);
    if (generation !== undefined && (newest !== undefined || writing)) {
      await Promise.all([
        manifests.delete([run, generation]),
        chunks.delete(everyChunk(run, generation)),
        (newest ?? 0) < generation ? transaction.objectStore('heads').delete(run) : undefined,
      ]);
      return 'generation';
    }
    await Promise.all([
      manifests.delete(everyGeneration(run)),
      chunks.delete(everyChunk(run)),
      transaction.objectStore('history').delete(everyGeneration(run)),
      transaction.objectStore('heads').delete(run),
      transaction.objectStore('runs').delete(run),
    ]);
    return 'run';
  });
}
