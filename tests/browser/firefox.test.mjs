// The system's Firefox: a run of its own from the first step to the exported file, and the same run as in Chromium.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { missingFirefox } from '../../web/toolchain.mjs';
import { Browser } from './chromium.mjs';
import { Firefox } from './firefox.mjs';
import { inside, setting } from './scenario.mjs';
import { serve } from './site.mjs';

const missing = missingFirefox();
test.skip(missing !== undefined, `Firefox: ${missing}`);

const STEPS = 30;
/** Sums in another order: observed are 8e-8 at this rate. At ten times the rate AdamW makes 1.5e-4 of it. */
const NEAR = 1e-5;

/** @type {import('./site.mjs').Site} */
let site;
/** @type {Browser} */
let firefox;
test.beforeAll(async () => {
  site = await serve();
  firefox = await Firefox.launch();
});
test.afterAll(async () => {
  await firefox?.close();
  await site?.close();
});

/**
 * Runs `work(s, argument)` in a new page, which must end without an error on the console.
 * @template A, R
 * @param {Browser} browser @param {(s: import('./scenario.mjs').Helpers, argument: A) => R} work @param {A} [argument]
 */
async function inPage(browser, work, argument) {
  const { page, record } = await browser.open(`${site.url}/`);
  const result = await inside(page, work, argument);
  await page.close();
  assert.deepEqual(record.errors, []);
  assert.deepEqual([...record.origins], [site.url]);
  return result;
}

test('Firefox trains in bf16, saves, restarts, resumes bit for bit and exports GGUF', async () => {
  const bf16 = setting({ precision: 'bf16' });
  const support = await inPage(firefox, ({ tabtune }) => tabtune.support());
  assert.deepEqual([support.ok, support.adapter?.software], [true, true], support.help);
  const whole = await inPage(
    firefox,
    async ({ create, finished }, given) => finished(await create(given), 6),
    bf16,
  );
  assert.ok(whole.losses[5] < whole.losses[0], `loss falls: ${whole.losses}`);
  const first = await inPage(
    firefox,
    async ({ create, losses }, given) => {
      const trainer = await create(given);
      const taken = await losses(trainer, 3);
      await trainer.save();
      await trainer.dispose();
      return { run: trainer.runId, losses: taken };
    },
    bf16,
  );
  await firefox.restart();
  const second = await inPage(
    firefox,
    async ({ tabtune, finished }, run) => finished(await tabtune.Trainer.resume({ run }), 3),
    first.run,
  );
  assert.deepEqual([...first.losses, ...second.losses], whole.losses);
  assert.deepEqual([second.loss, second.bytes], [whole.loss, whole.bytes]);
  const { magic, loss } = await inPage(
    firefox,
    async ({ tabtune }, { run, text, options }) => {
      const trainer = await tabtune.Trainer.resume({ run });
      const gguf = await trainer.export({ format: 'gguf' });
      await trainer.dispose();
      const model = await tabtune.openModel([new File([gguf], 'model.gguf')]);
      const again = await tabtune.Trainer.create({ model, data: { text }, ...options });
      const { loss } = await again.evaluate();
      await again.dispose();
      return { magic: await gguf.slice(0, 4).text(), loss };
    },
    { run: first.run, ...bf16 },
  );
  assert.equal(magic, 'GGUF');
  assert.ok(Number.isFinite(loss) && loss < whole.losses[0], `evaluation of the file: ${loss}`);
});

test('Firefox and Chromium take the same steps and say the same', async () => {
  /** @param {Browser} browser */
  const trained = (browser) =>
    inPage(
      browser,
      async ({ create, losses }, { given, steps }) => {
        const trainer = await create(given);
        const taken = await losses(trainer, steps);
        let text = '';
        const greedy = { maxTokens: 12, temperature: 0 };
        for await (const token of trainer.sample('It is', greedy)) text += token.text;
        await trainer.dispose();
        return { taken, text };
      },
      { given: setting({ steps: STEPS, learningRate: 1e-3 }), steps: STEPS },
    );
  const here = await trained(firefox);
  const chromium = await Browser.launch();
  const there = await trained(chromium).finally(() => chromium.close());
  const worst = Math.max(
    ...here.taken.map((loss, at) => Math.abs(loss / (there.taken[at] ?? NaN) - 1)),
  );
  console.log(`Firefox and Chromium: losses differ by ${worst.toExponential(1)} at most`);
  assert.equal(here.taken.length, STEPS);
  assert.ok(worst <= NEAR, `losses differ by ${worst}: ${here.taken} and ${there.taken}`);
  assert.equal(here.text, there.text);
  assert.equal(here.text.length, 12);
});
