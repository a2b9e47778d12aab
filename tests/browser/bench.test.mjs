// The benchmark's page keeps its contract, with the tokens, weights and first loss that other libraries have on the same description.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';
import { siteAndBrowser } from './hooks.mjs';

// The first loss of @jax-js/jax and TensorFlow.js in Chromium, and of the CPU device natively.
const FIRST_LOSS = 6.935565;
const TOKENS = '781595cf'; // checksum of ../shared/bench/spec.mjs for tiny

const at = siteAndBrowser({ '/dist/': built.package, '/': '.' });

test('the benchmark page trains the described model and continues from call to call', async () => {
  const { page, record } = await at.open('/tests/bench/tabtune.html');
  await page.waitForFunction(() => globalThis.__bench !== undefined);
  const call = (steps) =>
    page.evaluate((ask) => globalThis.__bench(ask), {
      size: 'tiny',
      steps,
      specUrl: `${at.site.url}/tests/bench/spec.mjs`,
    });
  const first = await call(0);
  const second = await call(2);
  await page.close();
  assert.deepEqual(record.errors, []);
  assert.deepEqual([first.params, first.tokens, first.sameInit], [922_752, TOKENS, true]);
  assert.equal(first.losses.length, 1);
  // f32 with sums in another order.
  assert.ok(Math.abs(first.losses[0] / FIRST_LOSS - 1) < 1e-6, `first loss ${first.losses[0]}`);
  assert.equal(first.stepMs, undefined);
  assert.ok(first.firstStepMs > 0 && second.stepMs > 0 && second.firstStepMs === first.firstStepMs);
  // jax-js reads 6.763824 before its second update on the second batch.
  assert.ok(Math.abs(second.losses[0] / 6.763824 - 1) < 1e-5, `second loss ${second.losses[0]}`);
  assert.ok(second.losses[1] < second.losses[0]);
});

test('constructors run once, not at every entry of the module', async () => {
  const module = await WebAssembly.compile(
    readFileSync(join(root, built.package, 'tabtune_bg.wasm')),
  );
  const names = WebAssembly.Module.exports(module).map(({ name }) => name);
  // Without this export the linker wraps every exported function in the constructors: a step of tiny spent 7 of its 9 seconds there.
  assert.ok(names.includes('__wasm_call_ctors'));
});
