// Makes small models of every family as Hugging Face folders: random weights that are the same on every machine, byte-level vocabularies.
//   node tests/torture/make-models.mjs FOLDER
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { learn, tokenizer } from './consumers/vocabulary.mjs';
import { MODELS } from './model-families.mjs';
import { safetensors } from './safetensors.mjs';

const MERGES = 160;
export const NAMES = Object.keys(MODELS);

/** Returns the numbers of mulberry32 from a seed: exact integers, so equal everywhere. */
export function draws(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Returns `count` numbers around `mean` with this spread: sums of four uniformly distributed ones, which are close to normal. */
function numbers(draw, count, mean, spread) {
  const unit = Math.sqrt(3) / 2 ** 32;
  return Float32Array.from(
    { length: count },
    () => mean + spread * unit * (draw() + draw() + draw() + draw() - 2 ** 33),
  );
}

/** Yields names and shapes of the tensors of a model with rotary positions. @returns {Generator<[string, number[]], void>} */
function* llamaShapes(config, rows) {
  const {
    hidden_size: c,
    intermediate_size: f,
    num_attention_heads: heads,
    num_key_value_heads: kv,
  } = config;
  const h = config.head_dim ?? c / heads;
  yield ['model.embed_tokens.weight', [rows, c]];
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const at = `model.layers.${layer}`;
    const biased = {
      q_proj: [heads * h, c],
      k_proj: [kv * h, c],
      v_proj: [kv * h, c],
      o_proj: [c, heads * h],
    };
    for (const [name, shape] of Object.entries(biased)) {
      yield [`${at}.self_attn.${name}.weight`, shape];
      if (config.model_type === 'qwen2' && name !== 'o_proj')
        yield [`${at}.self_attn.${name}.bias`, [shape[0]]];
    }
    for (const [name, shape] of Object.entries({
      gate_proj: [f, c],
      up_proj: [f, c],
      down_proj: [c, f],
    }))
      yield [`${at}.mlp.${name}.weight`, shape];
    const olmo2 = config.model_type === 'olmo2';
    const norms = olmo2
      ? ['post_attention_layernorm', 'post_feedforward_layernorm']
      : ['input_layernorm', 'post_attention_layernorm'];
    for (const name of norms) yield [`${at}.${name}.weight`, [c]];
    const [q, k] = { qwen3: [h, h], olmo2: [heads * h, kv * h] }[config.model_type] ?? [];
    if (q) yield [`${at}.self_attn.q_norm.weight`, [q]];
    if (k) yield [`${at}.self_attn.k_norm.weight`, [k]];
  }
  yield ['model.norm.weight', [c]];
  if (!config.tie_word_embeddings) yield ['lm_head.weight', [rows, c]];
}

/** Yields the same for a GPT-2, whose matrices are [in, out]. @returns {Generator<[string, number[]], void>} */
function* gpt2Shapes({ n_embd: c, n_inner: f, n_layer: layers, n_positions: positions }, rows) {
  yield ['transformer.wte.weight', [rows, c]];
  yield ['transformer.wpe.weight', [positions, c]];
  for (let layer = 0; layer < layers; layer++) {
    for (const [name, [input, out]] of Object.entries({
      'attn.c_attn': [c, 3 * c],
      'attn.c_proj': [c, c],
      'mlp.c_fc': [c, f],
      'mlp.c_proj': [f, c],
    })) {
      yield [`transformer.h.${layer}.${name}.weight`, [input, out]];
      yield [`transformer.h.${layer}.${name}.bias`, [out]];
    }
    for (const name of ['ln_1', 'ln_2'])
      for (const end of ['weight', 'bias']) yield [`transformer.h.${layer}.${name}.${end}`, [c]];
  }
  for (const end of ['weight', 'bias']) yield [`transformer.ln_f.${end}`, [c]];
}

/** Spread of the tables, and of the logits, which is small, since readers round their factors to 8 or 11 bits. */
const [TABLE, LOGITS] = [0.5, 0.1];

/**
 * Returns mean and spread of a tensor. Each block adds less than the size of the embedding, so that rounding errors of readers do not grow from block
 * to block.
 */
function spreadOf(name, shape, type) {
  const width = shape.at(-1);
  const last = LOGITS / (TABLE * Math.sqrt(width));
  if (/model\.norm|ln_f/.test(name))
    return name.endsWith('.bias') ? [0, last / 5] : [last, last / 5];
  if (/wpe|c_proj\.bias/.test(name)) return [0, TABLE / 4];
  // OLMo 2 scales what a block adds by these.
  if (type === 'olmo2' && /post_(attention|feedforward)_layernorm/.test(name))
    return [0.25 * TABLE, 0.05 * TABLE];
  if (shape.length === 1) return name.endsWith('.bias') ? [0, 0.1] : [1, 0.2];
  if (/embed_tokens|wte|lm_head/.test(name)) return [0, TABLE];
  const added = /o_proj|down_proj|c_proj/.test(name) ? 0.25 * TABLE : 1;
  return [0, added / Math.sqrt(type === 'gpt2' ? shape[0] : width)];
}

const json = (value) => `${JSON.stringify(value, null, 1)}\n`;

/**
 * @param {string} folder @param {{ config: object & { model_type: string }, words: import('./model-families.mjs').Words, template?: string, rows?: number }} model
 * @param {number} seed
 */
function make(folder, { config, words, template, rows: beyond = 0 }, seed) {
  const { document, ids } = tokenizer({ ...words, merges: learn(MERGES) });
  const rows = Object.keys(ids).length + beyond;
  const gpt2 = config.model_type === 'gpt2';
  const draw = draws(seed);
  /** @type {Parameters<typeof safetensors>[0]} */
  const tensors = [];
  for (const [name, shape] of gpt2 ? gpt2Shapes(config, rows) : llamaShapes(config, rows)) {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = numbers(draw, count, ...spreadOf(name, shape, config.model_type));
    tensors.push([name, { dtype: 'F32', shape, bytes: Buffer.from(values.buffer) }]);
  }
  tensors.sort(([a], [b]) => (a < b ? -1 : 1));
  const ends = words.ends.map((text) => ids[text]);
  const begin = words.bos && ids[words.bos];
  const special = { bos_token: words.bos, eos_token: words.ends[0], pad_token: words.pad };
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'config.json'),
    json({
      ...config,
      vocab_size: rows,
      torch_dtype: 'float32',
      bos_token_id: begin,
      eos_token_id: ends[0],
    }),
  );
  writeFileSync(
    join(folder, 'generation_config.json'),
    json({
      bos_token_id: begin,
      eos_token_id: ends.length > 1 ? ends : ends[0],
      pad_token_id: words.pad && ids[words.pad],
    }),
  );
  writeFileSync(join(folder, 'tokenizer.json'), json(document));
  writeFileSync(
    join(folder, 'tokenizer_config.json'),
    json({
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      ...special,
    }),
  );
  if (template) writeFileSync(join(folder, 'chat_template.jinja'), template);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors, { format: 'pt' }));
}

/** Creates every model in a folder of its name. */
export function makeModels(folder) {
  Object.entries(MODELS).forEach(([name, model], number) =>
    make(join(folder, name), model, number + 1),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) makeModels(process.argv[2]);
