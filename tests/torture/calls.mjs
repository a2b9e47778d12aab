// Calls of a trainer in any order, awaited or not: each settles with the outcome of the table, and the losses are those of the unbroken run.
import { TINY } from './arena.mjs';
import { Chance } from './chance.mjs';
import { sequences } from './in-browser/calls.mjs';

/** Number of sequences that one page plays at a time. */
const BATCH = 20;
/** How often a call is `dispose`: seldom, because the next sequence must then create a trainer. */
const DISPOSES = 0.3;

/** `steps` is the length of the unbroken run. */
export async function calls(arena, tally, { count, steps = 200 }) {
  const { losses } = await arena.truth(TINY, steps);
  const chance = new Chance(58);
  const all = sequences(count, () => chance.next(), DISPOSES);
  const page = await arena.subject();
  for (let at = 0; at < all.length; at += BATCH) {
    const found = await page.do(
      async (s, { setting, losses, batch }) => {
        // An address of the arena's site, not a file next to this one.
        const { play } = await import(String('/torture/calls.mjs'));
        const all = [];
        let generation;
        for (const sequence of batch) {
          if (generation === undefined) {
            await s.create(setting);
            await s.step(2);
            ({ generation } = await s.current().save());
            await s.current().checkpoints.keep(generation);
          } else await s.current().checkpoints.load({ generation });
          all.push(await play(s.current(), sequence, generation, (step) => losses[step]));
          if (sequence.some(({ call }) => call === 'dispose')) generation = undefined;
        }
        if (generation !== undefined) await s.current().dispose();
        return all;
      },
      { setting: TINY, losses, batch: all.slice(at, at + BATCH) },
    );
    for (const [index, wrong] of found.entries()) {
      const words = (all[at + index] ?? [])
        .map(({ call, wait }) => `${wait ? 'await ' : ''}${call}`)
        .join(', ');
      tally.add(
        'calls in any order',
        wrong.map((each) => `${words}: ${each}`),
      );
    }
  }
  await page.close();
}
