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
import { inside, setting } from './scenario.mjs';
import { serve } from './site.mjs';

const SETTING = setting({ steps: 40, autosave: false });
/** Two of four changes of the site, and no forbidden Blob, are the short form: their retries are tried without a browser too. */
const FULL = process.env.TABTUNE_FULL !== undefined;
/** @type {(() => Promise<unknown>)[]} */
let ends = [];
// Each test has a browser of its own: one whose GPU process was killed several times takes minutes to give the next one.
test.afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

/** Serves a copy of the package, which a test may change, and opens a page of it. @param {import('./site.mjs').Options} options @param {Browser} [browser] */
async function pageOfCopy(options, browser) {
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

/** @typedef {import('./scenario.mjs').Helpers} Helpers @typedef {import('./scenario.mjs').Setting} Setting */
/** @typedef {Awaited<ReturnType<typeof pageOfCopy>>} Opened @typedef {import('playwright-core').Page} Page */

/** Losses of an unbroken run. @param {Page} page */
const unbroken = (page) => inside(page, (s, argument) => s.unbroken(argument, 9), SETTING);

/** Starts a run that the page keeps; returns its losses of five steps. @param {Page} page */
const begins = (page) =>
  inside(
    page,
    async ({ create, losses, held }, argument) => {
      const trainer = (held.trainer = await create(argument));
      const first = await losses(trainer, 3);
      await trainer.save();
      return [...first, ...(await losses(trainer, 2))];
    },
    SETTING,
  );

/**
 * Takes two steps after the GPU was lost; then the runs are listed and copied, by the trainer's worker and by a new one, and
 * the copy is removed. The page's own modules are in its memory.
 * @param {Page} page
 */
const continues = (page) =>
  inside(page, async ({ tabtune, losses, held }) => {
    /** @type {import('tabtune').Trainer} */
    const trainer = held.trainer;
    const found = await losses(trainer, 2);
    const listed = (await trainer.checkpoints.list()).length;
    const { run } = await trainer.checkpoints.fork();
    const runs = await tabtune.openSavedRuns();
    const copies = (await runs.list({ run })).length;
    await runs.remove(run);
    const left = (await runs.list({ run })).length;
    await runs.dispose();
    return { losses: found, listed, copies, left };
  });

/** A worker of another version of the package. */
function anotherVersion() {
  onmessage = ({ data }) => {
    const error = {
      code: 'PROTOCOL',
      message: 'of another build',
      detail: { code: 'protocol.invalid' },
    };
    postMessage({ ...data, type: 'error', error });
  };
}

/** Changes of the site while a run continues. @type {Record<string, (at: Opened) => unknown>} */
const CHANGES = {
  'its files are gone': ({ folder }) =>
    ['worker.js', 'tabtune_bg.wasm'].map((name) => rmSync(join(folder, name))),
  'other files are in their place': ({ folder }) => {
    writeFileSync(join(folder, 'worker.js'), '<!doctype html><title>not found');
    writeFileSync(join(folder, 'tabtune_bg.wasm'), 'another core');
  },
  'another version is in their place': ({ folder }) =>
    writeFileSync(join(folder, 'worker.js'), `(${anotherVersion})();`),
  'it is out of reach': ({ page }) => page.context().setOffline(true),
};
// A GPU process that was killed three times takes minutes to come back, so each browser sees two changes.
for (const changes of [
  ['its files are gone', 'it is out of reach'],
  ...(FULL ? [['other files are in their place', 'another version is in their place']] : []),
]) {
  test(`a run recovers, lists and deletes after a change of its site: ${changes.join(', then ')}`, async () => {
    const at = await pageOfCopy({});
    const truth = await unbroken(at.page);
    assert.deepEqual(await begins(at.page), truth.slice(0, 5));
    for (const [index, change] of changes.entries()) {
      await CHANGES[change]?.(at);
      at.browser.killGpu();
      const { losses, ...seen } = await continues(at.page);
      assert.deepEqual(losses, truth.slice(5 + 2 * index, 7 + 2 * index));
      assert.deepEqual(seen, { listed: 1, copies: 1, left: 0 });
    }
  });
}

test('a core of another build and a missing core are reported as such', async () => {
  /** @type {Browser | undefined} */
  let browser;
  const changed = async (/** @type {(file: string) => void} */ change) => {
    const opened = await pageOfCopy({}, browser);
    browser = opened.browser;
    change(join(opened.folder, 'tabtune_bg.wasm'));
    return inside(
      opened.page,
      ({ tabtune, failure }, { shape, text }) => failure(tabtune.newModel(shape, { text })),
      SETTING,
    );
  };
  // A section that says nothing: the file is valid.
  const other = await changed((file) =>
    appendFileSync(file, Buffer.from([0, 5, 4, ...Buffer.from('note')])),
  );
  assert.deepEqual([other.code, other.word], ['PROTOCOL', 'core.build']);
  assert.match(other.message, /different builds.*Reload the page/);
  // A module that imports x.y, which the page does not have.
  const imports = Buffer.from([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 120, 1, 121, 0, 0,
  ]);
  const needs = await changed((file) => writeFileSync(file, imports));
  assert.deepEqual([needs.code, needs.word], ['PROTOCOL', 'core.build']);
  const none = await changed((file) => writeFileSync(file, '<!doctype html>'));
  assert.deepEqual([none.code, none.word], ['WORKER_CRASHED', 'wasm.load']);
});

test('addresses are resolved against the base of their frame, and a frame without an origin is reported', async () => {
  const open = {
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  };
  const { page, site } = await pageOfCopy({ policy: null, ...open });
  /** @param {Helpers} s @param {Setting} setting */
  const trains = async ({ tabtune, failure }, { shape, text }) => {
    const addresses = { workerUrl: './worker.js', wasmUrl: 'tabtune_bg.wasm' };
    let parameters = 0;
    const error = await failure(async () => {
      const model = await tabtune.newModel(shape, { text }, addresses);
      parameters = model.info.parameters;
      await model.dispose();
    });
    return { parameters, error: [error.code, error.word], support: await tabtune.support() };
  };
  const script = `import * as s from '${site.url}/browser/scenario-page.mjs';
    parent.postMessage(await (${trains})(s, ${JSON.stringify(SETTING)}), '*');`;
  const srcdoc = `<base href="${site.url}/dist/"><script type="module">${script}</script>`;
  /** @param {{ srcdoc: string, sandbox?: string }} attributes */
  const framed = (attributes) =>
    page.evaluate(
      (attributes) =>
        new Promise(
          (/** @type {(found: Awaited<ReturnType<typeof trains>>) => void} */ resolve) => {
            addEventListener('message', ({ data }) => resolve(data), { once: true });
            document.body.append(Object.assign(document.createElement('iframe'), attributes));
          },
        ),
      attributes,
    );
  assert.ok((await framed({ srcdoc })).parameters > 0);
  const { error, support } = await framed({ srcdoc, sandbox: 'allow-scripts' });
  assert.deepEqual([support.ok, support.code], [false, 'UNSUPPORTED_BROWSER']);
  assert.deepEqual(error, ['UNSUPPORTED_BROWSER', 'browser.origin']);
  assert.match(`${support.help}`, /frame/);
});

if (FULL)
  test('a page whose policy forbids a Blob as a worker continues as long as its site is there', async () => {
    const policy = POLICY.replace(' blob:; connect-src', '; connect-src');
    const { page, browser } = await pageOfCopy({ policy });
    const truth = await unbroken(page);
    await begins(page);
    browser.killGpu();
    assert.deepEqual((await continues(page)).losses, truth.slice(5, 7));
  });
