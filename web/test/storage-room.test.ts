/** A disk with no room at all: what is stored can be deleted, and tokens go to memory or are refused with the room that is missing. */
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { tokenStorage } from '../src/worker/storage/tokens.js';
import type { TokenStorage } from '../src/worker/storage/tokens.js';
import { freshOrigin } from './origin.js';
import { bytesOf, keysOf, NOTHING, registered, requestOf } from './saves.js';

const origin = freshOrigin();
const noRoom = (): never => {
  throw new DOMException('not a byte', 'QuotaExceededError');
};

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
