// Exports into the browser's own streams: the receipt comes when the sink has closed, and the sink's error is that of the export.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { create, RUN, SHAPE, TEXT } from './scenario.mjs';

const FORMATS = ['gguf', 'safetensors'];
const at = siteAndBrowser();
let page;
test.beforeAll(async () => {
  ({ page } = await at.open('/'));
  await page.evaluate(`(async () => {
    globalThis.tabtune = await import('/dist/index.js');
    globalThis.trainer = await (${create})(tabtune, ${JSON.stringify({ shape: SHAPE, text: TEXT, options: RUN })});
  })()`);
});

/**
 * Exports the model; `target` makes the target, and notes in `seen` what it was given. A second later, `then` looks at it.
 * @param {string} format @param {string} target @param {{ abortAfter?: number, then?: string }} more `abortAfter` in milliseconds
 */
const into = (format, target, { abortAfter, then = '() => undefined' } = {}) =>
  page.evaluate(`(async () => {
    const pause = (millis) => new Promise((done) => setTimeout(done, millis));
    const seen = { bytes: 0, closed: false, aborted: false };
    const error = new RangeError('this sink is broken');
    const target = await (${target})({ seen, pause, error });
    const whole = (await trainer.export({ format: '${format}' })).size;
    const signal = ${abortAfter === undefined ? 'undefined' : `AbortSignal.timeout(${abortAfter})`};
    const outcome = await trainer.exportTo(target, { format: '${format}', signal }).then(
      (receipt) => ({ receipt: receipt?.operation }),
      (thrown) => ({ word: thrown.detail.code, name: thrown.name, own: thrown.cause === error }),
    );
    return { whole, ...outcome, ...seen, then: await (${then})({ seen, pause }) };
  })()`);

const sink = ({ write = '', close = '' }) => `({ seen, pause, error }) => new WritableStream({
  write: async (chunk) => { ${write}; seen.bytes += chunk.byteLength; },
  close: async () => { ${close}; seen.closed = true; },
  abort: () => { seen.aborted = true; },
})`;

for (const format of FORMATS) {
  test(`what a sink throws at a piece, late, or at its end is what the export of ${format} throws`, async () => {
    for (const faulty of [
      { write: 'throw error' },
      { write: 'await pause(30); throw error' },
      { close: 'throw error' },
    ]) {
      const { receipt, word, own, closed } = await into(format, sink(faulty));
      assert.deepEqual([receipt, word, own, closed], [undefined, 'sink.write', true, false]);
    }
  });

  test(`a slow sink has received all of ${format} when the export resolves`, async () => {
    const { whole, receipt, bytes, closed } = await into(
      format,
      sink({ write: 'await pause(20)', close: 'await pause(30)' }),
    );
    assert.deepEqual([receipt, bytes, closed], ['export', whole, true]);
  });

  test(`an export of ${format} to a sink that stalls waits until its signal aborts it`, async () => {
    const then = 'async ({ seen, pause }) => { await pause(300); return seen; }';
    const {
      receipt,
      name,
      then: later,
    } = await into(format, sink({ write: 'await pause(200)' }), { abortAfter: 60, then });
    assert.deepEqual(
      [receipt, name, later.closed, later.aborted],
      [undefined, 'AbortError', false, true],
    );
  });

  test(`a stream of createWritable takes ${format}, and nothing of an export that is aborted`, async () => {
    const target = `async () => {
      globalThis.file = await (await navigator.storage.getDirectory()).getFileHandle('${format}', { create: true });
      return file.createWritable();
    }`;
    const then = 'async () => (await file.getFile()).size';
    const aborted = await into(format, target, { abortAfter: 0, then });
    assert.deepEqual([aborted.receipt, aborted.name, aborted.then], [undefined, 'AbortError', 0]);
    const { whole, receipt, then: written } = await into(format, target, { then });
    assert.deepEqual([receipt, written], ['export', whole]);
  });
}

test('a GPU process killed during an export fails at most the export, and the trainer continues', async () => {
  const exporting = into('safetensors', sink({ write: 'await pause(40)' }), {
    then: 'async ({ seen, pause }) => { await pause(100); return seen; }',
  });
  await new Promise((done) => setTimeout(done, 150));
  at.browser.killGpu();
  const { whole, receipt, then } = await exporting;
  if (receipt === undefined) assert.deepEqual([then.closed, then.aborted], [false, true]);
  else assert.deepEqual([then.bytes, then.closed], [whole, true]);
  assert.deepEqual(await page.evaluate('(async () => (await trainer.step(1)).length)()'), 1);
});
