/** The database of this origin: its stores and its versions. */
import { deleteDB, openDB } from 'idb';
import type { DBSchema, IDBPDatabase } from 'idb';

import { wait } from '../../protocol/wait.js';
import { blocked, storageError } from './faults.js';

/**
 * Maximum length of a chunk, a piece of a file that is always stored as an ArrayBuffer. In a private window of Chromium a value above 127 MiB aborts
 * its transaction, and in a normal one a Blob of 512 MiB does.
 */
export const CHUNK_BYTES = 8 << 20;
const NAME = 'tabtune';
/** Version of the layout for IndexedDB: a tab with a higher one closes the connections of the others. */
const VERSION = 2;
/** Time limit for another tab to finish its save and close an older version. */
const BLOCKED_MILLIS = 3000;

/** Key `[run, generation, index]`; generation 0 holds the run's training data. */
export type ChunkKey = [string, number, number];

interface Stores extends DBSchema {
  chunks: { key: ChunkKey; value: ArrayBuffer };
  manifests: { key: [string, number]; value: unknown };
  heads: { key: string; value: unknown };
  runs: { key: string; value: unknown };
  /** Key `[run, generation with which the block was saved]`. */
  history: { key: [string, number]; value: unknown };
}
export type Database = IDBPDatabase<Stores>;
export const STORES = ['chunks', 'manifests', 'heads', 'runs', 'history'] as const;
/** Key in `heads` of the number of saves of all runs; no run has this id. */
export const SAVES = '#';
export const STRICT = { durability: 'strict' } as const;

/** Events of an open connection. */
export interface Watch {
  /** Another tab opens a newer version. */
  newer(): void;
  /** Another tab deletes the database. */
  deleted(): void;
  /** The browser closed the connection. */
  lost(): void;
}

/** A database that exists only while `startNewLog` runs. */
const MOMENTARY = 'tabtune-log';
/** Time limit for starting the new log: a frozen tab may hold that database. */
const LOG_MILLIS = 1000;

/**
 * Makes Chromium start a new log for the databases of this origin, as it does when one of them is deleted. If Chromium is killed in the middle of
 * writing a record, half of the record remains at the end of the log. After its next start it would append behind that half, and at the start after
 * that regard the log as damaged and delete all databases (shown by `tests/torture/kills.mjs`). The storage opens even if this fails.
 */
async function startNewLog(): Promise<void> {
  const renew = async (): Promise<void> => {
    (await openDB(MOMENTARY)).close();
    await deleteDB(MOMENTARY);
  };
  await Promise.race([renew().catch(() => undefined), wait(LOG_MILLIS)]);
}

export async function openDatabase(watch: Watch): Promise<Database> {
  await startNewLog();
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let givenUp = false;
    openDB<Stores>(NAME, VERSION, {
      upgrade(database) {
        for (const store of STORES) database.createObjectStore(store);
      },
      blocked() {
        timer = setTimeout(() => {
          givenUp = true;
          reject(blocked());
        }, BLOCKED_MILLIS);
      },
      blocking: (_version, asked) => (asked === null ? watch.deleted() : watch.newer()),
      terminated: () => watch.lost(),
    }).then(
      (database) => {
        clearTimeout(timer);
        if (givenUp) database.close();
        else resolve(database);
      },
      (thrown: unknown) => {
        clearTimeout(timer);
        reject(storageError(thrown));
      },
    );
  });
}

/** Returns the key range of all generations of a run, including its data. */
export const everyGeneration = (run: string): IDBKeyRange =>
  IDBKeyRange.bound([run, 0], [run, Number.MAX_SAFE_INTEGER]);
export const everyChunk = (run: string, generation?: number): IDBKeyRange =>
  IDBKeyRange.bound(
    [run, generation ?? 0, 0],
    [run, generation ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  );

/** Resolves when the transaction is on disk. A failed request provides the error, which the transaction itself does not have. */
export async function committed(
  transaction: { done: Promise<void> },
  request: Promise<unknown>,
): Promise<void> {
  await Promise.all([request, transaction.done]);
}

/** Runs several reads and writes in one transaction; an error in `work` rolls all of them back. */
export async function within<T>(
  transaction: { done: Promise<void>; abort(): void },
  work: () => Promise<T>,
): Promise<T> {
  transaction.done.catch(() => undefined);
  try {
    const result = await work();
    await transaction.done;
    return result;
  } catch (thrown) {
    try {
      transaction.abort();
    } catch {
      // The transaction was already aborted.
    }
    throw thrown;
  }
}
