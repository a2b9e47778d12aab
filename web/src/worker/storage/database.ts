/** The database of this origin: its stores and its versions. */
import { openDB } from 'idb';
import type { DBSchema, IDBPDatabase } from 'idb';

import { blocked, storageError } from './faults.js';

/**
 * A piece of a file: at most this long, always an ArrayBuffer. In a private window of Chromium a value above 127 MiB aborts its
 * transaction, and in a normal one a Blob of 512 MiB does.
 */
export const CHUNK_BYTES = 8 << 20;
const NAME = 'tabtune';
const VERSION = 2;
/** How long another tab may take to finish its save and close an older version. */
const BLOCKED_MILLIS = 3000;

/** `[run, generation, index]`; generation 0 holds the run's training data. */
export type ChunkKey = [string, number, number];

interface Stores extends DBSchema {
  chunks: { key: ChunkKey; value: ArrayBuffer };
  manifests: { key: [string, number]; value: unknown };
  heads: { key: string; value: unknown };
  runs: { key: string; value: unknown };
  /** Since version 2: `[run, generation it was saved with]`. */
  history: { key: [string, number]; value: unknown };
}
export type Database = IDBPDatabase<Stores>;
export const STORES = ['chunks', 'manifests', 'heads', 'runs', 'history'] as const;
export const STRICT = { durability: 'strict' } as const;

/** What may happen to an open connection. */
export interface Watch {
  /** Another tab opens a newer version. */
  newer(): void;
  /** Another tab deletes the database. */
  deleted(): void;
  /** The browser closed the connection. */
  lost(): void;
}

export function openDatabase(watch: Watch): Promise<Database> {
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let givenUp = false;
    openDB<Stores>(NAME, VERSION, {
      upgrade(database, from) {
        if (from < 1) for (const store of ['chunks', 'manifests', 'heads', 'runs'] as const) database.createObjectStore(store);
        if (from < 2) database.createObjectStore('history');
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

/** The key range of all generations of a run, including its data. */
export const everyGeneration = (run: string): IDBKeyRange => IDBKeyRange.bound([run, 0], [run, Number.MAX_SAFE_INTEGER]);
export const everyChunk = (run: string, generation?: number): IDBKeyRange =>
  IDBKeyRange.bound([run, generation ?? 0, 0], [run, generation ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);

/** Resolves when the transaction is on disk. The first failed request gives the reason, which the transaction itself does not have. */
export async function committed(transaction: { done: Promise<void>; abort(): void }, requests: readonly Promise<unknown>[]): Promise<void> {
  await Promise.all([...requests, transaction.done]);
}

/** Runs several reads and writes in one transaction; an error in `work` rolls all of them back. */
export async function within<T>(transaction: { done: Promise<void>; abort(): void }, work: () => Promise<T>): Promise<T> {
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
