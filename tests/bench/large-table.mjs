// A step of Gemma 3 270M (random weights, full AdamW in bf16) in Chromium, whose kernels bind at most 128 MiB: `node tests/bench/large-table.mjs`.
// Prints the losses, the planned bytes and the resident ones of the GPU process, and the seconds of the last step.
import { GEMMA_3_270M, smallBindings, trainedIn } from '../browser/large-table.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const site = await serve({}, { scripts: { '/small-bindings.js': { work: smallBindings } } });
const browser = await Browser.launch();
try {
  const { page, record } = await browser.open(`${site.url}/`);
  let most = 0;
  const watch = setInterval(() => {
    if (browser.gpuProcess !== undefined) most = Math.max(most, browser.gpuBytes());
  }, 500);
  const trained = await trainedIn(page, GEMMA_3_270M, { seqLen: 128, steps: 2 });
  clearInterval(watch);
  console.log(JSON.stringify({ ...trained, gpuProcessBytes: most, errors: record.errors }));
} finally {
  await browser.close();
  await site.close();
}
