// Pages of other kinds: with trusted types, with a policy that forbids the worker, isolated, over plain http; and the resources that a page holds
// after a run.
import assert from 'node:assert/strict';
import { expect, test } from '@playwright/test';
import { POLICY } from '../../web/policy.mjs';
import { Browser } from './chromium.mjs';
import { fill, textOf, untilStep } from './demo-run.mjs';
import { inside, setting } from './scenario.mjs';
import { serve } from './site.mjs';

/** A name of this machine that is not a secure context. */
const PLAIN = 'plain.test';
/** @type {import('./site.mjs').Site[]} */
const sites = [];
/** @type {Browser} */
let browser;
/** The demo in a browser that never finds its GPU; it is awaited during the other tests. @type {Promise<void>} */
let hanging;
test.beforeAll(async () => {
  browser = await Browser.launch([
    `--host-resolver-rules=MAP ${PLAIN} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
  ]);
  hanging = withoutGpu();
  hanging.catch(() => undefined);
});
test.afterAll(async () => {
  await browser?.close();
  await Promise.all(sites.map((site) => site.close()));
});

/**
 * Opens a page of a separate site; returns its address, the page and a record of its errors.
 * @param {import('./site.mjs').Options} options @param {{ path?: string, host?: string }} at
 */
async function pageOf(options, { path = '/', host } = {}) {
  const site = await serve({}, options);
  sites.push(site);
  const url = host === undefined ? site.url : site.url.replace('127.0.0.1', host);
  return { url, ...(await browser.open(`${url}${path}`)) };
}

/** @typedef {import('./scenario.mjs').Helpers} Helpers @typedef {import('./scenario.mjs').Setting} Setting */

/** Takes a step in a page, and returns its number. @param {{ page: import('playwright-core').Page }} opened */
const trains = ({ page }) =>
  inside(
    page,
    async ({ create }, argument) => {
      const trainer = await create(argument);
      const [{ step }] = await trainer.step(1);
      await trainer.dispose();
      return step;
    },
    setting(),
  );
const BLOCKED = ['UNSUPPORTED_BROWSER', 'worker.blocked'];
const DEMANDS = "; require-trusted-types-for 'script'";

async function withoutGpu() {
  const { page, record } = await pageOf({}, { path: '/demo/' });
  await inside(
    page,
    async ({ create }, argument) => {
      const trainer = await create(argument);
      await trainer.step(1);
      await trainer.save();
      await trainer.dispose();
    },
    setting(),
  );
  await page.addInitScript(() => {
    GPU.prototype.requestAdapter = () => new Promise(() => undefined);
  });
  await page.reload();
  // Before the time limit for the GPU is over.
  await page.locator('#checkpoints li').first().waitFor({ timeout: 15_000 });
  assert.doesNotMatch(await textOf(page, 'body'), /did not answer/);
  await page.getByText('did not answer within 20 seconds').waitFor({ timeout: 40_000 });
  assert.deepEqual(record.errors, []);
}

test('a page that requires trusted types trains with the policy tabtune', async () => {
  const opened = await pageOf({ policy: `${POLICY}${DEMANDS}; trusted-types tabtune` });
  assert.equal(await trains(opened), 1);
  assert.deepEqual(opened.record.errors, []);
});

test('a TrustedScriptURL is used unchanged', async () => {
  const opened = await pageOf({ policy: `${POLICY}${DEMANDS}; trusted-types own` });
  const { refused, parameters } = await inside(
    opened.page,
    async ({ tabtune, failure }, { shape, text }) => {
      const refused = await failure(tabtune.newModel(shape, { text }));
      /** @type {any} */
      const { trustedTypes } = globalThis;
      const createScriptURL = (/** @type {string} */ address) => address;
      const policy = trustedTypes.createPolicy('own', { createScriptURL });
      const workerUrl = policy.createScriptURL('/dist/worker.js');
      const model = await tabtune.newModel(shape, { text }, { workerUrl });
      const { parameters } = model.info;
      await model.dispose();
      return { refused, parameters };
    },
    setting(),
  );
  assert.deepEqual([refused.code, refused.word], BLOCKED);
  assert.match(refused.message, /no policy named tabtune/);
  assert.ok(parameters > 0);
});

test('a page that names trusted types without requiring them trains', async () => {
  assert.equal(await trains(await pageOf({ policy: `${POLICY}; trusted-types other` })), 1);
});

test("a worker forbidden by the page's policy is reported as blocked", async () => {
  const policy = POLICY.replace("worker-src 'self'", "worker-src 'none'");
  const { page } = await pageOf({ policy });
  const { code, word, message } = await inside(
    page,
    ({ tabtune, failure }, { shape, text }) => failure(tabtune.newModel(shape, { text })),
    setting(),
  );
  assert.deepEqual([code, word], BLOCKED);
  assert.match(message, /worker-src/);
});

test('a worker without the isolation of its page and a missing worker are reported as such', async () => {
  const isolated = {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  };
  const opened = await pageOf({ ...isolated, scripts: { '/bare.js': { bare: true } } });
  assert.equal(await trains(opened), 1);
  const [bare, missing] = await inside(
    opened.page,
    async ({ tabtune, failure }, { shape, text }) => {
      const fails = (/** @type {string} */ workerUrl) =>
        failure(tabtune.newModel(shape, { text }, { workerUrl }));
      return [await fails('/bare.js'), await fails('/nowhere.js')];
    },
    setting(),
  );
  assert.deepEqual([bare.code, bare.word], BLOCKED);
  assert.match(bare.message, /Cross-Origin-Embedder-Policy: require-corp/);
  assert.deepEqual([missing.code, missing.word], ['WORKER_CRASHED', 'worker.failed']);
  assert.match(missing.message, /HTTP 404/);
});

test('every call on plain http reports that, and the page explains it', async () => {
  const opened = await pageOf({}, { host: PLAIN });
  const { failures, ok, code, help } = await inside(
    opened.page,
    async ({ tabtune, failure }, { shape, text }) => {
      const file = new Blob(['GGUF']);
      const calls = [
        tabtune.openModel(file),
        tabtune.newModel(shape, { text }),
        tabtune.inspectFiles(file),
        tabtune.verifyFiles(file),
        tabtune.measureGpu(),
        tabtune.openSavedRuns(),
        tabtune.Trainer.resume({ run: 'a' }),
        tabtune.extractAdapter({ tuned: file, base: file, r: 1 }),
      ];
      return { failures: await Promise.all(calls.map(failure)), ...(await tabtune.support()) };
    },
    setting(),
  );
  const insecure = 'UNSUPPORTED_BROWSER browser.insecure';
  const words = failures.map((each) => `${each.code} ${each.word}`);
  assert.deepEqual(words, Array(8).fill(insecure));
  assert.deepEqual([ok, code], [false, 'UNSUPPORTED_BROWSER']);
  assert.match(`${help}`, /plain http/);
  const { page, record } = await pageOf({}, { host: PLAIN, path: '/demo/' });
  await page.getByText('opened over plain http').first().waitFor();
  await page.locator('#status', { hasText: 'Training is not possible in this browser' }).waitFor();
  assert.deepEqual(record.errors, []);
});

test("a text in another script trains with the page's defaults", async () => {
  const { page, record } = await pageOf({}, { path: '/demo/' });
  const text =
    'Τὸν δὲ προσέφη πολύμητις Ὀδυσσεύς. Все счастливые семьи похожи друг на друга. 吾輩は猫である。名前はまだ無い。 '.repeat(
      60,
    );
  const greek = { name: 'greek.txt', mimeType: 'text/plain', buffer: Buffer.from(text) };
  await page.locator('#data-file').setInputFiles(greek);
  await expect(page.locator('#prompt')).toHaveValue(/^Τὸν/);
  // Until it is known that the GPU is software, its numbers may still replace one that is being typed.
  await page.locator('#start:enabled').waitFor();
  await fill(page, { steps: 2, sample: 1 });
  await page.click('#start');
  await untilStep(page, 2);
  assert.doesNotMatch(await textOf(page, 'body'), /there will be no samples/);
  // The text is gone after a reload, and so is the prompt that it suggested; the numbers that were typed for it come back with it.
  await page.reload();
  await expect(page.locator('#s-steps')).not.toHaveValue('2');
  assert.match(await page.inputValue('#prompt'), /^It is a truth/);
  await page.locator('#data-file').setInputFiles(greek);
  await expect(page.locator('#s-steps')).toHaveValue('2');
  assert.deepEqual(record.errors, []);
});

test('dispose drops the files of a base, except those that a later resume needs once', async () => {
  const opened = await pageOf({});
  await inside(
    opened.page,
    async ({ tabtune, create, held }, { text, options, ...argument }) => {
      const first = await create({ ...argument, text, options });
      const gguf = await (await first.export({ format: 'gguf' })).arrayBuffer();
      await first.dispose();
      /** @type {string[]} */
      const gone = (held.gone = []);
      held.collected = new FinalizationRegistry((/** @type {string} */ name) => gone.push(name));
      const adapter = { r: 2, alpha: 4, targetModules: /** @type {const} */ ('all-linear') };
      const run = async (/** @type {string} */ name) => {
        const file = new Blob([gguf]);
        held.collected.register(file, name);
        const model = await tabtune.openModel(file);
        const given = { model, data: { text }, ...options, adapter };
        const trainer = await tabtune.Trainer.create(given);
        if (name.startsWith('saved')) await trainer.save();
        await trainer.dispose();
        return trainer.runId;
      };
      const ids = [];
      for (const index of [0, 1, 2]) ids.push(await run(`saved ${index}`));
      for (const index of [0, 1, 2]) await run(`unsaved ${index}`);
      const again = await tabtune.Trainer.resume({ run: ids[2] });
      await again.dispose();
    },
    setting({ autosave: false }, { hiddenSize: 64 }),
  );
  const devtools = await opened.page.context().newCDPSession(opened.page);
  const gone = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    return inside(opened.page, ({ held }) => /** @type {string[]} */ (held.gone));
  };
  for (const until = Date.now() + 10_000; (await gone()).length < 5 && Date.now() < until;)
    await new Promise((done) => setTimeout(done, 100));
  // The first is the worker of all saved runs.
  assert.deepEqual((await gone()).sort(), [
    'saved 1',
    'saved 2',
    'unsaved 0',
    'unsaved 1',
    'unsaved 2',
  ]);
});

test('the page shows what needs no GPU while the browser looks for one, and then that there is none', () =>
  hanging);
