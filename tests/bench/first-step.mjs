// node tests/bench/first-step.mjs [tiny|small] [--before CHECKOUT] [--rounds N]
// Time spent in the first step of the benchmark's model in Chromium: until the trainer exists, on compiling each kernel, and in a later step. With
// CHECKOUT, a folder with another commit whose package is built: first steps of both and of jax-js in turns, each in a new browser.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { stems } from '../../shaders/stems.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';
import { pagesDir, preparePage } from './peers.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { before: { type: 'string' }, rounds: { type: 'string', default: '4' } },
});
const size = positionals[0] ?? 'tiny';
const seconds = (millis) => (millis / 1000).toFixed(2);
/** A shader as it is compiled: without comments and empty lines (shaders/build.rs). */
const compiledText = (text) =>
  text
    .split('\n')
    .map((line) => line.split('//')[0].trimEnd())
    .filter((line) => line !== '')
    .join('\n');
const shaders = [...stems]
  .filter(([name]) => name !== 'common')
  .map(([name, path]) => ({ name, text: compiledText(readFileSync(path, 'utf8')) }));

/** Runs in the page: asks the worker's probe. */
const texts = () =>
  new Promise((resolve) => {
    const channel = new BroadcastChannel('bench-gpu');
    channel.onmessage = ({ data }) => Array.isArray(data) && resolve(data);
    channel.postMessage('texts?');
  });

/** Runs in an empty page: returns the milliseconds to compile each text, on a device that has compiled none. */
async function compiled(codes) {
  const adapter = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter());
  const device = await adapter.requestDevice();
  const times = [];
  for (const code of codes) {
    const from = performance.now();
    const module = device.createShaderModule({ code });
    await device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
    times.push(performance.now() - from);
  }
  return times;
}

const asked = (site) => ({ size, steps: 0, specUrl: `${site.url}/tests/bench/spec.mjs` });

/** Opens a library's page and takes its first step. */
async function firstStep(browser, site, address) {
  const { page } = await browser.open(site.url + address);
  await page.waitForFunction(() => globalThis.__bench !== undefined);
  return { page, ...(await page.evaluate((given) => globalThis.__bench(given), asked(site))) };
}

async function inTurns() {
  await preparePage('jax');
  const isolated = {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
    policy: null,
  };
  const site = await serve(
    { '/peers/': pagesDir, '/before/': resolve(String(values.before)), '/': '.' },
    isolated,
  );
  const pages = {
    now: '/tests/bench/tabtune.html',
    before: '/before/tests/bench/tabtune.html',
    'jax-js': '/peers/jax.html',
  };
  const times = Object.entries(pages).map(([name, address]) => ({
    name,
    address,
    all: /** @type {number[]} */ ([]),
  }));
  for (let turn = 0; turn < Number(values.rounds) * times.length; turn++) {
    const { address, all } = times[(turn + Math.floor(turn / times.length)) % times.length];
    const browser = await Browser.launch();
    all.push((await firstStep(browser, site, address)).firstStepMs);
    await browser.close();
  }
  await site.close();
  for (const { name, all } of times) console.log(`${name}: ${all.map(seconds).join(', ')} s`);
}

async function inParts() {
  const site = await serve({ '/': '.' });
  const browser = await Browser.launch();
  try {
    await parts(browser, site);
  } finally {
    await browser.close();
    await site.close();
  }
}

async function parts(browser, site) {
  const { page, firstStepMs, builtMs } = await firstStep(
    browser,
    site,
    '/tests/bench/tabtune.html?probe',
  );
  await page.evaluate((given) => globalThis.__bench(given), { ...asked(site), steps: 2 });
  const { stepMs } = await page.evaluate((given) => globalThis.__bench(given), {
    ...asked(site),
    steps: 2,
  });
  const codes = await page.evaluate(texts);
  await page.close();
  const empty = await browser.open(`${site.url}/`);
  const times = await empty.page.evaluate(`(${compiled})(${JSON.stringify(codes)})`);
  const kernels = codes.map((code, i) => ({
    name: shaders.find(({ text }) => code.includes(text))?.name ?? 'of CubeCL',
    millis: times[i],
  }));
  const sum = times.reduce((all, each) => all + each, 0);
  console.log(
    `| ${size}, from navigation to the loss of the first step | ${seconds(firstStepMs)} s |\n|---|---|`,
  );
  console.log(`| page, package, core, device, model and trainer | ${seconds(builtMs)} s |`);
  console.log(`| ${kernels.length} kernels, compiled one by one | ${seconds(sum)} s |`);
  console.log(`| a later step | ${seconds(stepMs)} s |\n`);
  for (const { name, millis } of kernels.toSorted((a, b) => b.millis - a.millis).slice(0, 12))
    console.log(`${Math.round(millis)} ms ${name}`);
}

await (values.before ? inTurns() : inParts());
