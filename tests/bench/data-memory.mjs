// Memory that large data need in Chromium, through the public API: a new model of width 16 over the characters of the first file, two steps on each
// file.
//   node tests/bench/data-memory.mjs FILE…
// Prints one JSON object for each: the peak MiB of all processes of the browser together, and of each kind (a page that several processes share
// counts once). The first object is of a page that has trained on 1 kB. The browser's service for models of its own, which starts after some minutes
// whatever the page does, does not count.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const files = process.argv.slice(2);
if (files.length === 0) throw new Error('usage: node tests/bench/data-memory.mjs FILE…');
const SAMPLE_MILLIS = 300;

const read = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
};

/** Returns MiB of memory of the browser's processes by their kind, with shared pages divided among them. */
function taken() {
  const kinds = { all: 0 };
  for (const name of readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && /chrom|headless_shell/.test(read(`/proc/${name}/comm`)),
  )) {
    const command = read(`/proc/${name}/cmdline`);
    if (command.includes('on_device_model')) continue;
    const kind = /--type=([a-z-]+)/.exec(command)?.[1] ?? 'browser';
    const mib = Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${name}/smaps_rollup`))?.[1] ?? 0) / 1024;
    kinds[kind] = (kinds[kind] ?? 0) + mib;
    kinds.all += mib;
  }
  return kinds;
}

/** Runs in the page. */
async function train() {
  const { newModel, Trainer } = await import('/dist/index.js');
  const data = document.querySelector('input')?.files?.[0] ?? {
    text: 'It is a truth. '.repeat(70),
  };
  const shape = {
    hiddenSize: 16,
    numHiddenLayers: 1,
    numAttentionHeads: 2,
    maxPositionEmbeddings: 256,
  };
  const started = performance.now();
  const model = await newModel(shape, data);
  const trainer = await Trainer.create({
    model,
    data,
    steps: 2,
    batchSize: 2,
    seqLen: 128,
    autosave: false,
  });
  await trainer.step(2);
  const { examples, tokens } = trainer.data;
  await trainer.dispose();
  return {
    examples,
    tokens: tokens.total,
    seconds: Math.round((performance.now() - started) / 1000),
  };
}

async function measured(file) {
  const site = await serve({ '/dist/': built.package });
  const browser = await Browser.launch();
  const peak = {};
  const sample = () =>
    Object.entries(taken()).forEach(
      ([kind, mib]) => (peak[kind] = Math.max(peak[kind] ?? 0, Math.round(mib))),
    );
  const watch = setInterval(sample, SAMPLE_MILLIS);
  try {
    const { page, record } = await browser.open(`${site.url}/`);
    if (file) {
      await page.evaluate(() =>
        document.body.append(Object.assign(document.createElement('input'), { type: 'file' })),
      );
      await page.setInputFiles('input', file);
    }
    const found = await page.evaluate(train);
    sample();
    return {
      file: file ? basename(file) : '1 kB',
      bytes: file ? statSync(file).size : 1050,
      ...found,
      mib: peak,
      errors: record.errors,
    };
  } finally {
    clearInterval(watch);
    await browser.close();
    await site.close();
  }
}

for (const file of [undefined, ...files]) console.log(JSON.stringify(await measured(file)));
