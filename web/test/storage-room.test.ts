/**
 * Disks with little room, on which a save removes old generations or leaves the old head; and with none, on which what is stored can be deleted, and
 * tokens go to memory or are refused with the room that is missing.
 */
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { tokenStorage } from '../src/worker/storage/tokens.js';
import type { TokenStorage } from '../src/worker/storage/tokens.js';
import { freshOrigin } from './origin.js';
import {
  bytesOf,
  expectOldHead,
  keysOf,
  NOTHING,
  registered,
  requestOf,
  streamed,
} from './saves.js';

const origin = freshOrigin();
const noRoom = (): never => {
  throw new DOMException('not a byte', 'QuotaExceededError');
};

/** Simulates a disk that is full when the chunk is put, `times` times. */
function quotaAt(index: number, times = Infinity): { mockRestore(): void } {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called on its object below
  const put = IDBObjectStore.prototype.put;
  let left = times;
  return vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (
    this: IDBObjectStore,
    value,
    key,
  ) {
    if (this.name === 'chunks' && Array.isArray(key) && key[2] === index && left-- > 0)
      throw new DOMException('full', 'QuotaExceededError');
    return put.call(this, value, key);
  });
}

describe('room', () => {
  let run = '';
  let store = new CheckpointStore();
  beforeEach(async () => {
    run = crypto.randomUUID();
    store = new CheckpointStore();
    await registered(store, run);
  });
  it('is_checked_before_the_first_byte', async () => {
    Object.assign(origin.now, { quota: 1500, usage: 600 });
    let asked = 0;
    const next = async (): Promise<undefined> => void (asked += 1);
    await expect(store.save(requestOf(run, 1, { next }))).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      detail: { code: 'storage.quota', need: 1010, have: 900 },
    });
    expect(asked).toBe(0);
  });
  it('is_made_by_removing_old_generations', async () => {
    for (const seed of [1, 2, 3, 4])
      await store.save({
        ...requestOf(run, seed),
        meta: { ...requestOf(run, seed).meta, saveTotalLimit: 4 },
      });
    Object.assign(origin.now, { quota: 3000, usage: 2500 });
    await store.save({
      ...requestOf(run, 5),
      meta: { ...requestOf(run, 5).meta, saveTotalLimit: 4 },
    });
    expect((await keysOf(run)).manifests).toEqual(['1', '3', '4', '5']);
    origin.now.quota = 2510;
    await expect(store.save(requestOf(run, 6, { length: 5000 }))).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
    // The two newest generations are never given up.
    expect((await keysOf(run)).manifests).toEqual(['4', '5']);
  });
  it('that_runs_out_at_any_chunk_leaves_the_old_head', async () => {
    await store.save(requestOf(run, 1));
    const contents: [string, Uint8Array][] = [
      ['a', bytesOf(1, 10)],
      ['b', bytesOf(2, 10)],
      ['c', bytesOf(3, 10)],
    ];
    for (const index of [0, 1, 2]) {
      const full = quotaAt(index);
      await expect(store.save(requestOf(run, 2, streamed(contents)))).rejects.toMatchObject({
        code: 'QUOTA_EXCEEDED',
        detail: { code: 'storage.quota', need: 30, have: 10 * index },
      });
      full.mockRestore();
      await expectOldHead(store, run);
    }
  });
  it('that_runs_out_unexpectedly_is_made_too', async () => {
    for (const seed of [1, 2, 3])
      await store.save({
        ...requestOf(run, seed),
        meta: { ...requestOf(run, seed).meta, saveTotalLimit: 3 },
      });
    const full = quotaAt(0, 1);
    await store.save(requestOf(run, 4));
    full.mockRestore();
    expect((await keysOf(run)).manifests).toEqual(['3', '4']);
  });
});

describe('without room for a byte', () => {
  const run = 'a';
  let store = new CheckpointStore();
  beforeEach(async () => {
    vi.stubGlobal('indexedDB', new IDBFactory());
    store = new CheckpointStore();
    await registered(store, run);
    for (const seed of [1, 2, 3]) {
      const request = requestOf(run, seed);
      await store.save({ ...request, meta: { ...request.meta, saveTotalLimit: 9 } });
    }
    await store.mirror(run, true);
    origin.now.onWrite = noRoom;
    // In browsers a transaction that writes anything is refused as a whole.
    const puts = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(noRoom);
    const creations = vi
      .spyOn(IDBDatabase.prototype, 'createObjectStore')
      .mockImplementation(noRoom);
    return () => {
      puts.mockRestore();
      creations.mockRestore();
    };
  });
  it.each([1, 2, 3])('generation_%s_can_be_removed', async (generation) => {
    await store.remove(run, generation);
    const left = [3, 2, 1].filter((each) => each !== generation);
    expect((await store.list(run)).map((info) => info.generation)).toEqual(left);
    const { manifest, warnings } = await store.load(run);
    expect([manifest.generation, warnings]).toEqual([left[0], []]);
  });
  it('all_can_be_removed_one_by_one_and_the_run_is_gone', async () => {
    for (const generation of [3, 1, 2]) await store.remove(run, generation);
    expect([await keysOf(run), await store.list()]).toEqual([NOTHING, []]);
  });
  it('a_run_can_be_removed_by_a_new_page', async () => {
    await new CheckpointStore().remove(run);
    expect([await keysOf(run), await store.list()]).toEqual([NOTHING, []]);
  });
  it('the_next_number_after_a_removal_is_a_new_one', async () => {
    await store.remove(run, 3);
    vi.restoreAllMocks();
    origin.now.onWrite = () => undefined;
    expect((await store.save(requestOf(run, 4))).generation).toBe(4);
  });
});

describe('tokens', () => {
  const pieces = [0, 1, 2, 3].map((seed) => bytesOf(seed, 100));
  const whole = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
  /** Opens a storage whose file has room for `room` bytes. */
  const opened = async (room: number, memory: number): Promise<TokenStorage> => {
    let left = room;
    origin.now.onWrite = (_, bytes) => {
      if (bytes > left) noRoom();
      left -= bytes;
    };
    const storage = await tokenStorage(400, memory);
    if (storage === undefined) throw new Error('no storage');
    return storage;
  };
  it.each([0, 1, 99, 100, 199, 250, 400])(
    'continue_in_memory_after_a_file_of_%s_bytes',
    async (room) => {
      const storage = await opened(room, 400);
      expect(pieces.map((piece) => storage.append(piece))).toEqual([0, 100, 200, 300]);
      for (const [from, length] of [
        [0, 400],
        [0, 1],
        [99, 2],
        [150, 100],
        [250, 150],
        [399, 1],
        [399, 9],
      ] as const) {
        expect([...storage.read(from, length)]).toEqual([...whole.subarray(from, from + length)]);
      }
      await storage.close();
    },
  );
  it('for_which_there_is_no_memory_either_are_refused_with_the_size_that_they_need', async () => {
    const storage = await opened(150, 250);
    for (const piece of pieces.slice(0, 3)) storage.append(piece);
    // The core makes its own error of what is thrown.
    expect(() => storage.append(bytesOf(3, 100))).toThrow();
    await expect(storage.close()).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      detail: { code: 'data.room', need: 400, have: 100 },
    });
    expect(origin.now.files.at('tabtune-tokens')).toMatchObject({ entries: new Map() });
  });
});
