import { openDB } from 'idb';
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { requestOf } from './saves.js';

freshOrigin();
const RUN = '5d1f3b0e-4a52-4c6e-9a57-2f6f3a1c0b11';

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
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
    const newer = (await upgraded) as {
      version: number;
      close(): void;
      getAllKeys(store: string): Promise<unknown[]>;
    };
    expect(newer.version).toBe(3);
    expect(await newer.getAllKeys('manifests')).toEqual([[RUN, 1]]);
    newer.close();
    expect(told).toEqual(['closed']);
    await expect(old.list()).rejects.toMatchObject({
      code: 'STORAGE_BLOCKED',
      detail: { code: 'storage.closed' },
    });
    // A tab of this version that is opened at this point finds a database of a newer one.
    await expect(new CheckpointStore().list()).rejects.toMatchObject({
      code: 'STORAGE_BLOCKED',
      detail: { code: 'storage.closed' },
    });
  });
  it('a_tab_that_does_not_close_is_reported_as_blocking', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const held = await openDB('tabtune', 1);
    const listing = new CheckpointStore().list();
    const refused = expect(listing).rejects.toMatchObject({
      code: 'STORAGE_BLOCKED',
      detail: { code: 'storage.blocked' },
    });
    for (let n = 0; n < 50; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(100);
    }
    await refused;
    vi.useRealTimers();
    held.close();
  });
  it('a_database_deleted_while_open_ends_the_save_as_vanished_and_accepts_the_next', async () => {
    const store = new CheckpointStore();
    const record = { run: RUN, label: 'l', createdAt: 1, dataName: '', driver: '{}' };
    await store.registerRun(record);
    await store.save(requestOf(RUN, 1));
    indexedDB.deleteDatabase('tabtune');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await store.hasRun(RUN)).toBe(false);
    await expect(store.save(requestOf(RUN, 2))).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      detail: { code: 'storage.vanished' },
    });
    await store.registerRun(record);
    expect((await store.save(requestOf(RUN, 3))).generation).toBe(1);
  });
});
