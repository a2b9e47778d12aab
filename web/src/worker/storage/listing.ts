/** Lists the existing checkpoints, complete or not. */
import { TabtuneError } from '../../protocol/errors.js';
import type { StoredCheckpoint } from '../../protocol/reports.js';
import type { Connection } from './connection.js';
import { storageError } from './faults.js';
import { infoOf, readManifest, readRun, unreadable } from './manifest.js';
import type { RunRecord } from './manifest.js';
import { resident, residents } from './opfs.js';

/** A generation in the list, with the number of its save. */
interface Listed {
  info: StoredCheckpoint;
  serial: number;
}

/**
 * Lists all generations: the run that was saved last comes first, with its newest generation. Runs that exist only in the alternative storage are
 * listed from there, after the others: their database was lost.
 */
export async function listAll(
  connection: Connection,
  run: string | undefined,
): Promise<StoredCheckpoint[]> {
  let failure: TabtuneError | undefined;
  const found = await inDatabase(connection, run).catch((thrown: unknown) => {
    const error = storageError(thrown);
    if (error.code !== 'STORAGE_FAILED') throw error;
    failure = error;
    return [] as Listed[];
  });
  const known = new Set(found.map(({ info }) => info.run));
  const housedOnly: Listed[] = [];
  for (const housed of (await residents()).filter(
    (id) => !known.has(id) && (run === undefined || id === run),
  )) {
    const there = await resident(housed);
    if (there)
      housedOnly.push({
        info: infoOf(there.head.manifest, there.head.run, 'opfs'),
        serial: there.head.manifest.serial ?? 0,
      });
  }
  const all = [...newestFirst(found), ...newestFirst(housedOnly)];
  if (failure !== undefined && all.length === 0) throw failure;
  return all;
}

function newestFirst(found: readonly Listed[]): StoredCheckpoint[] {
  const last = new Map<string, number>();
  for (const { info, serial } of found)
    last.set(info.run, Math.max(serial, last.get(info.run) ?? 0));
  const lastSaveOf = (run: string): number => last.get(run) ?? 0;
  return found
    .map(({ info }) => info)
    .sort(
      (a, b) =>
        lastSaveOf(b.run) - lastSaveOf(a.run) ||
        (a.run === b.run ? b.generation - a.generation : 0),
    );
}

async function inDatabase(connection: Connection, run: string | undefined): Promise<Listed[]> {
  const [keys, manifests, owners, records] = await connection.use((database) => {
    const transaction = database.transaction(['manifests', 'runs']);
    const [stored, runs] = [transaction.objectStore('manifests'), transaction.objectStore('runs')];
    return Promise.all([stored.getAllKeys(), stored.getAll(), runs.getAllKeys(), runs.getAll()]);
  });
  const known = new Map(owners.map((owner, at) => [owner, recordOr(records[at], owner)]));
  const listed = keys.map(([owner, generation], at) => {
    const record = known.get(owner);
    try {
      const manifest = readManifest(manifests[at], owner, generation);
      const info = infoOf(
        manifest,
        record,
        'indexeddb',
        record === undefined ? 'checkpoint.run' : undefined,
      );
      return { info, serial: manifest.serial ?? 0 };
    } catch (thrown) {
      return {
        info: unreadable(
          owner,
          generation,
          record,
          storageError(thrown).detail.code ?? 'checkpoint.manifest',
        ),
        serial: 0,
      };
    }
  });
  return run === undefined ? listed : listed.filter(({ info }) => info.run === run);
}

function recordOr(stored: unknown, run: string): RunRecord | undefined {
  try {
    return readRun(stored, run);
  } catch {
    return undefined;
  }
}
