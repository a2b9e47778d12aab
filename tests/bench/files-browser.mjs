// Speed of writing and reading files in Chromium, through the public API:
//   node tests/bench/files-browser.mjs [TYPES]     TYPES: values of Model.exportTo's `type`, separated by commas; all of them by default
// A Llama of 51 million random parameters, 206 MB in f32, is opened; from it one GGUF file of each type is written to the origin's private files
// (values encoded, each byte hashed twice for the receipt), read as f32 tensor by tensor, verified (each byte hashed again), and imported: opened for
// training, with all weights on the GPU. Prints the figures of results/files.json, by the faster of two rounds. MB are 10^6 bytes.
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const TYPES = ['f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_1', 'q5_0', 'q4_k', 'q4_1', 'q4_0'];
const ROUNDS = 2;
const MB = 1e6;
const CONFIG = {
  model_type: 'llama',
  hidden_act: 'silu',
  tie_word_embeddings: true,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  vocab_size: 256,
  hidden_size: 1024,
  num_hidden_layers: 4,
  num_attention_heads: 16,
  num_key_value_heads: 16,
  intermediate_size: 2816,
  max_position_embeddings: 256,
};
const RUN = {
  optimizer: { type: 'sgd' },
  steps: 1,
  batchSize: 1,
  seqLen: 16,
  learningRate: 1e-3,
  keepData: false,
};

/** Returns the name and shape of each tensor. */
function tensors({
  vocab_size: vocab,
  hidden_size: width,
  intermediate_size: inner,
  num_hidden_layers: layers,
}) {
  const square = ['q', 'k', 'v', 'o'].map((part) => [`self_attn.${part}_proj`, [width, width]]);
  const outward = ['gate', 'up'].map((part) => [`mlp.${part}_proj`, [inner, width]]);
  const norms = ['input_layernorm', 'post_attention_layernorm'].map((part) => [part, [width]]);
  const block = [...square, ...outward, ['mlp.down_proj', [width, inner]], ...norms];
  const blocks = Array.from({ length: layers }, (_, at) =>
    block.map(([name, shape]) => [`model.layers.${at}.${name}.weight`, shape]),
  );
  return [
    ['model.embed_tokens.weight', [vocab, width]],
    ...blocks.flat(),
    ['model.norm.weight', [width]],
  ];
}

/** Runs in the page: creates the model's files, with random values. */
function files({ tensors, config }) {
  const header = {};
  const parts = [];
  let values = 0;
  let random = 1;
  for (const [name, shape] of tensors) {
    const count = shape.reduce((product, dim) => product * dim);
    header[name] = { dtype: 'F32', shape, data_offsets: [4 * values, 4 * (values += count)] };
    const next = () => (random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0) * 2 ** -36;
    parts.push(Float32Array.from({ length: count }, next));
  }
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  const weights = new File(
    [new BigUint64Array([BigInt(head.length)]), head, ...parts],
    'model.safetensors',
  );
  return {
    valueBytes: 4 * values,
    files: [weights, new File([JSON.stringify(config)], 'config.json')],
  };
}

/** Runs in the page: measures the seconds of each operation. */
async function measure({ files, valueBytes, type, run }) {
  const { openModel, Trainer, verifyFiles } = await import('/dist/index.js');
  const seconds = {};
  const timed = async (what, work) => {
    const start = performance.now();
    const result = await work();
    seconds[what] = (performance.now() - start) / 1000;
    return result;
  };
  const home = await navigator.storage.getDirectory();
  const target = await home.getFileHandle(`${type}.gguf`, { create: true });
  globalThis.base ??= await openModel(files);
  const receipt = await timed('export', () =>
    globalThis.base.exportTo(target, { format: 'gguf', type, requantise: true, name: type }),
  );
  const written = await target.getFile();
  const model = await openModel(written);
  await timed('decode', async () => {
    for (const { name } of model.info.tensors) await model.tensor(name);
  });
  await model.dispose();
  const { ok, checks } = await timed('verify', () => verifyFiles(written, { receipt }));
  if (!ok) throw new Error(`${type} is not what its receipt says: ${JSON.stringify(checks)}`);
  const data = { tokens: new Uint32Array(1000) };
  const trainer = await timed('import', async () =>
    Trainer.create({ model: await openModel(written), data, ...run }),
  );
  await trainer.dispose();
  return { type, bytes: written.size, valueBytes, seconds };
}

const types = process.argv[2]?.split(',') ?? TYPES;
const site = await serve({ '/dist/': 'dist' });
const browser = await Browser.launch();
const found = [];
try {
  const { page, record } = await browser.open(`${site.url}/`);
  page.setDefaultTimeout(0);
  const made = await page.evaluateHandle(files, { tensors: tensors(CONFIG), config: CONFIG });
  for (const type of Array.from({ length: ROUNDS }, () => types).flat()) {
    const prepared = await page.evaluateHandle(({ made, type, run }) => ({ ...made, type, run }), {
      made,
      type,
      run: RUN,
    });
    found.push(await prepared.evaluate(measure));
  }
  if (record.errors.length > 0) throw new Error(record.errors.join('\n'));
} finally {
  await browser.close();
  await site.close();
}
console.log(
  '| type | file, MB | export, s | encode and export, MB/s of f32 | decode, MB/s of f32 | verify, MB/s of the file | import, s | import, MB/s of the file |',
);
console.log('|---|---|---|---|---|---|---|---|');
for (const type of types) {
  const runs = found.filter((run) => run.type === type);
  const [{ bytes, valueBytes }] = runs;
  const best = (what) => Math.min(...runs.map((run) => run.seconds[what]));
  const rate = (size, what) => Math.round(size / MB / best(what));
  const columns = [
    Math.round(bytes / MB),
    best('export').toFixed(1),
    rate(valueBytes, 'export'),
    rate(valueBytes, 'decode'),
  ];
  console.log(
    `| ${[type, ...columns, rate(bytes, 'verify'), best('import').toFixed(1), rate(bytes, 'import')].join(' | ')} |`,
  );
}
