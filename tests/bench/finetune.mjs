// Fine-tunes real files in Chromium, through the public API:
//   node tests/bench/finetune.mjs MODEL TEXT [OPTIONS]     MODEL: a .gguf file or a folder; OPTIONS: JSON of Trainer.create
// Prints one JSON object per step, then one with the peak bytes of the GPU, of wasm and of the browser's processes.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const [model, textFile, options = '{}'] = process.argv.slice(2);
if (!textFile) throw new Error('usage: node tests/bench/finetune.mjs MODEL TEXT [OPTIONS]');
const folder = statSync(model).isDirectory() ? model : dirname(model);
const names = folder === model ? readdirSync(model) : [basename(model)];

/** Returns the resident bytes of all processes of the browser; shared pages count in each. */
function resident() {
  const lines = execFileSync('ps', ['-eo', 'rss=,comm='], { encoding: 'utf8' }).split('\n');
  return lines
    .filter((line) => /chrom/.test(line))
    .reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0);
}

/** Runs in the page. */
async function train({ names, text, options }) {
  const { openModel, Trainer } = await import('/dist/index.js');
  const fetched = async (name) => new File([await (await fetch(`/model/${name}`)).blob()], name);
  const model = await openModel(await Promise.all(names.map(fetched)));
  const trainer = await Trainer.create({ model, data: { text }, logEvery: 1, ...options });
  for await (const event of trainer.run())
    if (event.type === 'step') console.log(JSON.stringify(event));
  const { gpuBytes } = await trainer.info();
  await trainer.dispose();
  return gpuBytes;
}

const site = await serve({ '/dist/': 'dist', '/model/': resolve(folder) });
const browser = await Browser.launch();
let peak = 0;
const watch = setInterval(() => (peak = Math.max(peak, resident())), 1000);
try {
  const { page, record } = await browser.open(`${site.url}/`);
  page.on('console', (message) => message.type() === 'log' && console.log(message.text()));
  const gpuBytes = await page.evaluate(train, {
    names,
    text: readFileSync(textFile, 'utf8'),
    options: JSON.parse(options),
  });
  console.log(
    JSON.stringify({
      model: join(basename(folder), names.length === 1 ? names[0] : ''),
      gpu_bytes_reserved: gpuBytes,
      resident_bytes_peak: peak,
      errors: record.errors,
    }),
  );
} finally {
  clearInterval(watch);
  await browser.close();
  await site.close();
}
