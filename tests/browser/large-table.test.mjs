// A table that is larger than a binding may be trains in parts.
import { expect, test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { NARROW, smallBindings, trainedIn } from './large-table.mjs';

const at = siteAndBrowser({}, { scripts: { '/small-bindings.js': { work: smallBindings } } });

test('table_larger_than_a_binding_trains', async () => {
  const { page, record } = await at.open('/');
  const { losses, refused } = await trainedIn(page, NARROW, { seqLen: 16, steps: 2 });
  expect(refused).toBe('LIMIT_EXCEEDED');
  expect(losses[0]).toBeGreaterThan(Math.log(262144) - 1);
  expect(losses[1]).toBeLessThan(losses[0] ?? 0);
  expect(record.errors).toEqual([]);
});
