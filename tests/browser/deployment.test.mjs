// A tab that outlives its site: its files are gone, replaced, or out of reach while it trains. And a core or an address that is not the page's own.
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { POLICY } from '../../web/policy.mjs';
import { root } from '../../web/toolchain.mjs';
import { Browser } from './chromium.mjs';
import { create, RUN, SHAPE, TEXT, unbroken } from './scenario.mjs';
import { serve } from './site.mjs';

const OPTIONS = { shape: SHAPE, text: TEXT, options: { ...RUN, steps: 40, autosave: false } };
/** Two of four changes of the site, and no forbidden Blob, are the short form: their retries are tried without a browser too. */
const FULL = process.env.TABTUNE_FULL !== undefined;
/** @type {(() => Promise<unknown>)[]} */
let ends = [];
// Each test has a browser of its own: one whose GPU process was killed several times takes minutes to give the next one.
test.afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

/** Serves a copy of the package, which a test may change, and opens a page of it. */
async function pageOfCopy(options, { browser } = { browser: undefined }) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-site-'));
  cpSync(join(root, built.package), folder, { recursive: true });
  const site = await serve({ '/dist/': folder }, options);
  const opened = browser ?? (await Browser.launch());
  ends.push(async () => {
    if (opened !== browser) await opened.close();
    await site.close();
    rmSync(folder, { recursive: true });
  });
  return { folder, site, browser: opened, ...(await opened.open(`${site.url}/`)) };
}

/** Runs a scenario in a page, which keeps what it puts into `globalThis`. */
const inside = (page, scenario, argument = OPTIONS) =>
  page.evaluate(
    `(async (argument) => (${scenario})(await import('/dist/index.js'), argument))(${JSON.stringify(argument)})`,
  );

const BEGINS = `async (tabtune, argument) => {
  globalThis.tabtune = tabtune;
  globalThis.trainer = await (${create})(tabtune, argument);
  const first = (await trainer.step(3)).map(({ loss }) => loss);
  await trainer.save();
  return [...first, ...(await trainer.step(2)).map(({ loss }) => loss)];
}`;
/** Steps after the GPU was lost; then the runs are listed and copied, by the trainer's worker and by a new one, and the copy is removed. */
const GOES_ON = `async (tabtune, count) => {
  const losses = (await trainer.step(count)).map(({ loss }) => loss);
  const listed = (await trainer.checkpoints.list()).length;
  const { run } = await trainer.checkpoints.fork();
  const runs = await tabtune.openSavedRuns();
  const copies = (await runs.list(run)).length;
  await runs.remove(run);
  const left = (await runs.list(run)).length;
  runs.dispose();
  return { losses, listed, copies, left };
}`;

/** Changes of the site while a run continues. @type {Record<string, (at: { folder: string, page: any }) => unknown>} */
const CHANGES = {
  'its files are gone': ({ folder }) =>
    ['worker.js', 'tabtune_bg.wasm'].map((name) => rmSync(join(folder, name))),
  'other files are in their place': ({ folder }) => {
    writeFileSync(join(folder, 'worker.js'), '<!doctype html><title>not found');
    writeFileSync(join(folder, 'tabtune_bg.wasm'), 'another core');
  },
  'another version is in their place': ({ folder }) =>
    writeFileSync(
      join(folder, 'worker.js'),
      `onmessage = ({ data }) => postMessage({ ...data, type: 'error', error: { code: 'PROTOCOL', message: 'of another build', detail: { code: 'protocol.invalid' } } });`,
    ),
  'it is out of reach': ({ page }) => page.context().setOffline(true),
};
// A GPU process that was killed three times takes minutes to come back, so each browser sees two changes.
for (const changes of [
  ['its files are gone', 'it is out of reach'],
  ...(FULL ? [['other files are in their place', 'another version is in their place']] : []),
]) {
  test(`a run recovers, lists and deletes after a change of its site: ${changes.join(', then ')}`, async () => {
    const at = await pageOfCopy({});
    const truth = await inside(at.page, unbroken(9));
    assert.deepEqual(await inside(at.page, BEGINS), truth.slice(0, 5));
    for (const [index, change] of changes.entries()) {
      await CHANGES[change]?.(at);
      at.browser.killGpu();
      // The page's own module is in its memory.
      const { losses, ...seen } = await at.page.evaluate(`(${GOES_ON})(globalThis.tabtune, 2)`);
      assert.deepEqual(losses, truth.slice(5 + 2 * index, 7 + 2 * index));
      assert.deepEqual(seen, { listed: 1, copies: 1, left: 0 });
    }
  });
}

test('a core of another build and a missing core are reported as such', async () => {
  const opens = `async (tabtune, { shape, text }) => tabtune.newModel(shape, { text }).then(() => 'nothing', ({ code, detail, message }) => [code, detail.code, message])`;
  let browser;
  const changed = async (change) => {
    const { page, folder, ...at } = await pageOfCopy({}, { browser });
    browser = at.browser;
    change(join(folder, 'tabtune_bg.wasm'));
    return inside(page, opens);
  };
  // A section that says nothing: the file is valid.
  const other = await changed((file) =>
    appendFileSync(file, Buffer.from([0, 5, 4, ...Buffer.from('note')])),
  );
  assert.deepEqual(other.slice(0, 2), ['PROTOCOL', 'core.build']);
  assert.match(other[2], /different builds.*Reload the page/);
  // A module that imports x.y, which the page does not have.
  const imports = Buffer.from([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 120, 1, 121, 0, 0,
  ]);
  const needs = await changed((file) => writeFileSync(file, imports));
  assert.deepEqual(needs.slice(0, 2), ['PROTOCOL', 'core.build']);
  const none = await changed((file) => writeFileSync(file, '<!doctype html>'));
  assert.deepEqual(none.slice(0, 2), ['WORKER_CRASHED', 'wasm.load']);
});

test('addresses are resolved against the base of their frame, and a frame without an origin is reported', async () => {
  const open = {
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  };
  const { page, site } = await pageOfCopy({ policy: null, ...open });
  const trains = `async (tabtune, { shape, text }) => {
    const model = await tabtune.newModel(shape, { text }, { workerUrl: './worker.js', wasmUrl: 'tabtune_bg.wasm' });
    const { parameters } = model.info;
    model.dispose();
    return parameters;
  }`;
  const frame = (attributes, script) => `new Promise((resolve) => {
    addEventListener('message', ({ data }) => resolve(data), { once: true });
    const frame = document.createElement('iframe');
    Object.assign(frame, ${JSON.stringify(attributes)});
    frame.srcdoc = ${JSON.stringify(`<base href="${site.url}/dist/"><script type="module">`)} + ${JSON.stringify(script)} + ${JSON.stringify('</script>')};
    document.body.append(frame);
  })`;
  const script = (work) => `
    const tabtune = await import('${site.url}/dist/index.js');
    const failure = ({ code, detail, message }) => [code, detail?.code, message];
    parent.postMessage(await (${work})(tabtune, ${JSON.stringify(OPTIONS)}).catch(failure), '*');`;
  assert.ok(Number(await page.evaluate(frame({}, script(trains)))) > 0);
  const refused = `async (tabtune, options) => [await tabtune.support(), await (${trains})(tabtune, options).catch(({ code, detail }) => [code, detail.code])]`;
  const [{ ok, code, help }, error] = await page.evaluate(
    frame({ sandbox: 'allow-scripts' }, script(refused)),
  );
  assert.deepEqual(
    [ok, code, error],
    [false, 'UNSUPPORTED_BROWSER', ['UNSUPPORTED_BROWSER', 'browser.origin']],
  );
  assert.match(help, /frame/);
});

const policed = async () => {
  const { page, browser } = await pageOfCopy({
    policy: POLICY.replace(' blob:; connect-src', '; connect-src'),
  });
  const truth = await inside(page, unbroken(9));
  await inside(page, BEGINS);
  browser.killGpu();
  assert.deepEqual(
    (await page.evaluate(`(${GOES_ON})(globalThis.tabtune, 2)`)).losses,
    truth.slice(5, 7),
  );
};
if (FULL)
  test(
    'a page whose policy forbids a Blob as a worker goes on as long as its site is there',
    policed,
  );
