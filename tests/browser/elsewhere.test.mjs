// A package that another origin serves, as a CDN does: its worker is imported by one made from a Blob, or the error says what to do.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { POLICY } from '../../web/policy.mjs';
import { root } from '../../web/toolchain.mjs';
import { Browser, inModule } from './chromium.mjs';
import { setting } from './scenario.mjs';
import { serve } from './site.mjs';

/** @typedef {import('./scenario.mjs').Helpers} Helpers @typedef {import('./scenario.mjs').Setting} Setting */

const OPEN = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' };
const ROWS = readFileSync(join(root, 'tests', 'golden', 'rows.parquet')).toString('base64');

/** A bundler gives the page's part another name, so that it does not find the worker next to it. */
const folder = mkdtempSync(join(tmpdir(), 'tabtune-bundle-'));
/** @type {import('./site.mjs').Site[]} */
const sites = [];
/** @type {Browser} */
let browser;
/** The other origin. @type {string} */
let cdn;
test.beforeAll(async () => {
  for (const name of ['index.js', 'worker.js', 'parquet.js', 'tabtune_bg.wasm'])
    cpSync(join(root, built.package, name), join(folder, name));
  renameSync(join(folder, 'index.js'), join(folder, 'app.js'));
  const site = await serve({ '/bundle/': folder }, { policy: null, ...OPEN });
  sites.push(site);
  cdn = site.url;
  browser = await Browser.launch();
});
test.afterAll(async () => {
  await browser?.close();
  await Promise.all(sites.map((site) => site.close()));
  rmSync(folder, { recursive: true });
});

/** Opens a page whose policy allows the other origin, with these sources of workers. */
async function pageOf(workers = `'self' blob: ${cdn}`) {
  const policy = POLICY.replace("script-src 'self'", `$& ${cdn}`)
    .replace("connect-src 'self'", `$& ${cdn}`)
    .replace("worker-src 'self' blob:", `worker-src ${workers}`);
  const site = await serve({}, { policy });
  sites.push(site);
  return browser.open(`${site.url}/`);
}

/**
 * Trains and reads a Parquet file with the package of an origin.
 * @param {Helpers} s @param {{ setting: Setting, rows: string }} given
 */
const uses = async ({ tabtune, unbroken, bytesOf }, { setting, rows }) => {
  const losses = await unbroken(setting, 2);
  const [file] = await tabtune.inspectData(new File([bytesOf(rows)], 'rows.parquet'));
  return { losses, form: file?.form, rows: file?.rows };
};

test('a package of a second origin trains and reads Parquet like one of the own', async () => {
  const given = { setting: setting(), rows: ROWS };
  const { page, record } = await pageOf();
  const [own, other] = [
    await inModule(page, '/browser/scenario-page.mjs', uses, given),
    await inModule(page, `${cdn}/browser/scenario-page.mjs`, uses, given),
  ];
  assert.ok(own.losses.every(Number.isFinite) && own.rows !== undefined);
  assert.deepEqual(other, own);
  assert.ok(record.origins.has(cdn));
  assert.deepEqual(record.errors, []);
});

for (const [what, workers, word] of [
  ['a Blob', () => `'self' ${cdn}`, 'worker.blocked'],
  ['the other origin', () => "'self' blob:", 'worker.failed'],
])
  test(`where ${what} is forbidden in a worker, workerUrl is named and helps`, async () => {
    const { page } = await pageOf(/** @type {() => string} */ (workers)());
    const found = await inModule(
      page,
      `${cdn}/browser/scenario-page.mjs`,
      async (/** @type {Helpers} */ { tabtune, failure }, { shape, text }) => {
        const refused = await failure(tabtune.newModel(shape, { text }));
        const model = await tabtune.newModel(shape, { text }, { workerUrl: '/dist/worker.js' });
        const { parameters } = model.info;
        await model.dispose();
        return { ...refused, parameters };
      },
      setting(),
    );
    assert.equal(found.word, word);
    assert.ok(found.message.includes(`\`blob:\` and ${cdn} in this page's worker-src`));
    assert.match(found.message, /`workerUrl`/);
    assert.ok(found.parameters > 0);
  });

test('a bundle of a second origin names workerUrl, which may be of that origin', async () => {
  const { page } = await pageOf();
  const { code, word, message, parameters } = await inModule(
    page,
    '/browser/scenario-page.mjs',
    async (/** @type {Helpers} */ _, { cdn, shape, text }) => {
      /** @type {typeof import('tabtune')} */
      const tabtune = await import(`${cdn}/bundle/app.js`);
      const { code, message, detail } = await tabtune
        .newModel(shape, { text })
        .then(() => ({ code: 'none', message: '', detail: { code: '' } }))
        .catch((thrown) => thrown);
      const workerUrl = `${cdn}/bundle/worker.js`;
      const model = await tabtune.newModel(shape, { text }, { workerUrl });
      const { parameters } = model.info;
      await model.dispose();
      return { code, word: detail.code, message, parameters };
    },
    { cdn, ...setting() },
  );
  assert.deepEqual([code, word], ['UNSUPPORTED_BROWSER', 'worker.blocked']);
  assert.match(message, /another origin.*`workerUrl`/);
  assert.ok(parameters > 0);
});
