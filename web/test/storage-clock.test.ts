/** A clock that is moved between saves: lists, the newest, retention and the second copy follow the order of the saves. */
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin, StoredFolder } from './origin.js';
import { modelOf, registered, requestOf } from './saves.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Shifts of the clock before each save. */
const SHIFTS = {
  'a day back each time': [-DAY, -DAY, -DAY, -DAY, -DAY, -DAY],
  'a day ahead each time': [DAY, DAY, DAY, DAY, DAY, DAY],
  'an hour back each time': [-HOUR, -HOUR, -HOUR, -HOUR, -HOUR, -HOUR],
  'ahead and back': [DAY, -DAY, DAY, -DAY, -HOUR, -HOUR],
  'a day back in the middle': [0, 0, -DAY, 0, 0, 0],
} as const;

const origin = freshOrigin();
let store = new CheckpointStore();
let now = 0;
beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  store = new CheckpointStore();
  now = 1e12;
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now);
  return () => clock.mockRestore();
});
async function saved(run: string, step: number, shift: number, saveTotalLimit = 9): Promise<void> {
  now += shift;
  if (!(await store.hasRun(run))) await registered(store, run);
  const request = requestOf(run, step);
  await store.save({ ...request, meta: { ...request.meta, saveTotalLimit } });
}
const listed = async (run?: string): Promise<string[]> =>
  (await store.list(run)).map((info) => `${info.run} ${info.step}`);

describe.each(Object.entries(SHIFTS))('with a clock that goes %s', (_, shifts) => {
  it('a_run_is_listed_by_generation', async () => {
    for (const [at, shift] of shifts.entries()) await saved('a', at, shift);
    expect(await listed('a')).toEqual(['a 5', 'a 4', 'a 3', 'a 2', 'a 1', 'a 0']);
    expect((await store.load('a')).manifest.step).toBe(5);
    expect((await modelOf(store, 'a'))[0]).toBe(5);
  });
  it('the_run_saved_last_comes_first', async () => {
    for (const [at, shift] of shifts.entries())
      await saved(['a', 'b', 'c'][at % 3] ?? '', at, shift);
    expect(await listed()).toEqual(['c 5', 'c 2', 'b 4', 'b 1', 'a 3', 'a 0']);
    await saved('b', 6, shifts[0]);
    expect((await listed())[0]).toBe('b 6');
    const fork = await store.fork('a', undefined, 'copy');
    expect((await listed())[0]).toBe(`${fork.run} 3`);
  });
  it('retention_keeps_what_is_spread_over_the_steps', async () => {
    for (const [at, shift] of shifts.entries())
      await saved('a', [0, 10, 11, 12, 20, 30][at] ?? 0, shift, 4);
    expect(await listed('a')).toEqual(['a 30', 'a 20', 'a 10', 'a 0']);
  });
  it('a_second_copy_is_made_every_ten_minutes', async () => {
    const monotonic = vi.spyOn(performance, 'now').mockReturnValue(0);
    const copies: string[] = [];
    for (const [at, shift] of shifts.entries()) {
      await saved('a', at, shift);
      monotonic.mockReturnValue(at * 300_000);
      await store.mirror('a', false);
      const home = origin.now.files.at('tabtune', 'a');
      copies.push(home instanceof StoredFolder ? [...home.entries.keys()].join() : '');
    }
    // The number of the generation, with which saves begin at 1.
    expect(copies).toEqual(['1', '1', '3', '3', '5', '5']);
    monotonic.mockRestore();
  });
});

describe('after the database was lost', () => {
  it('runs_saved_since_come_before_those_of_the_second_copy', async () => {
    for (let step = 0; step < 5; step++) await saved('a', step, 0);
    await store.mirror('a', true);
    vi.stubGlobal('indexedDB', new IDBFactory());
    store = new CheckpointStore();
    await saved('b', 1, -DAY);
    expect(await listed()).toEqual(['b 1', 'a 4']);
    await store.load('a');
    await saved('a', 5, -DAY);
    expect(await listed()).toEqual(['a 5', 'b 1']);
  });
});
