// Parts of the torture tests with the counts of npm test: one test each. The parts of a file share a browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Arena, Tally } from './arena.mjs';
import { PARTS } from './parts.mjs';

export function survive(names) {
  /** @type {Arena} */
  let arena;
  before(async () => {
    arena = await Arena.start();
  });
  after(() => arena?.end());

  for (const name of names) {
    test(`survival: ${name}`, async () => {
      const tally = new Tally();
      await PARTS[name].work(arena, tally, PARTS[name].short);
      assert.deepEqual(tally.failures, []);
      assert.ok(tally.rows.size > 0);
      for (const { fault, times, worst, note } of tally.rows.values())
        console.log(`${fault}: ${times}${worst ? `, worst ${Math.round(worst)} ms` : ''}${note ? `; ${note}` : ''}`);
    });
  }
}
