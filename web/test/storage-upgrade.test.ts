import { readFileSync } from 'node:fs';
import { openDB } from 'idb';
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { requestOf, stepEntry } from './saves.js';

freshOrigin();
const golden = (name: string): Buffer => readFileSync(new URL(`./golden/${name}`, import.meta.url));
const RUN = '5d1f3b0e-4a52-4c6e-9a57-2f6f3a1c0b11';
type Rows = [IDBValidKey, unknown][];
const STORES = ['chunks', 'manifests', 'heads', 'runs'];

/** Creates the database in the state in which version 1 left it. */
async function versionOne(): Promise<void> {
  const dump = JSON.parse(golden('database-version-1.json').toString()) as Record<string, Rows>;
  const database = await openDB('tabtune', 1, {
    upgrade: (db) => {
      for (const store of STORES) db.createObjectStore(store);
    },
  });
  for (const store of STORES) {
    for (const [key, value] of dump[store] ?? []) {
      const base64: unknown = Reflect.get(Object(value), 'base64');
      await database.put(store, typeof base64 === 'string' ? new Uint8Array(Buffer.from(base64, 'base64')).buffer : value, key);
    }
  }
  database.close();
}

const textOf = async (blob: Blob | undefined): Promise<string> => (blob ? blob.text() : '');
const stepIn = async (files: Map<string, Blob>): Promise<number> =>
  (JSON.parse(await textOf(files.get('checkpoint.json'))) as { progress: { completed_steps: number } }).progress.completed_steps;

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
});

describe('version 1', () => {
  it('of_the_database_is_upgraded_in_place_and_loads', async () => {
    await versionOne();
    const store = new CheckpointStore();
    expect((await store.list()).map(({ run, generation, step, label, kept, fault, hasData }) => [run, generation, step, label, kept, fault, hasData])).toEqual([
      [RUN, 3, 9, 'golden', false, undefined, true],
      [RUN, 2, 6, 'golden', false, undefined, true],
    ]);
    const { files, manifest, warnings, home } = await store.load(RUN);
    expect([manifest.step, manifest.environment.adapter, warnings, home]).toEqual([9, 'a software adapter', [], 'indexeddb']);
    expect([...files.keys()]).toEqual(['model.safetensors', 'optimizer.safetensors', 'config.json', 'checkpoint.json']);
    expect(await stepIn(files)).toBe(9);
    expect(await textOf(await store.runData(RUN))).toContain('that is the question');
    expect(await store.history(RUN, 9)).toEqual([]);
  });
  it('of_the_database_is_saved_to_further', async () => {
    await versionOne();
    const store = new CheckpointStore();
    await store.save({ ...requestOf(RUN, 10, { history: [stepEntry(10)] }) });
    expect((await store.list(RUN)).map(({ generation }) => generation)).toEqual([4, 3]);
    expect(await store.history(RUN, 10)).toEqual([stepEntry(10)]);
  });
  it('of_an_exported_file_is_imported', async () => {
    const store = new CheckpointStore();
    const info = await store.importFile(new Blob([new Uint8Array(golden('format-1.tabtune'))]));
    expect(info).toMatchObject({ run: RUN, generation: 1, step: 9, totalSteps: 9, label: 'golden', dataName: 'hamlet.txt', hasData: true, loss: 2.1 });
    expect(await stepIn((await store.load(RUN)).files)).toBe(9);
    expect(await textOf(await store.runData(RUN))).toContain('that is the question');
  });
});

describe('versions of the database', () => {
  it('an_older_tab_ends_its_save_and_closes', async () => {
    const told: string[] = [];
    const old = new CheckpointStore({ onClosed: () => told.push('closed') });
    await old.registerRun({ run: RUN, label: 'l', createdAt: 1, dataName: '', driver: '{}' });
    let upgraded: Promise<unknown> | undefined;
    const confirm = async (): Promise<void> => {
      upgraded = openDB('tabtune', 3);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(told).toEqual([]);
      // Calls that are not part of the save are already refused.
      await expect(old.list()).rejects.toMatchObject({ detail: { code: 'storage.closed' } });
    };
    const saved = await old.save(requestOf(RUN, 1, { confirm }));
    expect(saved.generation).toBe(1);
    const newer = (await upgraded) as { version: number; close(): void; getAllKeys(store: string): Promise<unknown[]> };
    expect(newer.version).toBe(3);
    expect(await newer.getAllKeys('manifests')).toEqual([[RUN, 1]]);
    newer.close();
    expect(told).toEqual(['closed']);
    await expect(old.list()).rejects.toMatchObject({ code: 'STORAGE_BLOCKED', detail: { code: 'storage.closed' } });
    // A tab of this version that is opened at this point finds a database of a newer one.
    await expect(new CheckpointStore().list()).rejects.toMatchObject({ code: 'STORAGE_BLOCKED', detail: { code: 'storage.closed' } });
  });
  it('a_tab_that_does_not_close_is_said_to_block', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const held = await openDB('tabtune', 1);
    const listing = new CheckpointStore().list();
    const refused = expect(listing).rejects.toMatchObject({ code: 'STORAGE_BLOCKED', detail: { code: 'storage.blocked' } });
    for (let n = 0; n < 50; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(100);
    }
    await refused;
    vi.useRealTimers();
    held.close();
  });
  it('a_database_deleted_while_open_ends_the_save_as_vanished_and_takes_the_next', async () => {
    const store = new CheckpointStore();
    const record = { run: RUN, label: 'l', createdAt: 1, dataName: '', driver: '{}' };
    await store.registerRun(record);
    await store.save(requestOf(RUN, 1));
    indexedDB.deleteDatabase('tabtune');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await store.hasRun(RUN)).toBe(false);
    await expect(store.save(requestOf(RUN, 2))).rejects.toMatchObject({ code: 'STORAGE_FAILED', detail: { code: 'storage.vanished' } });
    await store.registerRun(record);
    expect((await store.save(requestOf(RUN, 3))).generation).toBe(1);
  });
});
