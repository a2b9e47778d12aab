// npm run lab -- bench [-- tiny|small|medium …] [--peers jax,tfjs,nanogpt,stock|none] [--before CHECKOUT] [--rounds N] [--write]
// The same model, trained by tabtune and by other libraries in one Chromium, one window of steps after the other; stock only on request. CHECKOUT is
// a folder with another commit, whose package is built. --write puts the figures into results/step-time.json. The exit code is 1 if a loss differs from that of the
// others.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';
import { PEERS, pagesDir, preparePage } from './peers.mjs';
import * as spec from './spec.mjs';

const FIRST_LOSS = 1e-4; // relative, f32 with sums in another order
const LATER_LOSS = 1e-2; // the same after some steps of training
const WINDOW_MS = 4000; // as many steps as fit make a window, so that a slow library does not hold up a fast one
const MAX_WINDOW = 8;
const MB = 1e6;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peers: { type: 'string' },
    before: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    write: { type: 'boolean', default: false },
  },
});
const sizes = positionals.length > 0 ? positionals : Object.keys(spec.SIZES);
const peers =
  values.peers === undefined
    ? Object.keys(PEERS).filter((name) => !PEERS[name].built)
    : values.peers.split(',').filter((name) => name !== 'none');
const rounds = Number(values.rounds);
const unknown = [
  ...sizes.filter((name) => !spec.SIZES[name]),
  ...peers.filter((name) => !PEERS[name]),
];
if (unknown.length > 0 || !(rounds >= 1))
  throw new Error(`unknown: ${unknown.join(', ') || `--rounds ${values.rounds}`}`);
if (!existsSync(join(root, 'dist', 'tabtune_bg.wasm')))
  throw new Error('dist is not there: run npm run build first');

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

/** Checks that the shared description, if it is available, produces the same bytes. */
async function checkSpec() {
  const file = join(root, '..', 'shared', 'bench', 'spec.mjs');
  if (!existsSync(file)) return;
  const shared = await import(pathToFileURL(file).href);
  const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  for (const size of sizes.filter((name) => shared.SIZES[name])) {
    const theirs = shared.initWeights(size);
    const same =
      bytes(shared.makeTokens(size)).equals(bytes(spec.makeTokens(size))) &&
      spec
        .initWeights(size)
        .every(
          ({ name, data }, index) =>
            name === theirs[index].name && bytes(data).equals(bytes(theirs[index].data)),
        );
    if (!same) throw new Error(`${size}: tokens or weights are not those of ${file}`);
  }
}

/** One library on its page. */
class Subject {
  losses = new Map();
  windows = [];
  peakHeap = 0;
  done = 0;
  dispatches = 0;

  /** @type {string | undefined} */
  failed;
  perWindow = 1;

  /** @param {string} name @param {string} size @param {import('playwright-core').Page} page @param {string} specUrl */
  constructor(name, size, page, specUrl) {
    this.name = name;
    this.size = size;
    this.page = page;
    this.specUrl = specUrl;
  }

  async call(steps) {
    await this.page.bringToFront();
    const before = await this.gpu();
    const report = await this.page.evaluate((ask) => globalThis.__bench(ask), {
      size: this.size,
      steps,
      specUrl: this.specUrl,
    });
    const after = await this.gpu();
    this.done += steps + (this.done === 0 ? 1 : 0);
    // One reading per step, or only that of the last step.
    report.losses.toReversed().forEach((loss, back) => this.losses.set(this.done - back, loss));
    if (steps > 0) {
      this.windows.push(report.stepMs);
      this.dispatches = (after.dispatches - before.dispatches) / steps;
    }
    this.gpuBytes = after.peakBytes;
    const memory = await this.page.evaluate(() => performance.measureUserAgentSpecificMemory());
    this.peakHeap = Math.max(this.peakHeap, memory.bytes + after.wasmBytes);
    return report;
  }

  /** Returns the counters of the page, or of its worker. */
  gpu() {
    return this.page.evaluate(
      () =>
        new Promise((resolve) => {
          const own = globalThis.__gpu?.();
          if (own?.dispatches > 0) return resolve(own);
          const channel = new BroadcastChannel('bench-gpu');
          const give = (counts) => (channel.close(), resolve(counts));
          // No worker answers before the first step.
          const timer = setTimeout(() => give({ dispatches: 0, peakBytes: 0, wasmBytes: 0 }), 2000);
          channel.onmessage = ({ data }) => data !== 'counts?' && (clearTimeout(timer), give(data));
          channel.postMessage('counts?');
        }),
    );
  }
}

async function measure(size, browser, site) {
  const subjects = [];
  const script = readFileSync(new URL('./probe.mjs', import.meta.url), 'utf8');
  const specUrl = `${site.url}/tests/bench/spec.mjs`;
  const pages = {
    tabtune: '/tests/bench/tabtune.html?probe',
    before: '/before/tests/bench/tabtune.html?probe',
  };
  for (const name of ['tabtune', ...(values.before ? ['before'] : []), ...peers]) {
    const address = pages[name] ?? `/peers/${name}.html`;
    const { page, record } = await browser.open(site.url + address, { script });
    await page.waitForFunction(() => globalThis.__bench !== undefined);
    const subject = new Subject(name, size, page, specUrl);
    try {
      const first = await subject.call(0);
      Object.assign(subject, {
        params: first.params,
        firstStepMs: first.firstStepMs,
        tokens: first.tokens,
        sameInit: first.sameInit,
      });
      subjects.push(subject);
      console.log(
        `${size} ${name}: first step ${(first.firstStepMs / 1000).toFixed(2)} s, loss ${first.losses[0].toFixed(6)}, ${first.params} parameters`,
      );
    } catch (/** @type {any} */ error) {
      console.log(`${size} ${name}: ${error.message}\n${record.errors.join('\n')}`);
      subjects.push(Object.assign(subject, { failed: error.message.split('\n')[0] }));
    }
  }
  const able = subjects.filter((subject) => !subject.failed);
  // A window that is not counted: kernels of a second step may still have to be compiled.
  for (const subject of able) await subject.call(1);
  for (const subject of able)
    subject.perWindow = Math.min(
      MAX_WINDOW,
      Math.max(1, Math.floor(WINDOW_MS / subject.windows.pop())),
    );
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < able.length; i++)
      await able[(round + i) % able.length].call(able[(round + i) % able.length].perWindow);
  }
  for (const { page } of subjects) await page.close();
  return subjects;
}

/** Returns the faults in the losses and data of `subjects`. */
function faults(subjects) {
  const able = subjects.filter((subject) => !subject.failed);
  const list = subjects
    .filter((subject) => subject.failed)
    .map(({ name, failed }) => `${name}: ${failed}`);
  const ours = able.find(({ name }) => name === 'tabtune');
  if (!ours) return list;
  const expected = spec.checksum(spec.makeTokens(ours.size));
  for (const { name, tokens } of able)
    if (tokens !== expected) list.push(`${name}: tokens ${tokens}, not ${expected}`);
  for (const peer of able.filter(({ name, sameInit }) => name !== 'tabtune' && sameInit)) {
    for (const [step, loss] of peer.losses) {
      if (!ours.losses.has(step)) continue;
      const error = Math.abs(ours.losses.get(step) / loss - 1);
      const bound = step === 1 ? FIRST_LOSS : LATER_LOSS;
      if (!(error <= bound))
        list.push(
          `step ${step}: loss ${ours.losses.get(step)} of tabtune, ${loss} of ${peer.name}: off by ${error.toExponential(1)}, bound ${bound}`,
        );
    }
  }
  return list;
}

/** Returns one row of figures for each library. */
function figures(size, subjects) {
  const { T, B } = spec.SIZES[size];
  const ours = subjects.find(({ name, failed }) => name === 'tabtune' && !failed);
  const round = (value, digits) => Number(value.toFixed(digits));
  return subjects.map((s) => {
    if (s.failed) return { library: s.name, failed: s.failed };
    const step = median(s.windows) / 1000;
    const steps = [...s.losses.keys()];
    const [first, last] = [Math.min(...steps), Math.max(...steps)];
    return {
      library: s.name,
      first_step_s: round(s.firstStepMs / 1000, 1),
      step_s: round(step, 2),
      fastest_step_s: round(Math.min(...s.windows) / 1000, 2),
      slowest_step_s: round(Math.max(...s.windows) / 1000, 2),
      tokens_per_s: round((T * B) / step, 0),
      times_of_tabtune: ours ? round(step / (median(ours.windows) / 1000), 2) : null,
      dispatches: Math.round(s.dispatches),
      gpu_peak_mb: round(s.gpuBytes / MB, 0),
      heap_peak_mb: round(s.peakHeap / MB, 0),
      first_loss: round(s.losses.get(first), 4),
      last_loss: round(s.losses.get(last), 4),
      last_step: last,
    };
  });
}

async function adapterOf(browser, site) {
  const { page } = await browser.open(`${site.url}/`);
  const text = await page.evaluate(async () => {
    const { info } = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter());
    return [info.vendor, info.architecture, info.description].filter(Boolean).join(' ');
  });
  await page.close();
  return text;
}

/** Puts the figures of a measured size into results/step-time.json; other sizes remain. */
function record(size, where, rows) {
  const file = new URL('./results/step-time.json', import.meta.url);
  const known = { ...JSON.parse(readFileSync(file, 'utf8')), [size]: { where, rows } };
  writeFileSync(file, `${JSON.stringify(known, null, 1)}\n`);
}

await checkSpec();
for (const peer of peers) await preparePage(peer);
// Other libraries create functions from text, which our policy forbids.
const isolated = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  policy: null,
};
const site = await serve(
  { '/peers/': pagesDir, ...(values.before && { '/before/': resolve(values.before) }), '/': '.' },
  isolated,
);
let failed = false;
for (const size of sizes) {
  const browser = await Browser.launch(['--enable-blink-features=ForceEagerMeasureMemory']);
  try {
    const subjects = await measure(size, browser, site);
    const where = `${await adapterOf(browser, site)}, Chromium ${browser.version}, ${cpus().length} cores of ${cpus()[0]?.model.trim()}, ${new Date().toISOString().slice(0, 10)}, ${rounds} rounds.`;
    const notes = subjects
      .filter(({ name }) => PEERS[name]?.other)
      .map(({ name }) => ` ${name}: ${PEERS[name].other}.`);
    const rows = figures(size, subjects);
    console.log(`\n${size}: ${where}${notes.join('')}`);
    console.table(rows);
    const wrong = faults(subjects);
    wrong.forEach((line) => console.log(`WRONG ${size}: ${line}`));
    failed ||= wrong.length > 0;
    if (values.write && wrong.length === 0) record(size, `${where}${notes.join('')}`, rows);
  } finally {
    await browser.close();
  }
}
await site.close();
process.exitCode = failed ? 1 : 0;
