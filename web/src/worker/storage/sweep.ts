/** Removes leftovers of crashed tabs: chunks that no manifest names, and runs that never had a generation. */
import type { Connection } from './connection.js';
import { everyChunk, everyGeneration, SAVES, STORES, within } from './database.js';
import type { Database } from './database.js';
import { sweptIfFree } from '../../protocol/run-lock.js';
import { residents, tidy } from './opfs.js';

/** Sweeps every run whose lock is free; a run that is being written to is locked. */
export async function sweepRuns(connection: Connection): Promise<void> {
  // The connection is not held while locks are awaited, which may take for ever.
  const suspects = await connection.hold(() => connection.use(suspectRuns));
  const housed = new Set(await residents());
  for (const run of suspects)
    await sweptIfFree(run, () =>
      connection.hold(() => connection.use((database) => sweepRun(database, run, housed.has(run)))),
    );
  for (const run of housed) await sweptIfFree(run, () => tidy(run));
}

/** Returns the runs with data that no manifest names. */
async function suspectRuns(database: Database): Promise<string[]> {
  const transaction = database.transaction(STORES);
  const [chunks, manifests, heads, runs, history] = await Promise.all([
    transaction.objectStore('chunks').getAllKeys(),
    transaction.objectStore('manifests').getAllKeys(),
    transaction.objectStore('heads').getAllKeys(),
    transaction.objectStore('runs').getAllKeys(),
    transaction.objectStore('history').getAllKeys(),
  ]);
  const named = new Set(manifests.map(([run, generation]) => `${generation} ${run}`));
  const withManifest = new Set(manifests.map(([run]) => run));
  const orphaned = chunks
    .filter(([run, generation]) => generation > 0 && !named.has(`${generation} ${run}`))
    .map(([run]) => run);
  const all = [
    ...chunks.map(([run]) => run),
    ...heads.filter((key) => key !== SAVES),
    ...runs,
    ...history.map(([run]) => run),
  ];
  return [...new Set([...orphaned, ...all.filter((run) => !withManifest.has(run))])];
}

/** Sweeps one run; if it still exists in the alternative storage, it keeps its record, its data and its history. */
async function sweepRun(database: Database, run: string, housed: boolean): Promise<void> {
  const transaction = database.transaction(STORES, 'readwrite');
  await within(transaction, async () => {
    const chunks = transaction.objectStore('chunks');
    const manifests = new Set(
      (await transaction.objectStore('manifests').getAllKeys(everyGeneration(run))).map(
        ([, generation]) => generation,
      ),
    );
    const written = new Set(
      (await chunks.getAllKeys(everyChunk(run))).map(([, generation]) => generation),
    );
    const requests: Promise<unknown>[] = [...written]
      .filter((g) => g > 0 && !manifests.has(g))
      .map((g) => chunks.delete(everyChunk(run, g)));
    if (manifests.size === 0 && !housed) {
      requests.push(
        chunks.delete(everyChunk(run)),
        transaction.objectStore('heads').delete(run),
        transaction.objectStore('runs').delete(run),
        transaction.objectStore('history').delete(everyGeneration(run)),
      );
    }
    await Promise.all(requests);
  });
}
