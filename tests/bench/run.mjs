// npm run bench: step times of one small model, in Chromium and natively, as one JSON object per line.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';
import { run } from '../../web/toolchain.mjs';

const STEPS = 30;
const WARM = 5; // the first steps compile pipelines
const SHAPE = { hiddenSize: 128, numHiddenLayers: 4, numAttentionHeads: 4, intermediateSize: 352, maxPositionEmbeddings: 64 };
const RUN = { steps: STEPS, batchSize: 12, seqLen: 64, learningRate: 1e-3, seed: 1 };
const TEXT = 'The quick brown fox jumps over the lazy dog, and the dog, being lazy, lets it pass without a word. '.repeat(400);

/** Median seconds of a step, and tokens per second at it. */
function summary(place, secs) {
  const sorted = secs.slice(WARM).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  return { place, steps: sorted.length, median_secs: median, tokens_per_sec: (RUN.batchSize * RUN.seqLen) / median };
}

async function inBrowser() {
  const site = await serve();
  const browser = await Browser.launch();
  try {
    const { page } = await browser.open(`${site.url}/`);
    const secs = await page.evaluate(
      async ({ shape, options, text }) => {
        const { newModel, Trainer } = await import('/dist/index.js');
        const trainer = await Trainer.create({ model: await newModel(shape, { text }), data: { text }, ...options });
        const steps = await trainer.step(options.steps);
        await trainer.dispose();
        return steps.map((step) => step.secs);
      },
      { shape: SHAPE, options: RUN, text: TEXT },
    );
    return summary('chromium', secs);
  } finally {
    await browser.close();
    await site.close();
  }
}

async function natively(device) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-bench-'));
  try {
    const config = {
      model_type: 'llama',
      hidden_act: 'silu',
      hidden_size: SHAPE.hiddenSize,
      num_hidden_layers: SHAPE.numHiddenLayers,
      num_attention_heads: SHAPE.numAttentionHeads,
      num_key_value_heads: SHAPE.numAttentionHeads,
      intermediate_size: SHAPE.intermediateSize,
      max_position_embeddings: SHAPE.maxPositionEmbeddings,
      rms_norm_eps: 1e-5,
      rope_theta: 10000,
      tie_word_embeddings: true,
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    writeFileSync(join(folder, 'text.txt'), TEXT);
    const options = ['--steps', RUN.steps, '--batch-size', RUN.batchSize, '--seq-len', RUN.seqLen, '--learning-rate', RUN.learningRate, '--seed', RUN.seed];
    const files = ['--config', join(folder, 'config.json'), '--data', join(folder, 'text.txt')];
    const secs = [];
    const onLine = (line) => line.startsWith('{"step"') && secs.push(JSON.parse(line).secs);
    await run('cargo', ['run', '--locked', '-q', '--bin', 'tabtune', '--', 'train', ...files, ...options.map(String), '--device', device, '--json'], { onLine });
    return summary(device, secs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const places = { browser: inBrowser, wgpu: () => natively('wgpu'), cpu: () => natively('cpu') };
const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(places)) console.log(JSON.stringify(await places[name]()));
