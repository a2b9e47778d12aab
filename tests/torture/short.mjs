// Parts of the torture tests with the counts of npm test: one test each. The parts of a file share a browser.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Arena, Tally } from './arena.mjs';
import { PARTS } from './parts.mjs';

export function survive(names) {
  const arena = Arena.ofTests();
  for (const name of names) {
    test(`survival: ${name}`, async () => {
      const tally = new Tally();
      await PARTS[name].work(arena, tally, PARTS[name].short);
      tally.print();
      assert.deepEqual(tally.failures, []);
      assert.ok(tally.rows.size > 0);
    });
  }
}
