// The packed tarball, installed into an empty folder: README.md's code compiles and trains there in every way that README.md names, its links work,
// and its table of models matches the planner.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { test } from '@playwright/test';
import { build, createServer } from 'vite';
import webpack from 'webpack';
import { POLICY } from '../../web/policy.mjs';
import { environment, root } from '../../web/toolchain.mjs';
import { planned, table, written } from '../bench/fit.mjs';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const [PROGRAM] = blocks('js');
const [IMPORT_MAP] = blocks('html');
const STEPS = 3;
/** Steps and batches small enough for a software adapter. */
const SHORT = `steps: ${STEPS}, batchSize: 1, seqLen: 32`;

let folder;
let app;
let packed;
let browser;
let site;

/** Returns the code blocks of this language in README.md. */
function blocks(language) {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(
    (match) => match[1],
  );
}

const page = (head) =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>book</title><body>${head}`;
const write = (name, text) => writeFileSync(join(app, name), text);
const beside = (place) =>
  ['book.txt', 'index.html'].forEach((name) =>
    copyFileSync(join(app, name), join(app, place, name)),
  );
const shell = (command, args) =>
  execFileSync(command, args, {
    cwd: app,
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tabtune-packed-'));
  app = join(folder, 'app');
  mkdirSync(join(app, 'public'), { recursive: true });
  const [tarball] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  );
  packed = new Set(tarball.files.map(({ path }) => path));
  write('package.json', JSON.stringify({ private: true, type: 'module' }));
  shell('npm', ['install', '--offline', join(folder, tarball.filename)]);
  write('main.js', PROGRAM.replace(/steps: \d+/, SHORT));
  write('index.html', page('<script type="module" src="./main.js"></script>'));
  write('map.html', page(IMPORT_MAP));
  for (const name of ['book.txt', 'public/book.txt'])
    copyFileSync(join(root, 'web', 'demo', 'assets', 'pride-and-prejudice.txt'), join(app, name));
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
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Opens README.md's program and waits for the link that it ends with; returns the losses that it printed. */
async function trained(url) {
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
    Array.from({ length: STEPS }, (_, index) => index + 1),
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

test('packed: the program compiles against the types of the package', () => {
  write('main.ts', PROGRAM);
  const libraries = 'es2023,esnext.disposable,dom,dom.iterable,dom.asynciterable';
  try {
    shell(process.execPath, [
      join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
      '--noEmit',
      '--strict',
      '--target',
      'es2022',
      '--module',
      'nodenext',
      '--lib',
      libraries,
      'main.ts',
    ]);
  } catch (/** @type {any} */ thrown) {
    assert.fail(thrown.stdout);
  } finally {
    rmSync(join(app, 'main.ts'));
  }
});

test('packed: an import map trains', () => trainsLikeTheOthers());

test('packed: Vite trains while it serves', async () => {
  const server = await createServer({
    configFile: false,
    root: app,
    logLevel: 'error',
    server: { host: '127.0.0.1', port: 0 },
  });
  try {
    await server.listen();
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.httpServer?.address());
    await trainsLikeTheOthers(`http://127.0.0.1:${port}/`);
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
    build: { outDir: 'vite' },
  });
  await trainsLikeTheOthers(`${site.url}/app/vite/index.html`);
});

test('packed: a webpack build trains', async () => {
  // Minification takes most of the time, and does not affect which files are found.
  /** @type {import('webpack').Configuration} */
  const settings = {
    context: app,
    mode: 'production',
    entry: './main.js',
    output: { path: join(app, 'webpack') },
    optimization: { minimize: false },
  };
  /** @type {import('webpack').Stats} */
  const stats = await new Promise(
    (done, failed) =>
      void webpack(settings, (error, stats) => (stats ? done(stats) : failed(error))),
  );
  assert.ok(!stats.hasErrors(), stats.toString());
  beside('webpack');
  await trainsLikeTheOthers(`${site.url}/app/webpack/index.html`);
});

test('packed: an esbuild build by the recipe trains', async () => {
  const recipe = blocks('sh').find((block) => block.includes('esbuild'));
  assert.ok(recipe !== undefined);
  shell('sh', ['-ec', recipe.replace('npx ', '')]);
  beside('www');
  await trainsLikeTheOthers(`${site.url}/app/www/index.html`);
});

test('packed: the licences of the packages that it contains', () => {
  assert.ok(packed.has('dist/licences.txt'));
  const text = readFileSync(join(app, 'node_modules', 'tabtune', 'dist', 'licences.txt'), 'utf8');
  for (const name of ['burn-core', 'wgpu', 'wasm-bindgen', 'idb'])
    assert.match(text, new RegExp(`^${name} .*; text \\d`, 'm'));
});

test('packed: links in its documents point to files and headings of the package', () => {
  const anchors = (text) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    );
  const documents = [...packed].filter((path) => path.endsWith('.md'));
  assert.ok(documents.includes('README.md') && documents.length > 2, `${documents}`);
  const dead = documents.flatMap((path) => {
    const text = readFileSync(join(app, 'node_modules', 'tabtune', path), 'utf8');
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map((match) => match[1])
      .filter((link) => !/^[a-z]+:/.test(link));
    return links
      .filter((link) => {
        const [target, anchor] = link.split('#');
        const file = target === '' ? path : normalize(join(dirname(path), target));
        return (
          !packed.has(file) ||
          (anchor !== undefined &&
            !anchors(readFileSync(join(root, file), 'utf8')).includes(anchor))
        );
      })
      .map((link) => `${path}: ${link}`);
  });
  assert.deepEqual(dead, []);
});

test('the table of models in README.md matches the planner', async () => {
  const { page, record } = await browser.open(`${site.url}/`);
  assert.equal(written(readme), table(await planned(page)), 'run node tests/bench/fit.mjs --write');
  assert.deepEqual(record.errors, []);
  await page.close();
});
