// Repeats every kernel case that the Rust tests recorded in a real browser: the kernel agrees with its twin. Its mutants failed natively, except for
// those that take a native driver too long to compile (`unproven`). One text of each kernel runs here, and every text without a proven mutant; every
// twelfth mutant, to show that these tests can fail, and of the unproven ones every sixth. With TABTUNE_FULL=1 all of them run.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { stems } from '../../shaders/stems.mjs';
import { siteAndBrowser } from './hooks.mjs';

const folder = process.env.TABTUNE_CASES;
const names =
  folder && existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
const manifests = names.map((name) => ({
  name: name.slice(0, -'.json'.length),
  ...JSON.parse(readFileSync(join(String(folder), name), 'utf8')),
}));
const full = process.env.TABTUNE_FULL !== undefined;

const at = siteAndBrowser({ '/cases/': folder ?? '.' });
/** @type {Awaited<ReturnType<typeof at.open>>} */
let opened;
test.beforeAll(async () => {
  // One page for all cases, with one device.
  opened = await at.open('/');
});

test('every shader has recorded cases', () => {
  assert.ok(
    names.length > 0,
    'run node tests/run.mjs rust browser: the Rust tests record the cases',
  );
  const recorded = new Set(manifests.map(({ kernel }) => kernel));
  assert.deepEqual(
    [...stems.keys()].filter((stem) => stem !== 'common' && !recorded.has(stem)),
    [],
  );
});

const sorted = [...manifests].sort((a, b) => (a.name < b.name ? -1 : 1));
/** Checks of each kernel's first text; a kernel has several texts for its storage types and sizes. */
const first = new Set(
  new Map([...sorted].reverse().map((check) => [check.kernel, check])).values(),
);
const checks = sorted.filter((check) => full || check.unproven || first.has(check));
for (const [index, { name, unproven }] of checks.entries()) {
  const mutated = full || index % (unproven ? 6 : 12) === 0;
  test(`parity in the browser: ${name}`, async () => {
    const result = await opened.page.evaluate(
      async ({ name, mutated }) => (await import('/browser/replay.mjs')).replay(name, mutated),
      { name, mutated },
    );
    assert.deepEqual([...opened.record.errors.splice(0), ...result.errors], []);
    const worst = Math.max(...result.source.map(Number));
    assert.ok(
      worst <= result.bound,
      `${result.kernel} differs by ${worst}, bound ${result.bound}: ${result.source}`,
    );
    const caught =
      !mutated || result.mutant.map(Number).some((difference) => difference > result.bound);
    assert.ok(caught, `${result.kernel}: the mutant passed: ${result.mutant}`);
  });
}
