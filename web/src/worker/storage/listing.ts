/** Lists the existing checkpoints, complete or not. */
import { TabtuneError } from '../../protocol/errors.js';
import type { CheckpointInfo } from '../../protocol/reports.js';
import type { Connection } from './connection.js';
import { storageError } from './faults.js';
import { infoOf, readManifest, readRun, unreadable } from './manifest.js';
import type { RunRecord } from './manifest.js';
import { resident, residents } from './opfs.js';

/** Lists all generations, newest first. A run that exists only in the alternative storage is listed from there. */
export async function listAll(connection: Connection, run: string | undefined): Promise<CheckpointInfo[]> {
  let failure: TabtuneError | undefined;
  const found = await inDatabase(connection, run).catch((thrown: unknown) => {
    const error = storageError(thrown);
    if (error.code !== 'STORAGE_FAILED') throw error;
    failure = error;
    return [] as CheckpointInfo[];
  });
  const known = new Set(found.map((info) => info.run));
  for (const housed of (await residents()).filter((id) => !known.has(id) && (run === undefined || id === run))) {
    const there = await resident(housed);
    if (there) found.push(infoOf(there.head.manifest, there.head.run, 'opfs'));
  }
  if (failure !== undefined && found.length === 0) throw failure;
  return found.sort((a, b) => b.savedAt - a.savedAt || b.generation - a.generation);
}

async function inDatabase(connection: Connection, run: string | undefined): Promise<CheckpointInfo[]> {
  const [keys, manifests, owners, records] = await connection.use((database) => {
    const transaction = database.transaction(['manifests', 'runs']);
    const [stored, runs] = [transaction.objectStore('manifests'), transaction.objectStore('runs')];
    return Promise.all([stored.getAllKeys(), stored.getAll(), runs.getAllKeys(), runs.getAll()]);
  });
  const known = new Map(owners.map((owner, at) => [owner, recordOr(records[at], owner)]));
  const infos = keys.map(([owner, generation], at) => {
    const record = known.get(owner);
    try {
      return infoOf(
        readManifest(manifests[at], owner, generation),
        record,
        'indexeddb',
        record === undefined ? 'checkpoint.run' : undefined,
      );
    } catch (thrown) {
      return unreadable(owner, generation, record, storageError(thrown).detail.code ?? 'checkpoint.manifest');
    }
  });
  return run === undefined ? infos : infos.filter((info) => info.run === run);
}

function recordOr(stored: unknown, run: string): RunRecord | undefined {
  try {
    return readRun(stored, run);
  } catch {
    return undefined;
  }
}
