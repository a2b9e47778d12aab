// Computes the table of README.md that lists the models that fit each GPU, with the package's own planner: `node tests/bench/fit.mjs --write`. A
// model is its config.json and a safetensors file with a header and, instead of weights, a hole of their size: planning reads no weights.
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
const llama32 = { max_position_embeddings: 131072, rope_theta: 500000, head_dim: 64 };
/** Well-known models, with the sizes of their config.json. */
const MODELS = {
  'SmolLM2 135M': llama(576, 1536, 30, 9, 3, 49152),
  'SmolLM2 360M': llama(960, 2560, 32, 15, 5, 49152),
  'Qwen3 0.6B': llama(1024, 3072, 28, 16, 8, 151936, qwen3),
  'Llama 3.2 1B': llama(2048, 8192, 16, 32, 8, 128256, llama32),
  'Qwen3 1.7B': llama(2048, 6144, 28, 16, 8, 151936, qwen3),
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
    const at = (name) => `model.layers.${index}.${name}.weight`;
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

/** Writes the two files of a model, and returns their paths. */
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
  return paths;
}

/**
 * Returns the bytes that one step of each model needs, by model and kind of training; `page` is an empty page of a site that serves the package as
 * /dist/.
 */
export async function planned(page) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-fit-'));
  try {
    await page.evaluate(() =>
      document.body.append(
        Object.assign(document.createElement('input'), { type: 'file', multiple: true }),
      ),
    );
    const rows = [];
    for (const [name, config] of Object.entries(MODELS)) {
      await page.setInputFiles('input', hollow(join(folder, name), config));
      const bytes = await page.evaluate(async (ways) => {
        const { openModel, Trainer } = await import('/dist/index.js');
        const model = await openModel([...(document.querySelector('input')?.files ?? [])]);
        const bytes = [];
        for (const way of ways) bytes.push((await Trainer.estimate(model, way)).needBytes);
        await model.dispose();
        return bytes;
      }, Object.values(WAYS));
      rows.push([name, bytes]);
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
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
    console.log(made);
    if (!process.argv.includes('--write')) return;
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
