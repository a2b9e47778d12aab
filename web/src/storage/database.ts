import { openDB } from 'idb';
import type { DBSchema, IDBPDatabase } from 'idb';

import { TabtuneError, toTabtuneError } from '../errors.js';
import { count, listOf, number, optional, record, text } from '../shape.js';
import type { Of } from '../shape.js';

/** A piece of a file: at most this long, always an ArrayBuffer (browser.md §3 has the measurements). */
export const CHUNK_BYTES = 8 << 20;
/** Written in every manifest; a newer one is CHECKPOINT_VERSION. */
export const MANIFEST_FORMAT = 1;

/** The list of chunks that make a generation, with the hash of each. Its presence is what makes the generation exist. */
export const manifestShape = record({
  format: count,
  run: text,
  generation: count,
  label: text,
  step: count,
  totalSteps: count,
  loss: optional(number),
  savedAt: number,
  bytes: count,
  environment: record({ version: text, adapter: text }),
  files: listOf(record({ name: text, bytes: count, chunks: listOf(record({ index: count, bytes: count, sha256: text })) })),
});
export type Manifest = Of<typeof manifestShape>;

/** What is known of a run beside its generations: name, and the training data if it was kept. */
export const runShape = record({
  run: text,
  label: text,
  createdAt: number,
  dataName: text,
  driver: text,
  data: optional(record({ bytes: count, chunks: listOf(record({ index: count, bytes: count, sha256: text })) })),
});
export type RunRecord = Of<typeof runShape>;

/** `[run, generation, index]`; generation 0 holds the run's training data. */
export type ChunkKey = [string, number, number];

interface Stores extends DBSchema {
  chunks: { key: ChunkKey; value: ArrayBuffer };
  manifests: { key: [string, number]; value: unknown };
  heads: { key: string; value: number };
  runs: { key: string; value: unknown };
}
export type Database = IDBPDatabase<Stores>;

/** Opens the database of this origin. */
export async function openDatabase(onVersionChange: () => void): Promise<Database> {
  let blocked = false;
  try {
    const database = await Promise.race([
      openDB<Stores>('tabtune', 1, {
        upgrade(db) {
          db.createObjectStore('chunks');
          db.createObjectStore('manifests');
          db.createObjectStore('heads');
          db.createObjectStore('runs');
        },
        blocked() {
          blocked = true;
        },
        blocking(_current, _asked, event) {
          onVersionChange();
          if (event.target instanceof IDBDatabase) event.target.close();
        },
      }),
      new Promise<never>((_, reject) => {
        setTimeout(() => blocked && reject(blockedError()), 3000);
      }),
    ]);
    return database;
  } catch (thrown) {
    if (thrown instanceof TabtuneError) throw thrown;
    throw storageError(thrown);
  }
}

const blockedError = (): TabtuneError =>
  new TabtuneError('STORAGE_BLOCKED', 'the checkpoint storage is held by another version of this page: close the other tab and try again', {
    code: 'storage.blocked',
  });

/** IndexedDB's failures in our words; a full disk shows only as the aborted transaction's error. */
export function storageError(thrown: unknown): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  const error = toTabtuneError(thrown, 'STORAGE_FAILED');
  if (error.code === 'QUOTA_EXCEEDED') {
    return new TabtuneError('QUOTA_EXCEEDED', 'the browser has no room left for this checkpoint. Delete older runs, or export this one to a file.', { code: 'storage.quota' }, thrown);
  }
  return new TabtuneError('STORAGE_FAILED', `checkpoint storage failed: ${error.message || error.detail.reason || 'no reason given'}`, { code: 'storage.failed' }, thrown);
}

/** Lower-case hex SHA-256. */
export async function sha256(bytes: ArrayBuffer): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The bytes of a view as an ArrayBuffer of exactly its length, copied out of wasm memory. */
export function exactBuffer(view: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(view.byteLength);
  new Uint8Array(copy).set(view);
  return copy;
}
