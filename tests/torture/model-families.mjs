// The small models of every family that tests make: their configurations and their vocabularies.

/** @typedef {{ kind: string, special: string[], last: boolean, bos?: string, ends: string[], pad?: string }} Words Special tokens of a vocabulary, and its kind */

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
/** @type {Words} */
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
export const MODELS = {
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
  // The fourth layer has no rotary positions.
  smollm3: {
    config: {
      model_type: 'smollm3',
      architectures: ['SmolLM3ForCausalLM'],
      ...LLAMA,
      num_hidden_layers: 5,
      rope_theta: 5000000.0,
      no_rope_layers: [1, 1, 1, 0, 1],
      tie_word_embeddings: true,
    },
    words: SMOL,
  },
};
