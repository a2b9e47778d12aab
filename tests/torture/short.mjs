// Parts of the torture tests with the counts of npm test: one test each, with its own profile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arena, Tally } from './arena.mjs';
import { PARTS } from './parts.mjs';

export function survive(names) {
  for (const name of names) {
    test(`survival: ${name}`, async () => {
      const tally = new Tally();
      const arena = await Arena.start();
      try {
        await PARTS[name].work(arena, tally, PARTS[name].short);
      } finally {
        await arena.end();
      }
      assert.deepEqual(tally.failures, []);
      assert.ok(tally.rows.size > 0);
      for (const { fault, times, worst, note } of tally.rows.values())
        console.log(`${fault}: ${times}${worst ? `, worst ${Math.round(worst)} ms` : ''}${note ? `; ${note}` : ''}`);
    });
  }
}
