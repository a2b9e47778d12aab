// Makes small models of every family as Hugging Face folders: random weights that are the same on every machine, byte-level vocabularies.
//   node tests/torture/make-models.mjs FOLDER
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { learn, tokenizer } from './consumers/vocabulary.mjs';

const MERGES = 160;
const LLAMA = {
  hidden_act: 'silu',
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 256,
  rms_norm_eps: 1e-5,
  rope_theta: 10000.0,
  tie_word_embeddings: true,
};
const QWEN_SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
/** @type {{ kind: string, special: string[], last: boolean, bos?: string, ends: string[], pad?: string }} */
const SMOL = {
  kind: 'smollm',
  special: QWEN_SPECIAL,
  last: false,
  ends: ['<|im_end|>', '<|endoftext|>'],
  pad: '<|im_end|>',
};
const QWEN = {
  kind: 'qwen2',
  special: QWEN_SPECIAL,
  last: true,
  ends: ['<|endoftext|>', '<|im_end|>'],
  pad: '<|endoftext|>',
};
const LLAMA_SPECIAL = ['<|begin_of_text|>', '<|end_of_text|>', '<|eot_id|>'];

/** Name → configuration, vocabulary, and number of rows of the embedding beyond it. */
const MODELS = {
  // Llama 3.1: its frequencies, an untied head, a token before every text.
  'llama-3': {
    config: {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      ...LLAMA,
      max_position_embeddings: 4096,
      rope_theta: 500000.0,
      tie_word_embeddings: false,
      rope_scaling: {
        rope_type: 'llama3',
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 2048,
      },
    },
    words: {
      kind: 'llama-bpe',
      special: LLAMA_SPECIAL,
      last: true,
      bos: LLAMA_SPECIAL[0],
      ends: LLAMA_SPECIAL.slice(1),
    },
  },
  'llama-tied': {
    config: {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      ...LLAMA,
      num_key_value_heads: 1,
    },
    words: SMOL,
  },
  qwen2: {
    config: {
      model_type: 'qwen2',
      architectures: ['Qwen2ForCausalLM'],
      ...LLAMA,
      rms_norm_eps: 1e-6,
      rope_theta: 1000000.0,
    },
    words: QWEN,
    rows: 13,
    template:
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}",
  },
  // Heads wider than their share of the model.
  qwen3: {
    config: {
      model_type: 'qwen3',
      architectures: ['Qwen3ForCausalLM'],
      ...LLAMA,
      rms_norm_eps: 1e-6,
      rope_theta: 1000000.0,
      head_dim: 32,
      tie_word_embeddings: false,
    },
    words: QWEN,
  },
  'qwen3-tied': {
    config: {
      model_type: 'qwen3',
      architectures: ['Qwen3ForCausalLM'],
      ...LLAMA,
      rms_norm_eps: 1e-6,
      rope_theta: 1000000.0,
      head_dim: 32,
    },
    words: QWEN,
  },
  gpt2: {
    config: {
      model_type: 'gpt2',
      architectures: ['GPT2LMHeadModel'],
      activation_function: 'gelu_new',
      n_embd: 64,
      n_layer: 2,
      n_head: 4,
      n_positions: 256,
      n_inner: 128,
      layer_norm_epsilon: 1e-5,
    },
    words: { kind: 'gpt-2', special: ['<|endoftext|>'], last: true, ends: ['<|endoftext|>'] },
  },
  // Rows of whole blocks of 256 for the K types; three layers, so that the mixture gives both of its types to ffn_down and attn_v.
  wide: {
    config: {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      ...LLAMA,
      hidden_size: 256,
      intermediate_size: 512,
      num_hidden_layers: 3,
      num_attention_heads: 8,
      head_dim: 64,
      tie_word_embeddings: false,
    },
    words: SMOL,
  },
  // Norms after attention and MLP, and over all queries and all keys.
  olmo2: {
    config: {
      model_type: 'olmo2',
      architectures: ['Olmo2ForCausalLM'],
      ...LLAMA,
      rope_theta: 500000.0,
      tie_word_embeddings: false,
    },
    words: {
      kind: 'dbrx',
      special: QWEN_SPECIAL,
      last: true,
      ends: ['<|endoftext|>'],
      pad: '<|im_end|>',
    },
  },
};

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

/** Returns a safetensors file of F32 tensors. */
function safetensors(tensors) {
  const header = { __metadata__: { format: 'pt' } };
  let end = 0;
  const sorted = [...tensors].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, { shape, values }] of sorted)
    header[name] = { dtype: 'F32', shape, data_offsets: [end, (end += values.byteLength)] };
  const text = JSON.stringify(header);
  const json = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([
    front,
    json,
    ...sorted.map(([, { values }]) => Buffer.from(values.buffer)),
  ]);
}

const json = (value) => `${JSON.stringify(value, null, 1)}\n`;

/**
 * @param {string} folder @param {{ config: object & { model_type: string }, words: typeof SMOL, template?: string, rows?: number }} model
 * @param {number} seed
 */
function make(folder, { config, words, template, rows: beyond = 0 }, seed) {
  const { document, ids } = tokenizer({ ...words, merges: learn(MERGES) });
  const rows = Object.keys(ids).length + beyond;
  const gpt2 = config.model_type === 'gpt2';
  const draw = draws(seed);
  const tensors = new Map();
  for (const [name, shape] of gpt2 ? gpt2Shapes(config, rows) : llamaShapes(config, rows)) {
    const count = shape.reduce((product, size) => product * size, 1);
    tensors.set(name, {
      shape,
      values: numbers(draw, count, ...spreadOf(name, shape, config.model_type)),
    });
  }
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
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
}

/** Creates every model in a folder of its name. */
export function makeModels(folder) {
  Object.entries(MODELS).forEach(([name, model], number) =>
    make(join(folder, name), model, number + 1),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) makeModels(process.argv[2]);
