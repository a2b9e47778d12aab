// Learned tokens per second, with short chats packed or each in its own sequence: natively on the GPU device and in Chromium.
//   TABTUNE=the program node tests/bench/packing.mjs
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const STEPS = 6;
/** Number of first steps, which compile shaders and are recorded. */
const FIRST = 3;
const SHAPE = { hiddenSize: 128, numHiddenLayers: 3, numAttentionHeads: 4 };
const CONFIG = {
  model_type: 'llama',
  hidden_act: 'silu',
  hidden_size: 128,
  intermediate_size: 344,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  max_position_embeddings: 1024,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
  vocab_size: 1,
};

/** Returns 2000 rows of 40 to 300 characters, each of which is a token. */
function rows() {
  let state = 1;
  const draw = (from, to) => (
    (state = (Math.imul(state, 1664525) + 1013904223) >>> 0),
    from + Math.floor((state / 2 ** 32) * (to - from))
  );
  const words = (count) => 'it is a truth that one would not know '.repeat(10).slice(0, count);
  return Array.from({ length: 2000 }, () => {
    const length = draw(40, 300);
    return JSON.stringify({
      prompt: words(Math.floor(length / 3)),
      completion: words(length - Math.floor(length / 3)),
    });
  }).join('\n');
}

const rate = (steps) => {
  const late = steps.slice(FIRST);
  return (
    late.reduce((sum, { tokens }) => sum + tokens, 0) /
    late.reduce((sum, { secs }) => sum + secs, 0)
  );
};

/** Runs in the page. */
async function inPage({ text, shape, packing, steps }) {
  const { newModel, Trainer } = await import('/dist/index.js');
  const data = { text, name: 'rows.jsonl' };
  const model = await newModel({ ...shape, maxPositionEmbeddings: 1024 }, data);
  const trainer = await Trainer.create({
    model,
    data,
    steps,
    batchSize: 4,
    seqLen: 512,
    packing,
    seed: 1,
    autosave: false,
    logEvery: 1,
  });
  const told = [];
  let before = performance.now();
  for await (const event of trainer.run()) {
    if (event.type !== 'step') continue;
    const now = performance.now();
    told.push({ tokens: event.tokens, secs: (now - before) / 1000 });
    before = now;
  }
  await trainer.dispose();
  return told;
}

const folder = mkdtempSync(join(tmpdir(), 'tabtune-packing-'));
const site = await serve({ '/dist/': built.package });
const browser = await Browser.launch();
try {
  const text = rows();
  const [data, config] = [join(folder, 'rows.jsonl'), join(folder, 'config.json')];
  writeFileSync(data, text);
  writeFileSync(config, JSON.stringify(CONFIG));
  const native = (packing) => {
    const args = [
      'train',
      '--json',
      '--config',
      config,
      '--data',
      data,
      '--device',
      'wgpu',
      '--steps',
      String(STEPS),
      '--batch-size',
      '4',
      '--seq-len',
      '512',
      '--seed',
      '1',
    ];
    const lines = execFileSync(
      process.env.TABTUNE ?? 'tabtune',
      [...args, ...(packing ? [] : ['--no-packing'])],
      { encoding: 'utf8' },
    )
      .trim()
      .split('\n');
    return rate(
      lines.map((line) => JSON.parse(line)).filter(({ grad_norm }) => grad_norm !== undefined),
    );
  };
  const { page } = await browser.open(`${site.url}/`);
  const tab = async (packing) =>
    rate(await page.evaluate(inPage, { text, shape: SHAPE, packing, steps: STEPS }));
  for (const [where, measure] of Object.entries({ native, Chromium: tab })) {
    const [apart, packed] = [await measure(false), await measure(true)];
    console.log(
      `${where}: ${apart.toFixed(0)} learned tokens a second apart, ${packed.toFixed(0)} packed, ${(packed / apart).toFixed(2)} times as many`,
    );
  }
} finally {
  await browser.close();
  await site.close();
  rmSync(folder, { recursive: true });
}
