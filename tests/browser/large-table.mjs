// Gemma 3 in a browser whose kernels bind at most 128 MiB, as on many phones: its table of 262,144 rows lies in parts. The weights are random and are
// made as they are read, so that there is no large file.

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

/** The header of model.safetensors, as text, and the number of bytes after it. @param {typeof GEMMA_3_270M} config */
export function headerOf(config) {
  let end = 0;
  const entries = tensorsOf(config).map(([name, shape]) => {
    const begin = end;
    end += 2 * shape.reduce((product, size) => product * size, 1);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, end] }];
  });
  return { header: JSON.stringify(Object.fromEntries(entries)), bytes: end };
}

/**
 * Runs in a page: trains `steps` steps of full AdamW in bf16, and returns their losses, the planned bytes, the seconds of the last step, and the code
 * of the refusal of an optimizer that needs the table as a whole.
 * @param {{ config: object, header: string, bytes: number, seqLen: number, steps: number }} of
 */
export async function train({ config, header, bytes, seqLen, steps }) {
  const { openModel, Trainer } = await import('/dist/index.js');
  const text = new TextEncoder().encode(header);
  const head = new Uint8Array(8 + text.length);
  new DataView(head.buffer).setBigUint64(0, BigInt(text.length), true);
  head.set(text, 8);
  /** The byte at this place of the weights, bf16 values of about ±0.03. @param {number} place */
  const weight = (place) => {
    let mixed = Math.imul((place >> 1) + 1, 0x9e3779b1);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
    return place % 2 === 0 ? mixed & 0x7f : 0x3c | ((mixed >>> 24) & 0x80);
  };
  /** A file whose bytes are made as they are read. @param {string} name @param {number} size @param {(at: number) => number} byte */
  const made = (name, size, byte) => ({
    name,
    size,
    read(/** @type {number} */ offset, /** @type {number} */ length) {
      const bytes = new Uint8Array(length);
      for (let at = 0; at < length; at++) bytes[at] = byte(offset + at);
      return Promise.resolve(bytes);
    },
  });
  const json = new TextEncoder().encode(JSON.stringify(config));
  const files = [
    made('config.json', json.length, (at) => json[at] ?? 0),
    made('model.safetensors', head.length + bytes, (at) => head[at] ?? weight(at - head.length)),
  ];
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
