// The programs of examples/ in a project with React, Svelte and wllama: their types, and what each does with a small model.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as verdicts from '../browser/examples-verdicts.mjs';
import { inModule } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

/** @typedef {import('./page.mjs').At} At @typedef {import('playwright-core').Page} Page */

const OPEN = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' };
const WAIT = { timeout: 120_000 };

/** Runs a trial of examples-page.mjs. @param {Page} page @param {string} name @param {unknown} [given] @returns {Promise<any>} */
const trial = (page, name, given) =>
  inModule(page, '/browser/examples-page.mjs', (s, { name, given }) => s[name](given), {
    name,
    given,
  });

/** Continues a run of the page in the terminal, and returns the files of its folder. @param {{ file: string, losses: number[], data: string }} left */
function inTerminal({ file, losses, data }) {
  const program = process.env.TABTUNE;
  if (!program) throw new Error('TABTUNE names no native program: cargo build --bin tabtune');
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-terminal-'));
  try {
    const [run, rows, out] = ['mine.tabtune', 'data.jsonl', 'continued'].map((name) =>
      join(folder, name),
    );
    writeFileSync(run, Buffer.from(file, 'base64'));
    writeFileSync(rows, data);
    const line = ['train', '--json', '--resume', run, '--data', rows, '--out', out];
    const printed = execFileSync(program, line, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
      .trim()
      .split('\n');
    const found = printed.map((text) => JSON.parse(text)).filter(({ loss }) => loss !== undefined);
    const further = found.filter(({ step }) => step > 3).map(({ loss }) => loss);
    assert.equal(further.length, losses.length);
    // Two adapters over two steps.
    further.forEach((loss, at) => assert.ok(Math.abs(loss / losses[at] - 1) < 1e-3, `${further}`));
    return readdirSync(out).map((name) => [name, readFileSync(join(out, name), 'base64')]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Trains in a component, pauses, resumes, and removes it: its worker ends, and its steps are saved. @param {At} at @param {string} url @param {string} name */
async function component({ browser }, url, name) {
  const script = () => {
    const open = new Set();
    const Native = Worker;
    globalThis.Worker = class extends Native {
      /** @param {string | URL} address @param {WorkerOptions} [options] */
      constructor(address, options) {
        super(address, options);
        open.add(this);
      }
      /** @override */
      terminate() {
        open.delete(this);
        super.terminate();
      }
    };
    Object.assign(globalThis, { open });
  };
  const { page, record } = await browser.open(`${url}/${name}.html`, { script });
  const button = (/** @type {string} */ text) => page.getByRole('button', { name: text });
  await button('Train').click(WAIT);
  await page.locator('output', { hasText: 'loss' }).waitFor(WAIT);
  await button('Pause').click(WAIT);
  await button('Resume').waitFor(WAIT);
  const workers = () => page.evaluate(() => /** @type {any} */ (globalThis).open.size);
  assert.equal(await workers(), 1, 'StrictMode leaves one run');
  const paused = await page.locator('output').textContent();
  await button('Resume').click();
  await page.waitForFunction(
    (before) => document.querySelector('output')?.textContent !== before,
    paused,
    WAIT,
  );
  await page.evaluate(() => /** @type {any} */ (globalThis).leave());
  await page.waitForFunction(() => /** @type {any} */ (globalThis).open.size === 0, null, WAIT);
  const saved = await inModule(page, '/dist/index.js', async ({ openSavedRuns }) => {
    const runs = await openSavedRuns();
    const [newest] = await runs.list();
    await runs.remove(newest.run);
    runs.dispose();
    return newest.step;
  });
  assert.ok(saved > 0);
  assert.deepEqual(record.errors, []);
  await page.close();
}

/** Trains on private data under the policy of the example's server. @param {At} at */
async function privately({ browser, folder }) {
  const at = pathToFileURL(join(folder, 'examples', 'private-data', 'server.mjs'));
  const { serveFolder } = await import(at.href);
  const server = serveFolder(join(folder, 'dist'));
  await new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(undefined)));
  try {
    const url = `http://127.0.0.1:${server.address().port}/`;
    const { page, record } = await browser.open(url);
    const found = await page.evaluate(async () => {
      const { trainPrivately, askedServers, tabtune } = /** @type {any} */ (globalThis).examples;
      const data = [new File(['all of this stays here. '.repeat(99)], 'secret.txt')];
      const shape = { hiddenSize: 32, numHiddenLayers: 1, numAttentionHeads: 2 };
      const model = await tabtune.newModel(shape, data);
      const run = await tabtune.Trainer.create({ model, data, steps: 1, autosave: false });
      const files = await run.exportFiles();
      await run.dispose();
      let bytes = 0;
      const target = new WritableStream({ write: (chunk) => void (bytes += chunk.byteLength) });
      const opened = files.map((/** @type {any} */ { name, blob }) => new File([blob], name));
      await trainPrivately(opened, data, target);
      const asked = askedServers();
      const left = await fetch('https://elsewhere.example/').then(
        () => 'sent',
        () => 'refused',
      );
      const runs = await tabtune.openSavedRuns();
      const kept = (await runs.list()).length;
      runs.dispose();
      return { bytes, asked, left, kept };
    });
    assert.ok(found.bytes > 1000);
    assert.deepEqual([found.asked, found.left, found.kept], [[url.slice(0, -1)], 'refused', 0]);
    // The request that the policy refused, and nothing else.
    assert.ok(
      record.errors.length > 0 && record.errors.every((each) => each.includes('elsewhere')),
    );
    await page.close();
  } finally {
    server.close();
  }
}

/** @param {At} at */
export async function examples(at) {
  assert.deepEqual(verdicts.unlinked(), []);
  await at.shell('tsc', '--project', '.');
  await at.shell('svelte-check', '--fail-on-warnings', '--tsconfig', './tsconfig.json');
  await at.shell('vite', 'build');
  const own = join(at.folder, 'node_modules', 'tabtune', 'dist');
  const cdn = await serve({ '/tabtune/': own }, { policy: null, ...OPEN });
  const site = await serve({ '/app/': join(at.folder, 'dist'), '/dist/': own }, { policy: null });
  try {
    const { page, record } = await at.browser.open(`${site.url}/app/index.html`);
    verdicts.fineTuned(await trial(page, 'fineTunes'));
    verdicts.classified(await trial(page, 'classifies'));
    verdicts.continued(await trial(page, 'continues'));
    const { loss, answers } = await trial(page, 'compares');
    assert.ok(loss.after < loss.before, `${loss.before} to ${loss.after}`);
    assert.ok(answers.length === 1 && answers[0].before !== answers[0].after, `${answers}`);
    assert.equal(await trial(page, 'hosts', { folder: `${cdn.url}/tabtune/` }), 1);
    const files = inTerminal(await trial(page, 'leaves'));
    assert.equal(await trial(page, 'returns', { files }), 5);
    const [file, exported] = await Promise.all([
      page.waitForEvent('download', WAIT),
      trial(page, 'exportsFiles'),
    ]);
    const zip = readFileSync(await file.path(), 'latin1');
    for (const name of ['config.json', 'model.safetensors', 'tokenizer.json'])
      assert.ok(zip.includes(name), name);
    assert.ok(exported.equal && exported.answer.length > 0, exported.answer);
    assert.match(exported.modelfile, /^FROM \.\/mine\.gguf\n[^]*SYSTEM """Be brief\."""\n$/);
    assert.deepEqual(record.errors, []);
    await page.close();
    for (const name of ['react', 'svelte']) await component(at, `${site.url}/app`, name);
    await privately(at);
  } finally {
    void site.close();
    void cdn.close();
  }
  return undefined;
}
