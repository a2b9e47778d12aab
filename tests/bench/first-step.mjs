// node tests/bench/first-step.mjs [tiny|small]
// Where the first step of the benchmark's model goes in Chromium: until there is a trainer, the kernels compiled one by one, and a later step.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const size = process.argv[2] ?? 'tiny';
const seconds = (millis) => (millis / 1000).toFixed(2);
const stems = readdirSync(join(root, 'shaders')).filter((name) => name.endsWith('.wgsl') && name !== 'common.wgsl');
const shaders = stems.map((name) => ({ name: name.replace('.wgsl', ''), text: readFileSync(join(root, 'shaders', name), 'utf8').trim() }));

/** Runs in the page: asks the worker's probe. */
const texts = () =>
  new Promise((resolve) => {
    const channel = new BroadcastChannel('bench-gpu');
    channel.onmessage = ({ data }) => Array.isArray(data) && resolve(data);
    channel.postMessage('texts?');
  });

/** Runs in an empty page: milliseconds that each text takes, on a device that has compiled none. */
async function compiled(codes) {
  const adapter = await navigator.gpu.requestAdapter();
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

const site = await serve({ '/': '.' });
const browser = await Browser.launch();
try {
  const { page } = await browser.open(`${site.url}/tests/bench/tabtune.html?probe`);
  await page.waitForFunction(() => globalThis.__bench !== undefined);
  const ask = { size, steps: 0, specUrl: `${site.url}/tests/bench/spec.mjs` };
  const { firstStepMs, builtMs } = await page.evaluate((given) => globalThis.__bench(given), ask);
  await page.evaluate((given) => globalThis.__bench(given), { ...ask, steps: 2 });
  const { stepMs } = await page.evaluate((given) => globalThis.__bench(given), { ...ask, steps: 2 });
  const codes = await page.evaluate(texts);
  await page.close();
  const empty = await browser.open(`${site.url}/`);
  const times = await empty.page.evaluate(`(${compiled})(${JSON.stringify(codes)})`);
  const kernels = codes.map((code, i) => ({ name: shaders.find(({ text }) => code.includes(text))?.name ?? 'of CubeCL', millis: times[i] }));
  const sum = times.reduce((all, each) => all + each, 0);
  console.log(`| ${size}, from navigation to the loss of the first step | ${seconds(firstStepMs)} s |\n|---|---|`);
  console.log(`| page, package, core, device, model and trainer | ${seconds(builtMs)} s |`);
  console.log(`| ${kernels.length} kernels, compiled one by one | ${seconds(sum)} s |`);
  console.log(`| a later step | ${seconds(stepMs)} s |\n`);
  for (const { name, millis } of kernels.toSorted((a, b) => b.millis - a.millis).slice(0, 12)) console.log(`${Math.round(millis)} ms ${name}`);
} finally {
  await browser.close();
  await site.close();
}
