import { forceCloseDatabase } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { bytesOf, contentsOf, modelOf, registered, requestOf, streamed } from './saves.js';

freshOrigin();
let run = '';
let store = new CheckpointStore();
beforeEach(() => {
  run = crypto.randomUUID();
});

describe('a lost connection', () => {
  /** The event of a lost connection comes later than its first failure. */
  const lose = async (): Promise<void> => {
    for (const database of opened.splice(0)) forceCloseDatabase(database);
  };
  type Forced = Parameters<typeof forceCloseDatabase>[0];
  const opened: Forced[] = [];
  beforeEach(() => {
    opened.splice(0);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called on its object below
    const open = IDBFactory.prototype.open;
    const spy = vi.spyOn(IDBFactory.prototype, 'open').mockImplementation(function (
      this: IDBFactory,
      ...given
    ) {
      const request = open.apply(this, given);
      request.addEventListener('success', () => {
        if (given[0] === 'tabtune') opened.push(request.result as unknown as Forced);
      });
      return request;
    });
    return () => spy.mockRestore();
  });
  it('is_opened_once_more_in_the_middle_of_a_save', async () => {
    store = new CheckpointStore();
    await registered(store, run);
    await store.save(requestOf(run, 1));
    const { files, next } = streamed(contentsOf(2));
    const losing = async (): Promise<Uint8Array | undefined> => {
      await lose();
      return next();
    };
    await store.save(requestOf(run, 2, { files, next: losing, confirm: lose }));
    expect(opened).toHaveLength(1);
    await lose();
    expect(await modelOf(store, run)).toEqual([...bytesOf(2, 1000)]);
  });
  it('is_noticed_by_the_first_call_that_fails', async () => {
    store = new CheckpointStore();
    await registered(store, run);
    await store.save(requestOf(run, 1));
    for (const name of ['InvalidStateError', 'AbortError']) {
      const spy = vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementationOnce(() => {
        for (const database of opened.splice(0)) forceCloseDatabase(database);
        throw new DOMException('The database connection is closing', name);
      });
      expect(await modelOf(store, run)).toEqual([...bytesOf(1, 1000)]);
      spy.mockRestore();
      expect(opened).toHaveLength(1);
    }
  });
  it('that_remains_lost_is_storage_failed', async () => {
    await registered(store, run);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called on its object below
    const transaction = IDBDatabase.prototype.transaction;
    let refused = 0;
    const spy = vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (
      this: IDBDatabase,
      ...given
    ) {
      if (this.name !== 'tabtune') return transaction.apply(this, given);
      refused += 1;
      throw new DOMException('The database connection is closing', 'InvalidStateError');
    });
    await expect(store.hasRun(run)).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      detail: { code: 'storage.failed' },
    });
    expect(refused).toBe(2);
    spy.mockRestore();
    expect(await store.hasRun(run)).toBe(true);
  });
});

describe('the database that makes Chromium start a new log', () => {
  const names = async (): Promise<unknown[]> =>
    (await indexedDB.databases()).map(({ name }) => name);
  it('exists_only_briefly', async () => {
    const made = vi.spyOn(IDBFactory.prototype, 'deleteDatabase');
    await registered(new CheckpointStore(), run);
    expect(made.mock.calls).toEqual([['tabtune-log']]);
    expect(await names()).toEqual(['tabtune']);
    made.mockRestore();
  });
  it('keeps_no_storage_closed_if_it_fails', async () => {
    const spy = vi.spyOn(IDBFactory.prototype, 'deleteDatabase').mockImplementation(() => {
      throw new DOMException('no', 'UnknownError');
    });
    await registered(new CheckpointStore(), run);
    expect(spy).toHaveBeenCalled();
    spy.mockRestore();
  });
  it('is_not_waited_for_longer_than_a_second', async () => {
    const frozen = await new Promise<IDBDatabase>((resolve) => {
      const request = indexedDB.open('tabtune-log');
      request.onsuccess = () => resolve(request.result);
    });
    await registered(new CheckpointStore(), run);
    frozen.close();
  });
});
