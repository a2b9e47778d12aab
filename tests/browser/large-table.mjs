// Gemma 3 with random weights in a browser whose kernels bind at most 128 MiB, as on many phones: its table of 262,144 rows lies in parts.
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Number of weights that are written at a time. */
const PIECE = 1 << 22;

/** The config.json of Gemma 3 270M. */
export const GEMMA_3_270M = {
  model_type: 'gemma3_text',
  vocab_size: 262144,
  hidden_size: 640,
  intermediate_size: 2048,
  num_hidden_layers: 18,
  num_attention_heads: 4,
  num_key_value_heads: 1,
  head_dim: 256,
  max_position_embeddings: 32768,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000,
  rope_local_base_freq: 10000,
  sliding_window: 512,
  query_pre_attn_scalar: 256,
  hidden_activation: 'gelu_pytorch_tanh',
  tie_word_embeddings: true,
};

/** The same with one narrow block, whose table is still larger than the limit in f32. */
export const NARROW = {
  ...GEMMA_3_270M,
  hidden_size: 136,
  intermediate_size: 64,
  num_hidden_layers: 1,
  head_dim: 32,
  query_pre_attn_scalar: 32,
};

/** Runs in the worker before the package: the adapter has no more than 128 MiB for a binding, and the browser refuses larger ones. */
export function smallBindings() {
  const most = 128 * 2 ** 20;
  const limits = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'limits')?.get;
  Object.defineProperty(GPUAdapter.prototype, 'limits', {
    get() {
      const real = limits?.call(this);
      return new Proxy(real, {
        get: (_, key) => (key === 'maxStorageBufferBindingSize' ? most : real[key]),
      });
    },
  });
}

/** Names and shapes of the tensors, as Hugging Face writes them. @param {typeof GEMMA_3_270M} config */
function tensorsOf(config) {
  const { hidden_size: hidden, intermediate_size: mlp, head_dim: head } = config;
  const [queries, keys] = [config.num_attention_heads * head, config.num_key_value_heads * head];
  const norms = ['input', 'post_attention', 'pre_feedforward', 'post_feedforward'];
  /** @type {Record<string, number[]>} */
  const block = {
    'self_attn.q_proj': [queries, hidden],
    'self_attn.k_proj': [keys, hidden],
    'self_attn.v_proj': [keys, hidden],
    'self_attn.o_proj': [hidden, queries],
    'self_attn.q_norm': [head],
    'self_attn.k_norm': [head],
    'mlp.gate_proj': [mlp, hidden],
    'mlp.up_proj': [mlp, hidden],
    'mlp.down_proj': [hidden, mlp],
    ...Object.fromEntries(norms.map((norm) => [`${norm}_layernorm`, [hidden]])),
  };
  /** @type {Record<string, number[]>} */
  const all = { 'model.embed_tokens.weight': [config.vocab_size, hidden] };
  for (let at = 0; at < config.num_hidden_layers; at++)
    for (const [name, shape] of Object.entries(block))
      all[`model.layers.${at}.${name}.weight`] = shape;
  return Object.entries({ ...all, 'model.norm.weight': [hidden] });
}

/**
 * Writes config.json and model.safetensors, with bf16 weights of about ±0.03 that depend on their places, into a folder, and returns their paths.
 * @param {string} folder @param {typeof GEMMA_3_270M} config
 */
export function writeModel(folder, config) {
  let end = 0;
  const entries = tensorsOf(config).map(([name, shape]) => {
    const begin = end;
    end += 2 * shape.reduce((product, size) => product * size, 1);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const paths = [join(folder, 'config.json'), join(folder, 'model.safetensors')];
  writeFileSync(paths[0] ?? '', JSON.stringify(config));
  const file = openSync(paths[1] ?? '', 'w');
  writeSync(file, length);
  writeSync(file, header);
  for (let at = 0; at < end / 2; at += PIECE) {
    const piece = Uint16Array.from({ length: Math.min(PIECE, end / 2 - at) }, (_, index) => {
      let mixed = Math.imul(at + index + 1, 0x9e3779b1);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
      return 0x3c00 | ((mixed >>> 16) & 0x807f);
    });
    writeSync(file, piece);
  }
  closeSync(file);
  return paths;
}

/**
 * Runs in a page with the model's files in an input: trains `steps` steps of full AdamW in bf16, and returns their losses, the planned bytes, the seconds
 * of the last step, and the code of the refusal of an optimizer that needs the table as a whole.
 * @param {{ seqLen: number, steps: number }} of
 */
export async function train({ seqLen, steps }) {
  const { openModel, Trainer } = await import('/dist/index.js');
  const files = [...(document.querySelector('input')?.files ?? [])];
  // A text of eight tokens, one from each part of the table and its ends.
  const tokens = Uint32Array.from({ length: 4 * seqLen + 1 }, (_, at) => ((at % 8) * 262143) / 7);
  const open = () => openModel(files, { workerUrl: '/small-bindings.js' });
  const data = { tokens, name: 'data.tokens' };
  const options = /** @type {const} */ ({
    steps,
    batchSize: 1,
    seqLen,
    precision: 'bf16',
    learningRate: 1e-2,
  });
  const refused = await Trainer.create({
    ...options,
    data,
    model: await open(),
    optimizer: { type: 'adafactor' },
  }).then(
    () => 'none',
    (/** @type {any} */ error) => error.code,
  );
  const model = await open();
  const { needBytes } = await Trainer.estimate(model, options);
  const trainer = await Trainer.create({ ...options, data, model });
  const losses = [];
  let seconds = 0;
  for (let step = 0; step < steps; step++) {
    const begun = performance.now();
    losses.push((await trainer.step(1))[0].loss);
    seconds = (performance.now() - begun) / 1000;
  }
  await trainer.dispose();
  return { losses, needBytes, seconds, refused };
}

/**
 * Trains a model of this configuration in a page of a site that has `/small-bindings.js`.
 * @param {import('playwright-core').Page} page @param {typeof GEMMA_3_270M} config @param {Parameters<typeof train>[0]} of
 */
export async function trainedIn(page, config, of) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-large-'));
  try {
    await page.evaluate(() =>
      document.body.append(
        Object.assign(document.createElement('input'), { type: 'file', multiple: true }),
      ),
    );
    await page.setInputFiles('input', writeModel(folder, config));
    return await page.evaluate(train, of);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
