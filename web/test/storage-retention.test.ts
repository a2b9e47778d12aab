import { beforeEach, describe, expect, it } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { beyondLimit, nextToGo } from '../src/worker/storage/retention.js';
import type { Candidate } from '../src/worker/storage/retention.js';
import { freshOrigin } from './origin.js';
import { flip, keysOf, modelOf, registered, requestOf, tamper } from './saves.js';

freshOrigin();
const at = (...steps: number[]): Candidate[] =>
  steps.map((step, index) => ({ generation: index + 1, step }));

describe('retention', () => {
  it('removes_the_one_whose_neighbours_are_the_fewest_steps_apart', () => {
    expect(nextToGo(at(0, 100, 110, 120, 200))).toBe(3);
    expect(nextToGo(at(0, 100, 200, 290, 1000, 2000))).toBe(3);
  });
  it('removes_the_first_one_last', () => {
    expect(nextToGo(at(0, 500, 510))).toBe(1);
    expect(nextToGo(at(0, 500, 1000, 1100))).toBe(2);
  });
  it('keeps_the_two_newest_the_marked_and_the_best', () => {
    expect(nextToGo(at(0, 1))).toBeUndefined();
    const all = at(0, 1, 2, 3, 4).map((each) => ({
      ...each,
      kept: each.generation === 2,
      validationLoss: [3, 2, 1, 2, NaN][each.generation - 1],
    }));
    expect(beyondLimit(all, 2)).toEqual([1]);
    expect(beyondLimit(all, 4)).toEqual([1]);
    expect(beyondLimit(all, 5)).toEqual([]);
  });
  it('is_never_below_two', () => {
    expect(beyondLimit(at(0, 1, 2), 1)).toEqual([1]);
    expect(beyondLimit(at(0, 1, 2), 0)).toEqual([1]);
  });
  it('is_not_defeated_by_many_saves_in_a_row', () => {
    let left = at(0, 120_000, 240_000);
    for (let n = 0; n < 20; n++) {
      left = [...left, { generation: 4 + n, step: 300_000 + n * 100 }];
      const gone = beyondLimit(left, 4);
      left = left.filter(({ generation }) => !gone.includes(generation));
    }
    expect(left.map(({ step }) => step)).toEqual([0, 120_000, 301_800, 301_900]);
  });
});

describe('retention in storage', () => {
  let run = '';
  let store = new CheckpointStore();
  beforeEach(async () => {
    run = crypto.randomUUID();
    store = new CheckpointStore();
    await registered(store, run);
  });
  const save = async (seed: number, meta: object = {}): Promise<void> => {
    const request = requestOf(run, seed);
    await store.save({ ...request, meta: { ...request.meta, ...meta } });
  };
  const left = async (): Promise<string[]> => (await keysOf(run)).manifests ?? [];

  it('removes_chunks_with_their_generation', async () => {
    for (const seed of [1, 2, 3, 4]) await save(seed);
    expect(await keysOf(run)).toMatchObject({
      manifests: ['3', '4'],
      chunks: ['3/0', '3/1', '4/0', '4/1'],
    });
  });
  it('keeps_the_marked_ones_the_start_of_a_decay_and_the_best', async () => {
    await save(1, { validationLoss: 1 });
    await save(2, { mark: 'decay' });
    await save(3);
    await store.keep(run, 3, true);
    for (const seed of [4, 5, 6]) await save(seed, { validationLoss: 2 });
    expect(await left()).toEqual(['1', '2', '3', '5', '6']);
    expect((await store.list(run)).map(({ generation, kept }) => [generation, kept])).toEqual([
      [6, false],
      [5, false],
      [3, true],
      [2, true],
      [1, false],
    ]);
    await store.keep(run, 3, false);
    await save(7);
    expect(await left()).toEqual(['1', '2', '6', '7']);
    await expect(store.keep(run, 99, true)).rejects.toMatchObject({
      detail: { code: 'checkpoint.none' },
    });
  });
  it('never_removes_one_of_a_newer_format', async () => {
    await save(1);
    await tamper(async (database) =>
      database.put(
        'manifests',
        { ...((await database.get('manifests', [run, 1])) as object), format: 99 },
        [run, 1],
      ),
    );
    for (const seed of [2, 3, 4]) await save(seed);
    expect(await left()).toEqual(['1', '3', '4']);
    expect((await store.list(run)).find(({ generation }) => generation === 1)).toMatchObject({
      fault: 'checkpoint.version',
      label: 'label',
    });
  });
  it('counts_no_generation_that_a_load_found_damaged', async () => {
    await save(1);
    await save(2);
    await flip(run, 2, 0);
    expect((await store.load(run)).manifest.generation).toBe(1);
    await save(3);
    expect(await left()).toEqual(['1', '3']);
    await flip(run, 3, 0);
    expect((await modelOf(store, run))[0]).toBe(1);
  });
});
