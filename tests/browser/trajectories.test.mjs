// Recorded trajectories of the optimizers on this browser's WebGPU, through the quick build: the release build cannot replay them.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { siteAndBrowser } from './hooks.mjs';

const at = siteAndBrowser({
  '/pkg-quick/': 'web/pkg-quick',
  '/browser/': 'tests/browser',
  '/vectors/': 'tests/golden/vectors',
});
let opened;
test.beforeAll(async () => {
  opened = await at.open('/');
});

const inPage = (name, argument) =>
  opened.page.evaluate(
    async ({ name, argument }) => (await import('/browser/replay-page.mjs'))[name](argument),
    { name, argument },
  );

test('recorded trajectories replay in the browser', async () => {
  const names = readdirSync(join(root, 'tests/golden/vectors')).filter((name) =>
    name.endsWith('.json'),
  );
  const reports = await inPage('replayAll', names);
  assert.deepEqual(
    reports.filter((report) => !report.ok),
    [],
  );
  const kinds = new Set(reports.filter((report) => !report.skipped).map((report) => report.kind));
  assert.deepEqual([...kinds].sort(), ['noise', 'optimizer', 'projector', 'rounding', 'schedule']);
  assert.ok(reports.filter((report) => !report.skipped).length >= 18);
});

test('a changed value in a recorded trajectory is detected', async () => {
  const report = await inPage('replayChanged', 'adamw_bf16_philox_expected.json');
  assert.equal(report.ok, false);
});
