// Adapters against float64 in a real browser, on a small base of seven types: losses, gradients, short runs; packed and decoded, bit for bit.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { bench, judged } from './lora.mjs';

const folder = join(root, 'tests', 'golden', 'lora');
const { cases } = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8'));

let browser;
test.beforeAll(async () => (browser = await bench(folder)));
test.afterAll(() => browser?.close());

for (const each of cases) {
  test(`reference numbers in the browser: ${each.id}`, async () => {
    const stored = await browser.answer(each, 'stored');
    assert.ok(stored.ok, `${stored.measure}: ${stored.worst} of its bound`);
    assert.deepEqual(stored.storage, { F16: 2, Q4_0: 3, Q4_1: 3, Q5_0: 2, Q5_1: 2, Q8_0: 3 });
    const decoded = await browser.answer(each, 'f32');
    assert.deepEqual([decoded.digest, decoded.storage], [stored.digest, { F32: 15 }]);
    // The judge notices values that are off by more than their bound.
    const off = structuredClone(stored.found);
    if (each.kind === 'lora_train')
      Object.values(off.tensors).find(({ change }) => change > 0).change *= 1.002;
    else if (each.kind === 'lora_grad')
      Object.values(off.samples)[1][0] += 2e-4 * Object.values(off.norms)[1];
    else off.mean *= 1.00002;
    assert.equal(judged(each, off).ok, false);
  });
}
