// Exports into the browser's own streams: the receipt comes when the sink has closed, and the sink's error is that of the export.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { inside, setting } from './scenario.mjs';

const at = siteAndBrowser();
/** @type {import('playwright-core').Page} */
let page;
test.beforeAll(async () => {
  ({ page } = await at.open('/'));
  await inside(
    page,
    async ({ create, held }, argument) => {
      held.trainer = await create(argument);
    },
    setting(),
  );
});

/** @typedef {'gguf' | 'safetensors'} Format */
/** @typedef {{ slow?: number, fails?: boolean }} Fault Pauses for so many milliseconds, then fails. */

/**
 * Exports the model into a stream with these faults, or into a file of the browser; says what the target has seen when the
 * call has ended, and a moment later.
 * @param {Format} format @param {{ file?: boolean, write?: Fault, close?: Fault, abortAfter?: number, later?: number }} how Times in milliseconds.
 */
const into = (format, how) =>
  inside(
    page,
    async ({ held, pause }, { format, file, write, close, abortAfter, later = 0 }) => {
      const seen = { bytes: 0, closed: false, aborted: false };
      const error = new RangeError('this sink is broken');
      const faulty = async (/** @type {Fault} */ { slow = 0, fails = false } = {}) => {
        if (slow > 0) await pause(slow);
        if (fails) throw error;
      };
      const handle =
        file &&
        (await (await navigator.storage.getDirectory()).getFileHandle(format, { create: true }));
      const target = handle
        ? await handle.createWritable()
        : new WritableStream({
            write: async (chunk) => {
              await faulty(write);
              seen.bytes += chunk.byteLength;
            },
            close: async () => {
              await faulty(close);
              seen.closed = true;
            },
            abort: () => void (seen.aborted = true),
          });
      /** @type {import('tabtune').Trainer} */
      const trainer = held.trainer;
      const { size: whole, name: called, type } = await trainer.export({ format });
      const signal = abortAfter === undefined ? undefined : AbortSignal.timeout(abortAfter);
      const outcome = await trainer.exportTo(target, { format, signal }).then(
        (receipt) => ({ receipt: receipt?.operation, word: '', name: '', own: false }),
        ({ detail, name, cause }) => ({
          receipt: undefined,
          word: detail.code,
          name,
          own: cause === error,
        }),
      );
      const now = { ...seen };
      await pause(later);
      const written = handle ? (await handle.getFile()).size : undefined;
      return { whole, called, type, ...outcome, now, later: seen, written };
    },
    { format, ...how },
  );

for (const format of /** @type {Format[]} */ (['gguf', 'safetensors'])) {
  test(`what a sink throws at a piece, late, or at its end is what the export of ${format} throws`, async () => {
    for (const faults of [
      { write: { fails: true } },
      { write: { slow: 30, fails: true } },
      { close: { fails: true } },
    ]) {
      const { receipt, word, own, now } = await into(format, faults);
      assert.deepEqual([receipt, word, own, now.closed], [undefined, 'sink.write', true, false]);
    }
  });

  test(`a slow sink has received all of ${format} when the export resolves`, async () => {
    const slow = { write: { slow: 20 }, close: { slow: 30 } };
    const { whole, called, type, receipt, now } = await into(format, slow);
    assert.deepEqual([receipt, now.bytes, now.closed], ['export', whole, true]);
    const named = { gguf: 'model.gguf', safetensors: 'model.zip' }[format];
    const of = { gguf: 'application/octet-stream', safetensors: 'application/zip' }[format];
    assert.deepEqual([called, type], [named, of]);
  });

  test(`an export of ${format} to a sink that stalls waits until its signal aborts it`, async () => {
    const stalls = { write: { slow: 200 }, abortAfter: 60, later: 300 };
    const { receipt, name, later } = await into(format, stalls);
    const found = [receipt, name, later.closed, later.aborted];
    assert.deepEqual(found, [undefined, 'AbortError', false, true]);
  });

  test(`a stream of createWritable takes ${format}, and nothing of an export that is aborted`, async () => {
    const aborted = await into(format, { file: true, abortAfter: 0 });
    const found = [aborted.receipt, aborted.name, aborted.written];
    assert.deepEqual(found, [undefined, 'AbortError', 0]);
    const { whole, receipt, written } = await into(format, { file: true });
    assert.deepEqual([receipt, written], ['export', whole]);
  });
}

test('a GPU process killed during an export fails at most the export, and the trainer continues', async () => {
  const exporting = into('safetensors', { write: { slow: 40 }, later: 100 });
  await new Promise((done) => setTimeout(done, 150));
  at.browser.killGpu();
  const { whole, receipt, later } = await exporting;
  if (receipt === undefined) assert.deepEqual([later.closed, later.aborted], [false, true]);
  else assert.deepEqual([later.bytes, later.closed], [whole, true]);
  const steps = await inside(page, async ({ held }) => (await held.trainer.step(1)).length);
  assert.equal(steps, 1);
});
