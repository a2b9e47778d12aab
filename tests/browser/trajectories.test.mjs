// Recorded trajectories of the optimizers on this browser's WebGPU, through the quick build: the release build cannot replay them.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { siteAndBrowser } from './hooks.mjs';

const at = siteAndBrowser({ '/pkg-quick/': 'web/pkg-quick', '/vectors/': 'tests/golden/vectors' });
/** @type {import('playwright-core').Page} */
let page;
test.beforeAll(async () => {
  ({ page } = await at.open('/'));
});

test('recorded trajectories replay in the browser', async () => {
  const names = readdirSync(join(root, 'tests/golden/vectors')).filter((name) =>
    name.endsWith('.json'),
  );
  const reports = await page.evaluate(
    async (names) => (await import('/browser/replay-page.mjs')).replayAll(names),
    names,
  );
  assert.deepEqual(
    reports.filter((report) => !report.ok),
    [],
  );
  const kinds = new Set(reports.filter((report) => !report.skipped).map((report) => report.kind));
  assert.deepEqual([...kinds].sort(), ['noise', 'optimizer', 'projector', 'rounding', 'schedule']);
  assert.ok(reports.filter((report) => !report.skipped).length >= 18);
});

test('a changed value in a recorded trajectory is detected', async () => {
  const report = await page.evaluate(async () => {
    const { replayChanged } = await import('/browser/replay-page.mjs');
    return replayChanged('adamw_bf16_philox_expected.json');
  });
  assert.equal(report.ok, false);
});
