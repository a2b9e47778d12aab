// The packed tarball, installed into an empty folder: the program of its README trains there as written, and in every way that the README names. And
// the table of models in the repository's README matches the planner.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { build, createServer } from 'vite';
import webpack from 'webpack';
import { POLICY } from '../../web/policy.mjs';
import { root } from '../../web/toolchain.mjs';
import { planned, SUGGESTED, suggested, table, written } from '../bench/fit.mjs';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';
import { installed } from './tarball.mjs';

const front = readFileSync(join(root, 'README.md'), 'utf8');
const readme = readFileSync(join(root, 'web', 'npm', 'README.md'), 'utf8');
const [PROGRAM] = blocks('js');
const [PAGE, IMPORT_MAP] = blocks('html');
const STEPS = 3;
/** Steps and batches small enough for a software adapter. */
const SHORT = `steps: ${STEPS}, batchSize: 1, seqLen: 32`;

/** @type {import('./tarball.mjs').Installed} */
let pack;
let app;
let browser;
let site;

/** Returns the code blocks of this language in the package's README. */
function blocks(language) {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(
    (match) => match[1],
  );
}

const page = (head) =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>sums</title><body>${head.replace('main.js', 'short.js')}`;
/** Puts the page of the short program next to what a bundler has made of it. */
const beside = (place) => copyFileSync(join(app, 'short.html'), join(app, place, 'short.html'));
test.beforeAll(async () => {
  pack = installed();
  app = pack.app;
  pack.write('main.js', PROGRAM);
  pack.write('index.html', PAGE);
  // Browsers ask for it, and no program is at fault where it is missing.
  pack.write('public/favicon.ico', '');
  pack.write('short.js', PROGRAM.replace(/steps: \d+, seqLen: \d+/, SHORT));
  pack.write('short.html', page(PAGE));
  pack.write('map.html', page(IMPORT_MAP));
  // The page contains an import map, so the policy has to include its hash.
  const map = /<script type="importmap">(.*?)<\/script>/s.exec(IMPORT_MAP)?.[1] ?? '';
  const hash = createHash('sha256').update(map).digest('base64');
  site = await serve(
    { '/app/': app, '/dist/': 'dist' },
    { policy: POLICY.replace("script-src 'self'", `$& 'sha256-${hash}'`) },
  );
  browser = await Browser.launch();
});
test.afterAll(async () => {
  await browser?.close();
  await site?.close();
  pack?.remove();
});

/** Opens the program and waits for the link that it ends with; returns the losses that it printed. */
async function trained(url, count = STEPS) {
  const { page, record } = await browser.open('about:blank');
  const printed = [];
  const broken = new Promise((_, reject) => {
    page.on('pageerror', reject);
    page.on('console', (message) => {
      if (message.type() === 'log') printed.push(message.text());
      if (message.type() === 'error')
        reject(new Error(`${message.text()} ${message.location().url}`));
    });
  });
  await page.goto(url);
  const link = page.locator('a[download]');
  await Promise.race([link.waitFor({ state: 'attached', timeout: 120_000 }), broken]);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    link.evaluate((node) => node.click()),
  ]);
  const zip = readFileSync(await file.path(), 'latin1');
  for (const name of ['config.json', 'model.safetensors', 'tokenizer.json'])
    assert.ok(zip.includes(name), `${name} is in the export`);
  assert.deepEqual(record.errors, []);
  await page.close();
  const steps = printed.map((line) => line.split(' ').map(Number));
  assert.deepEqual(
    steps.map(([step]) => step),
    Array.from({ length: count }, (_, index) => index + 1),
  );
  return steps.map(([, loss]) => loss);
}

/** The losses with the import map, where no bundler is involved. */
let truth;
async function trainsLikeTheOthers(url) {
  truth ??= await trained(`${site.url}/app/map.html`);
  assert.ok(truth.at(-1) < truth[0], `${truth}`);
  if (url !== undefined) assert.deepEqual(await trained(url), truth);
}

test('packed: the program is that of the first page of the repository', () => {
  assert.ok(front.includes(`\`\`\`js\n${PROGRAM}`));
});

test('packed: an import map trains', () => trainsLikeTheOthers());

test('packed: Vite trains while it serves, and the program as it is written', async () => {
  const server = await createServer({
    configFile: false,
    root: app,
    logLevel: 'error',
    server: { host: '127.0.0.1', port: 0 },
  });
  try {
    await server.listen();
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.httpServer?.address());
    await trainsLikeTheOthers(`http://127.0.0.1:${port}/short.html`);
    const count = Number(/steps: (\d+)/.exec(PROGRAM)?.[1]);
    const losses = await trained(`http://127.0.0.1:${port}/`, count);
    assert.ok(losses.at(-1) < losses[0] / 2, `${losses}`);
  } finally {
    await server.close();
  }
});

test('packed: a Vite build trains', async () => {
  await build({
    configFile: false,
    root: app,
    base: './',
    logLevel: 'error',
    build: { outDir: 'vite', rollupOptions: { input: join(app, 'short.html') } },
  });
  await trainsLikeTheOthers(`${site.url}/app/vite/short.html`);
});

test('packed: a webpack build trains', async () => {
  // Minification takes most of the time, and does not affect which files are found.
  /** @type {import('webpack').Configuration} */
  const settings = {
    context: app,
    mode: 'production',
    entry: './short.js',
    output: { path: join(app, 'webpack'), filename: 'short.js' },
    optimization: { minimize: false },
  };
  /** @type {import('webpack').Stats} */
  const stats = await new Promise(
    (done, failed) =>
      void webpack(settings, (error, stats) => (stats ? done(stats) : failed(error))),
  );
  assert.ok(!stats.hasErrors(), stats.toString());
  beside('webpack');
  await trainsLikeTheOthers(`${site.url}/app/webpack/short.html`);
});

test('packed: an esbuild build by the recipe trains', async () => {
  const recipe = blocks('sh').find((block) => block.includes('esbuild'));
  assert.ok(recipe !== undefined);
  pack.shell('sh', ['-ec', recipe.replace('npx ', '').replace('main.js', 'short.js')]);
  beside('www');
  await trainsLikeTheOthers(`${site.url}/app/www/short.html`);
});

test('the table of models in README.md and the sizes that the demo states match the planner', async () => {
  const { page, record } = await browser.open(`${site.url}/`);
  const write = 'run node tests/bench/fit.mjs --write';
  assert.equal(written(front), table(await planned(page)), write);
  assert.equal(readFileSync(SUGGESTED, 'utf8'), await suggested(page), write);
  assert.deepEqual(record.errors, []);
  await page.close();
});
