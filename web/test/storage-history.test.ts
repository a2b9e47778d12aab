import { beforeEach, describe, expect, it } from 'vitest';

import type { HistoryEntry } from '../src/protocol/events.js';
import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { registered, requestOf, stepEntry, tamper } from './saves.js';

freshOrigin();
let run = '';
let store = new CheckpointStore();
beforeEach(async () => {
  run = crypto.randomUUID();
  store = new CheckpointStore();
  await registered(store, run);
});
/** Returns steps from `from` to `to`, with a loss that identifies the branch. */
const steps = (from: number, to: number, branch = 0): HistoryEntry[] =>
  Array.from({ length: to - from + 1 }, (_, i) => stepEntry(from + i, branch));
const save = (step: number, history: HistoryEntry[]): Promise<unknown> =>
  store.save({
    ...requestOf(run, step, { history }),
    meta: { ...requestOf(run, step).meta, step, saveTotalLimit: 9 },
  });
const branchesOf = (entries: HistoryEntry[]): number[] =>
  entries.map((entry) => (entry.type === 'step' ? entry.loss : NaN));

describe('history', () => {
  it('is_restored_in_its_order', async () => {
    const evaluation: HistoryEntry = {
      type: 'eval',
      step: 2,
      loss: NaN,
      perplexity: Infinity,
      tokens: 5,
      accuracy: 0.25,
    };
    const sample: HistoryEntry = {
      type: 'sample',
      step: 3,
      prompt: 'a',
      text: 'NaN',
      end: 'length',
    };
    const [first, second] = [
      [...steps(1, 2), evaluation],
      [sample, ...steps(3, 4)],
    ];
    await save(2, first);
    await save(4, second);
    expect(await new CheckpointStore().history(run, 4)).toEqual([...first, ...second]);
  });
  it('is_cut_at_the_step', async () => {
    await save(2, steps(1, 2));
    await save(4, steps(3, 4));
    for (const last of [0, 1, 2, 3, 4, 9]) {
      expect((await store.history(run, last)).map(({ step }) => step)).toEqual(
        steps(1, Math.min(4, last)).map(({ step }) => step),
      );
    }
  });
  it('survives_the_generations_it_was_saved_with', async () => {
    for (const step of [1, 2, 3, 4])
      await store.save({ ...requestOf(run, step, { history: steps(step, step) }) });
    expect(await store.list(run)).toHaveLength(2);
    expect(await store.history(run, 4)).toEqual(steps(1, 4));
  });
  it('is_kept_apart_for_each_branch', async () => {
    await save(2, steps(1, 2));
    await save(4, steps(3, 4, 1));
    await store.load(run, 1);
    await save(3, steps(3, 3, 2));
    await save(4, steps(4, 4, 2));
    expect(branchesOf(await store.history(run, 4))).toEqual([0, 0, 2, 2]);
    await store.load(run, 2);
    expect(branchesOf(await store.history(run, 4))).toEqual([0, 0, 1, 1]);
    await save(5, steps(5, 5, 1));
    expect(branchesOf(await store.history(run, 5))).toEqual([0, 0, 1, 1, 1]);
    // If nothing was loaded before, the newest branch at the step is used.
    expect(branchesOf(await new CheckpointStore().history(run, 5))).toEqual([0, 0, 1, 1, 1]);
    expect(branchesOf(await new CheckpointStore().history(run, 3))).toEqual([0, 0, 2]);
  });
  it('with_a_damaged_block_is_the_rest', async () => {
    await save(2, steps(1, 2));
    await save(4, steps(3, 4));
    await tamper((database) => database.put('history', { entries: 7 }, [run, 1]));
    expect((await store.history(run, 4)).map(({ step }) => step)).toEqual([3, 4]);
  });
  it('is_removed_with_the_run', async () => {
    await save(2, steps(1, 2));
    await store.remove(run);
    expect(await store.history(run, 9)).toEqual([]);
  });
});
