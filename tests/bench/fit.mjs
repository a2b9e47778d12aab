// Computes the table of README.md that lists the models that fit each GPU, and the sizes of the models that the demo suggests by name, with the
// package's own planner: `node tests/bench/fit.mjs --write`. A model is its config.json and a safetensors file with a header and, instead of weights, a hole of their size: planning reads no weights.
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

export const README = join(root, 'README.md');
export const SUGGESTED = join(root, 'web/demo/assets/hub-models.json');
const [BEGIN, END] = ['<!-- fit: node tests/bench/fit.mjs --write -->', '<!-- end of fit -->'];

const llama = (
  hidden_size,
  intermediate_size,
  num_hidden_layers,
  num_attention_heads,
  num_key_value_heads,
  vocab_size,
  more = {},
) => ({
  model_type: 'llama',
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 100000,
  tie_word_embeddings: true,
  max_position_embeddings: 8192,
  ...{
    hidden_size,
    intermediate_size,
    num_hidden_layers,
    num_attention_heads,
    num_key_value_heads,
    vocab_size,
  },
  ...more,
});
const qwen3 = {
  model_type: 'qwen3',
  head_dim: 128,
  max_position_embeddings: 40960,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000,
};
const qwen2 = { model_type: 'qwen2', max_position_embeddings: 32768, rms_norm_eps: 1e-6 };
const llama32 = { max_position_embeddings: 131072, rope_theta: 500000, head_dim: 64 };
/** Well-known models, with the sizes of their config.json. */
const MODELS = {
  'SmolLM2 135M': llama(576, 1536, 30, 9, 3, 49152),
  'SmolLM2 360M': llama(960, 2560, 32, 15, 5, 49152),
  'Qwen3 0.6B': llama(1024, 3072, 28, 16, 8, 151936, qwen3),
  'Llama 3.2 1B': llama(2048, 8192, 16, 32, 8, 128256, llama32),
  'Qwen3 1.7B': llama(2048, 6144, 28, 16, 8, 151936, qwen3),
};
/** Models that the demo suggests, by their names on the hub, whose files have two bytes for each weight. */
const NAMED = {
  'HuggingFaceTB/SmolLM2-135M-Instruct': MODELS['SmolLM2 135M'],
  'HuggingFaceTB/SmolLM2-360M-Instruct': MODELS['SmolLM2 360M'],
  'Qwen/Qwen2.5-0.5B-Instruct': llama(896, 4864, 24, 14, 2, 151936, {
    ...qwen2,
    rope_theta: 1000000,
  }),
};
/** An adapter as the demo sets it up. */
const ADAPTER = {
  batchSize: 8,
  seqLen: 64,
  precision: 'f32',
  optimizer: { type: 'adamw', weightDecay: 0 },
  adapter: { r: 16, alpha: 32, targetModules: 'all-linear' },
};
/** Kinds of training, one for each column of the table. */
const RUN = { batchSize: 1, seqLen: 512 };
const WAYS = {
  'AdamW, f32': { ...RUN, precision: 'f32' },
  'AdamW, bf16': { ...RUN, precision: 'bf16' },
  'Adafactor, bf16': { ...RUN, precision: 'bf16', optimizer: { type: 'adafactor' } },
  'with `gradientRelease`': {
    ...RUN,
    precision: 'bf16',
    optimizer: { type: 'adafactor' },
    gradientRelease: true,
    maxGradNorm: 0,
  },
  'AdamW, `blockCoordinate`': { ...RUN, precision: 'bf16', blockCoordinate: {} },
};

/** Returns names and shapes of the tensors, as Hugging Face writes them. */
function tensors(config) {
  const {
    hidden_size: hidden,
    intermediate_size: mlp,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
  } = config;
  const headDim = config.head_dim ?? hidden / heads;
  const block = (index) => {
    const at = (name, kind = 'weight') => `model.layers.${index}.${name}.${kind}`;
    const biases =
      config.model_type === 'qwen2'
        ? {
            [at('self_attn.q_proj', 'bias')]: [heads * headDim],
            [at('self_attn.k_proj', 'bias')]: [kvHeads * headDim],
            [at('self_attn.v_proj', 'bias')]: [kvHeads * headDim],
          }
        : {};
    const norms =
      config.model_type === 'qwen3'
        ? { [at('self_attn.q_norm')]: [headDim], [at('self_attn.k_norm')]: [headDim] }
        : {};
    return {
      [at('input_layernorm')]: [hidden],
      [at('self_attn.q_proj')]: [heads * headDim, hidden],
      [at('self_attn.k_proj')]: [kvHeads * headDim, hidden],
      [at('self_attn.v_proj')]: [kvHeads * headDim, hidden],
      [at('self_attn.o_proj')]: [hidden, heads * headDim],
      ...norms,
      ...biases,
      [at('post_attention_layernorm')]: [hidden],
      [at('mlp.gate_proj')]: [mlp, hidden],
      [at('mlp.up_proj')]: [mlp, hidden],
      [at('mlp.down_proj')]: [hidden, mlp],
    };
  };
  const blocks = Array.from({ length: config.num_hidden_layers }, (_, index) => block(index));
  return Object.assign(
    { 'model.embed_tokens.weight': [config.vocab_size, hidden], 'model.norm.weight': [hidden] },
    ...blocks,
  );
}

/** Writes the two files of a model, and returns their paths and the bytes of the weights. */
function hollow(folder, config) {
  mkdirSync(folder);
  let end = 0;
  const entries = Object.entries(tensors(config)).map(([name, shape]) => {
    const begin = end;
    end += 2 * shape.reduce((product, size) => product * size, 1);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const paths = [join(folder, 'config.json'), join(folder, 'model.safetensors')];
  writeFileSync(paths[0], JSON.stringify(config));
  const file = openSync(paths[1], 'w');
  writeSync(file, length);
  writeSync(file, header);
  ftruncateSync(file, length.length + header.length + end);
  closeSync(file);
  return { paths, weightBytes: end };
}

/**
 * Returns the bytes that one step of each model needs, by model and kind of training, and those of its weights; `page` is an empty page of a site that
 * serves the package as /dist/.
 * @param {any} page @param {Record<string, any>} models @param {Record<string, object>} ways
 */
export async function planned(page, models = MODELS, ways = WAYS) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-fit-'));
  try {
    await page.evaluate(() =>
      document.body.replaceChildren(
        Object.assign(document.createElement('input'), { type: 'file', multiple: true }),
      ),
    );
    const rows = [];
    for (const [name, config] of Object.entries(models)) {
      const { paths, weightBytes } = hollow(join(folder, name.replace('/', ' ')), config);
      await page.setInputFiles('input', paths);
      const bytes = await page.evaluate(async (ways) => {
        const { openModel, Trainer } = await import('/dist/index.js');
        const model = await openModel([...(document.querySelector('input')?.files ?? [])]);
        const bytes = [];
        for (const way of ways) bytes.push((await Trainer.estimate(model, way)).needBytes);
        await model.dispose();
        return bytes;
      }, Object.values(ways));
      rows.push([name, bytes, weightBytes]);
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the text of the file with the sizes of the models that the demo suggests. */
export async function suggested(page) {
  const rows = await planned(page, NAMED, { ADAPTER });
  const models = rows.map(([name, [adapterBytes], weightBytes]) => ({
    name,
    weightBytes,
    adapterBytes,
  }));
  return `${JSON.stringify(models, null, 2)}\n`;
}

/** Returns the table of README.md, in GB (10⁹ bytes). */
export function table(rows) {
  const lines = rows.map(
    ([name, bytes]) => `| ${[name, ...bytes.map((each) => (each / 1e9).toFixed(1))].join(' | ')} |`,
  );
  return [
    `| model | ${Object.keys(WAYS).join(' | ')} |`,
    `|---|${'---|'.repeat(Object.keys(WAYS).length)}`,
    ...lines,
  ].join('\n');
}

/** Returns the table that is contained in a text. */
export const written = (readme) =>
  readme.slice(readme.indexOf(BEGIN) + BEGIN.length, readme.indexOf(END)).trim();

async function main() {
  const site = await serve();
  const browser = await Browser.launch();
  try {
    const { page } = await browser.open(`${site.url}/`);
    const made = table(await planned(page));
    const models = await suggested(page);
    console.log(`${made}\n${models}`);
    if (!process.argv.includes('--write')) return;
    writeFileSync(SUGGESTED, models);
    const readme = readFileSync(README, 'utf8');
    const [before, after] = [
      readme.slice(0, readme.indexOf(BEGIN)),
      readme.slice(readme.indexOf(END)),
    ];
    writeFileSync(README, `${before}${BEGIN}\n${made}\n${after}`);
  } finally {
    await browser.close();
    await site.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
