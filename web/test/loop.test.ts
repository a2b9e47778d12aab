/** The loop of a trainer: any order of its calls has one outcome. */
import { describe, expect, it, vi } from 'vitest';

import { Chance } from '../../tests/torture/chance.mjs';
import { play, sequences } from '../../tests/torture/in-browser/calls.mjs';
import { fake, wait } from '../src/testing/fake-calls.js';
import { collect, trainerOf } from './runs.js';

const OPTIONS = { steps: 100_000, autosave: false };

/** Number of sequences; `npm run lab -- torture calls` plays 2,000 on the real core. */
const LOOPS = Number(process.env['LOOPS'] ?? 100);

describe('calls in any order', () => {
  it('have_the_outcome_of_the_table_and_leave_the_losses_as_they_are', async () => {
    fake.stepMillis = 1;
    const losses = new Map<number, number>();
    await using reference = await trainerOf(OPTIONS);
    for (const { step, loss } of await reference.step(300)) losses.set(step, loss);
    const chance = new Chance(58);
    const all = sequences(LOOPS, () => chance.next(), 1);
    const wrong: string[] = [];
    const one = async (sequence: (typeof all)[number]): Promise<void> => {
      const trainer = await trainerOf(OPTIONS);
      await trainer.step(2);
      const { generation } = await trainer.save();
      const found = await play(trainer, sequence, generation, (step) => losses.get(step));
      const words = sequence.map(({ call, wait }) => `${wait ? 'await ' : ''}${call}`).join(', ');
      wrong.push(...found.map((each) => `${words}: ${each}`));
      await trainer.dispose();
    };
    const waiting = [...all];
    await Promise.all(
      Array.from({ length: 30 }, async () => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await one(next);
      }),
    );
    expect(wrong).toEqual([]);
  }, 60_000);
  it.each([0, 20])(
    'let_a_step_have_its_turn_before_a_run_that_was_resumed_after_%i_ms',
    async (millis) => {
      fake.stepMillis = 2;
      await using trainer = await trainerOf(OPTIONS);
      const run = collect(trainer.run());
      if (millis > 0) await wait(millis);
      void trainer.pause();
      const stepped = trainer.step(1);
      await trainer.resume();
      expect(await stepped).toHaveLength(1);
      const at = trainer.completedSteps;
      await vi.waitFor(() => expect(trainer.completedSteps).toBeGreaterThan(at));
      await trainer.stop();
      expect((await run).at(-1)).toMatchObject({ state: 'stopped' });
    },
  );
});
