// The full form of the torture tests, at most an hour per part: `npm run lab -- torture`. Its results are results/torture.json.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Arena, Tally } from './arena.mjs';
import { PARTS } from './parts.mjs';
import { written } from './report.mjs';

const COLUMNS = ['fault', 'times', 'held', 'worst, ms', 'figures'];

for (const [name, part] of Object.entries(PARTS)) {
  /** @type {(arena: Arena, tally: Tally, form: any) => Promise<unknown>} */
  const work = part.work;
  test(`torture: ${name}`, async () => {
    const tally = new Tally();
    const arena = await Arena.start();
    try {
      await work(arena, tally, part.full).catch((error) =>
        tally.add(`${name}: the part itself`, [error.stack]),
      );
      const machine = await arena
        .machine()
        .catch(() => ({ browser: arena.browser.version, adapter: 'unknown' }));
      written('torture', Object.keys(PARTS), name, {
        ...machine,
        columns: COLUMNS,
        rows: tally.results(),
      });
    } finally {
      await arena.end();
    }
    tally.print();
    assert.deepEqual(tally.failures, []);
  });
}
