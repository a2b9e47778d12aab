// Pages of other kinds: with trusted types, with a policy that forbids the worker, isolated, over plain http; and the resources that a page holds
// after a run.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { POLICY } from '../../web/policy.mjs';
import { Browser } from './chromium.mjs';
import { create, RUN, SHAPE, TEXT } from './scenario.mjs';
import { serve } from './site.mjs';

const OPTIONS = { shape: SHAPE, text: TEXT, options: RUN };
/** A name of this machine that is not a secure context. */
const PLAIN = 'plain.test';
const sites = [];
let browser;
/** The demo in a browser that never finds its GPU; it is awaited during the other tests. */
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
  const site = await serve({ '/dist/': built.package, '/demo/': built.demo }, options);
  sites.push(site);
  const url = host === undefined ? site.url : site.url.replace('127.0.0.1', host);
  return { url, ...(await browser.open(`${url}${path}`)) };
}

/** Runs a scenario in a page; a failure is returned as its code, word and message. */
const inside = ({ page }, scenario, argument = OPTIONS) =>
  page.evaluate(`(async (argument) => {
    const tabtune = await import('/dist/index.js');
    const failure = (work) => work.then(() => 'nothing', (thrown) => (thrown instanceof tabtune.TabtuneError ? [thrown.code, thrown.detail.code, thrown.message] : 'raw ' + thrown));
    return (${scenario})(tabtune, argument, failure);
  })(${JSON.stringify(argument)})`);

const TRAINS = `async (tabtune, argument) => {
  const trainer = await (${create})(tabtune, argument);
  const [step] = await trainer.step(1);
  await trainer.dispose();
  return step.step;
}`;
const OPENS =
  'async (tabtune, { shape, text }, failure) => failure(tabtune.newModel(shape, { text }))';
const DEMANDS = "; require-trusted-types-for 'script'";

async function withoutGpu() {
  const site = await serve();
  sites.push(site);
  const { page, record } = await browser.open(`${site.url}/demo/`);
  const saves = `async (tabtune, argument) => {
    const trainer = await (${create})(tabtune, argument);
    await trainer.step(1);
    await trainer.save();
    await trainer.dispose();
  }`;
  await inside({ page }, saves);
  await page.addInitScript('GPU.prototype.requestAdapter = () => new Promise(() => undefined)');
  await page.reload();
  // Before the time limit for the GPU is over.
  await page.locator('#checkpoints li').first().waitFor({ timeout: 15_000 });
  assert.doesNotMatch(String(await page.textContent('body')), /did not answer/);
  await page.getByText('did not answer within 20 seconds').waitFor({ timeout: 40_000 });
  assert.deepEqual(record.errors, []);
}

test('a page that requires trusted types trains with the policy tabtune', async () => {
  const opened = await pageOf({ policy: `${POLICY}${DEMANDS}; trusted-types tabtune` });
  assert.equal(await inside(opened, TRAINS), 1);
  assert.deepEqual(opened.record.errors, []);
});

test('a TrustedScriptURL is used unchanged', async () => {
  const opened = await pageOf({ policy: `${POLICY}${DEMANDS}; trusted-types own` });
  const scenario = `async (tabtune, argument, failure) => {
    const refused = await failure(tabtune.newModel(argument.shape, { text: argument.text }));
    const policy = trustedTypes.createPolicy('own', { createScriptURL: (address) => address });
    const model = await tabtune.newModel(argument.shape, { text: argument.text }, { workerUrl: policy.createScriptURL('/dist/worker.js') });
    const { parameters } = model.info;
    model.dispose();
    return { refused, parameters };
  }`;
  const { refused, parameters } = await inside(opened, scenario);
  assert.deepEqual(refused.slice(0, 2), ['UNSUPPORTED_BROWSER', 'worker.blocked']);
  assert.match(refused[2], /no policy named tabtune/);
  assert.ok(parameters > 0);
});

test('a page that names trusted types without requiring them trains', async () => {
  assert.equal(await inside(await pageOf({ policy: `${POLICY}; trusted-types other` }), TRAINS), 1);
});

test("a worker forbidden by the page's policy is reported as blocked", async () => {
  const refused = await inside(
    await pageOf({ policy: POLICY.replace("worker-src 'self'", "worker-src 'none'") }),
    OPENS,
  );
  assert.deepEqual(refused.slice(0, 2), ['UNSUPPORTED_BROWSER', 'worker.blocked']);
  assert.match(refused[2], /worker-src/);
});

test('a worker without the isolation of its page and a missing worker are reported as such', async () => {
  const isolated = {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  };
  const opened = await pageOf({
    ...isolated,
    scripts: {
      '/bare.js': { text: "import '/dist/worker.js';", bare: true },
      '/page.js': { text: '<p>a page', bare: false },
    },
  });
  assert.equal(await inside(opened, TRAINS), 1);
  const scenario = `async (tabtune, { shape, text }, failure) => {
    const told = {};
    for (const name of ['bare.js', 'nowhere.js']) told[name] = await failure(tabtune.newModel(shape, { text }, { workerUrl: '/' + name }));
    return told;
  }`;
  const told = await inside(opened, scenario);
  assert.deepEqual(told['bare.js'].slice(0, 2), ['UNSUPPORTED_BROWSER', 'worker.blocked']);
  assert.match(told['bare.js'][2], /Cross-Origin-Embedder-Policy: require-corp/);
  assert.deepEqual(told['nowhere.js'].slice(0, 2), ['WORKER_CRASHED', 'worker.failed']);
  assert.match(told['nowhere.js'][2], /HTTP 404/);
});

test('every call on plain http reports that, and the page explains it', async () => {
  const opened = await pageOf({}, { host: PLAIN });
  const scenario = `async (tabtune, { shape, text }, failure) => {
    const file = new Blob(['GGUF']);
    const calls = [tabtune.openModel(file), tabtune.newModel(shape, { text }), tabtune.inspectFiles(file), tabtune.verifyFiles(file), tabtune.measureGpu(), tabtune.openSavedRuns(), tabtune.Trainer.resume({ run: 'a' }), tabtune.extractAdapter({ tuned: file, base: file, r: 1 })];
    const { ok, code, help } = await tabtune.support();
    return { told: await Promise.all(calls.map(failure)), ok, code, help };
  }`;
  const { told, ok, code, help } = await inside(opened, scenario);
  for (const each of told)
    assert.deepEqual(each.slice(0, 2), ['UNSUPPORTED_BROWSER', 'browser.insecure'], `${each}`);
  assert.deepEqual([ok, code], [false, 'UNSUPPORTED_BROWSER']);
  assert.match(help, /plain http/);
  const { page, record } = await pageOf({}, { host: PLAIN, path: '/demo/' });
  await page.getByText('opened over plain http').first().waitFor();
  await page.locator('#status', { hasText: 'Training is not possible in this browser' }).waitFor();
  assert.deepEqual(record.errors, []);
});

test("a text in another script trains with the page's defaults", async () => {
  const site = await serve();
  sites.push(site);
  const { page, record } = await browser.open(`${site.url}/demo/`);
  const text =
    'Τὸν δὲ προσέφη πολύμητις Ὀδυσσεύς. Все счастливые семьи похожи друг на друга. 吾輩は猫である。名前はまだ無い。 '.repeat(
      60,
    );
  await page
    .locator('#data-file')
    .setInputFiles({ name: 'greek.txt', mimeType: 'text/plain', buffer: Buffer.from(text) });
  await page.waitForFunction(() => document.querySelector('#prompt').value.startsWith('Τὸν'));
  // Until it is known that the GPU is software, its numbers may still replace one that is being typed.
  await page.locator('#start:enabled').waitFor();
  await page.locator('#s-steps').fill('2');
  await page.locator('#s-sample').fill('1');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.waitForFunction(
    () => document.querySelector('#main').dataset.step === '2',
    undefined,
    { timeout: 60_000 },
  );
  assert.doesNotMatch(String(await page.textContent('body')), /there will be no samples/);
  // The text is gone after a reload, and so is the prompt that it suggested; other settings remain.
  await page.reload();
  await page.waitForFunction(() => document.querySelector('#s-steps').value === '2', undefined, {
    timeout: 60_000,
    polling: 250,
  });
  assert.match(await page.inputValue('#prompt'), /^It is a truth/);
  assert.deepEqual(record.errors, []);
});

test('dispose drops the files of a base, except those that a later resume needs once', async () => {
  const opened = await pageOf({});
  const scenario = `async (tabtune, { shape, text, options }) => {
    const first = await (${create})(tabtune, { shape: { ...shape, hiddenSize: 64 }, text, options });
    const gguf = await (await first.export({ format: 'gguf' })).arrayBuffer();
    await first.dispose();
    const gone = [];
    const collected = (globalThis.collected = new FinalizationRegistry((name) => gone.push(name)));
    const run = async (index, save) => {
      const file = new Blob([gguf]);
      collected.register(file, index);
      const model = await tabtune.openModel(file);
      const trainer = await tabtune.Trainer.create({ model, data: { text }, ...options, autosave: false, adapter: { r: 2, alpha: 4, targetModules: 'all-linear' } });
      if (save) await trainer.save();
      await trainer.dispose();
      return trainer.runId;
    };
    const ids = [];
    for (let index = 0; index < 3; index++) ids.push(await run('saved ' + index, true));
    for (let index = 0; index < 3; index++) await run('unsaved ' + index, false);
    globalThis.gone = gone;
    const again = await tabtune.Trainer.resume({ run: ids[2] });
    await again.dispose();
    return ids.length;
  }`;
  assert.equal(await inside(opened, scenario), 3);
  const devtools = await opened.page.context().newCDPSession(opened.page);
  const gone = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    return opened.page.evaluate(() => globalThis.gone.length);
  };
  for (const until = Date.now() + 10_000; (await gone()) < 5 && Date.now() < until;)
    await new Promise((done) => setTimeout(done, 100));
  // The first is the worker of all saved runs.
  assert.deepEqual((await opened.page.evaluate(() => globalThis.gone)).sort(), [
    'saved 1',
    'saved 2',
    'unsaved 0',
    'unsaved 1',
    'unsaved 2',
  ]);
});

test('the page shows what needs no GPU while the browser looks for one, and then that there is none', () =>
  hanging);
