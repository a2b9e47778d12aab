/** Shapes of new models, under Hugging Face's names in camelCase. */
import { boolean, objectOf, oneOf, positive, positiveInteger, translate } from './checks.js';
import type { Values } from '../protocol/plain.js';
import { badOption } from '../protocol/errors.js';
import { ownFields } from './given.js';

/** Sizes of a new model. */
export interface ModelShape {
  /** Architecture. qwen2 is llama with biases on q, k and v; qwen3 is llama with norms on q and k. Default: 'llama'. */
  architecture?: 'llama' | 'qwen2' | 'qwen3' | 'gpt2' | undefined;
  /** Width: number of values that the layers exchange for each token. */
  hiddenSize: number;
  /** Number of layers. */
  numHiddenLayers: number;
  /** Number of attention heads of a layer. */
  numAttentionHeads: number;
  /** Number of key and value heads. Default: numAttentionHeads. */
  numKeyValueHeads?: number | undefined;
  /** Width of the feed-forward layer. Default: 8/3 of hiddenSize, rounded up to a multiple of 8; gpt2: 4 times hiddenSize. */
  intermediateSize?: number | undefined;
  /** Size of one head. Default: hiddenSize / numAttentionHeads. */
  headDim?: number | undefined;
  /** Maximum sequence length. Default: 256. */
  maxPositionEmbeddings?: number | undefined;
  /** Constant added to the variance in the norms. Default: 1e-5. */
  normEps?: number | undefined;
  /** Base of the rotary position embedding; not for gpt2. Default: 10000. */
  ropeTheta?: number | undefined;
  /** Shares the matrix of the token embedding with the output layer; always so in gpt2. Default: true. */
  tieWordEmbeddings?: boolean | undefined;
  /** Standard deviation of the initial weights. Default: 0.02. */
  initializerRange?: number | undefined;
}

/** A new model of any family that opens. */
export interface ModelOfConfig {
  /** A Hugging Face config.json, parsed. The tokenizer determines `vocab_size`. */
  config: object;
}

const SHAPE = {
  architecture: oneOf('llama', 'qwen2', 'qwen3', 'gpt2'),
  hiddenSize: positiveInteger,
  numHiddenLayers: positiveInteger,
  numAttentionHeads: positiveInteger,
  numKeyValueHeads: positiveInteger,
  intermediateSize: positiveInteger,
  headDim: positiveInteger,
  maxPositionEmbeddings: positiveInteger,
  normEps: positive,
  ropeTheta: positive,
  tieWordEmbeddings: boolean,
  initializerRange: positive,
};

/** GPT-2's names of the keys; a key that is missing here does not exist in GPT-2. */
const GPT2_NAMES: Record<string, string | undefined> = {
  hidden_size: 'n_embd',
  num_hidden_layers: 'n_layer',
  num_attention_heads: 'n_head',
  max_position_embeddings: 'n_positions',
  intermediate_size: 'n_inner',
  norm_eps: 'layer_norm_epsilon',
  initializer_range: 'initializer_range',
};

/** The config.json that was given. */
function givenConfig(shape: ModelOfConfig): Values {
  const { config, ...others } = ownFields(shape);
  const [other] = Object.keys(others);
  if (other !== undefined) throw badOption(`shape.${other}`, 'config alone', other);
  objectOf(config, 'shape.config');
  try {
    return JSON.parse(JSON.stringify(config)) as Values;
  } catch (error) {
    throw badOption('shape.config', 'a parsed config.json', error);
  }
}

/** @internal Returns the model's config.json; its `vocab_size` follows from the tokenizer. */
export function modelConfig(shape: ModelShape | ModelOfConfig): Values {
  if (Object.hasOwn(objectOf(shape, 'shape'), 'config')) return givenConfig(shape as ModelOfConfig);
  return shapeConfig(shape as ModelShape);
}

function shapeConfig(shape: ModelShape): Values {
  const { architecture = 'llama', ...given } = translate(shape, SHAPE, 'shape');
  const { hiddenSize, numHiddenLayers, numAttentionHeads, headDim } = ownFields(shape);
  for (const [key, value] of Object.entries({ hiddenSize, numHiddenLayers, numAttentionHeads })) {
    if (value === undefined) throw badOption(`shape.${key}`, 'an integer >= 1', value);
  }
  if (headDim === undefined && hiddenSize % numAttentionHeads !== 0) {
    throw badOption(
      'shape.hiddenSize',
      `a multiple of numAttentionHeads ${numAttentionHeads}`,
      hiddenSize,
    );
  }
  const shared = { max_position_embeddings: 256, norm_eps: 1e-5, initializer_range: 0.02 };
  if (architecture === 'gpt2') {
    const entries = Object.entries({ ...shared, intermediate_size: 4 * hiddenSize, ...given }).map(
      ([key, value]) => {
        const name = GPT2_NAMES[key];
        if (name === undefined) throw badOption(`shape.${key}`, 'a key that gpt2 has', value);
        return [name, value] as const;
      },
    );
    return { model_type: 'gpt2', activation_function: 'gelu_new', ...Object.fromEntries(entries) };
  }
  const { norm_eps, ...rest } = {
    ...shared,
    num_key_value_heads: numAttentionHeads,
    intermediate_size: Math.ceil((hiddenSize * 8) / 3 / 8) * 8,
    head_dim: hiddenSize / numAttentionHeads,
    rope_theta: 10000,
    tie_word_embeddings: true,
    ...given,
  };
  return { model_type: architecture, hidden_act: 'silu', rms_norm_eps: norm_eps, ...rest };
}
