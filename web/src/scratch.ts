/** The shape of a model trained from scratch, under Hugging Face's names in camelCase. */
import { among, positive, positiveInteger, translate, truth } from './checks.js';
import { badOption } from './errors.js';

export interface ModelShape {
  /** 'llama' */
  architecture?: 'llama' | 'gpt2';
  hiddenSize: number;
  numHiddenLayers: number;
  numAttentionHeads: number;
  /** numAttentionHeads */
  numKeyValueHeads?: number;
  /** llama: 8/3 of hiddenSize, rounded up to a multiple of 8; gpt2: 4 times hiddenSize */
  intermediateSize?: number;
  /** hiddenSize / numAttentionHeads */
  headDim?: number;
  /** Longest sequence. 256 */
  maxPositionEmbeddings?: number;
  /** 1e-5 */
  normEps?: number;
  /** 10000 */
  ropeTheta?: number;
  /** true */
  tieWordEmbeddings?: boolean;
  /** false */
  attentionBias?: boolean;
  /** false */
  qkNorm?: boolean;
  /** Standard deviation of the first weights. 0.02 */
  initializerRange?: number;
}

const SHAPE = {
  architecture: among('llama', 'gpt2'),
  hiddenSize: positiveInteger,
  numHiddenLayers: positiveInteger,
  numAttentionHeads: positiveInteger,
  numKeyValueHeads: positiveInteger,
  intermediateSize: positiveInteger,
  headDim: positiveInteger,
  maxPositionEmbeddings: positiveInteger,
  normEps: positive,
  ropeTheta: positive,
  tieWordEmbeddings: truth,
  attentionBias: truth,
  qkNorm: truth,
  initializerRange: positive,
};

/** `ModelConfig` as JSON without `vocab_size`, which is the tokenizer's. */
export function modelJson(shape: ModelShape): string {
  const given = translate(shape, SHAPE, 'shape');
  const { architecture = 'llama', hiddenSize, numHiddenLayers, numAttentionHeads } = shape;
  for (const [key, value] of Object.entries({ hiddenSize, numHiddenLayers, numAttentionHeads })) {
    if (value === undefined) throw badOption(`shape.${key}`, 'an integer >= 1', value);
  }
  if (shape.headDim === undefined && hiddenSize % numAttentionHeads !== 0) {
    throw badOption('shape.hiddenSize', `a multiple of numAttentionHeads ${numAttentionHeads}`, hiddenSize);
  }
  const llama = architecture === 'llama';
  return JSON.stringify({
    architecture,
    model_type: architecture,
    num_key_value_heads: numAttentionHeads,
    intermediate_size: llama ? Math.ceil((hiddenSize * 8) / 3 / 8) * 8 : 4 * hiddenSize,
    head_dim: hiddenSize / numAttentionHeads,
    max_position_embeddings: 256,
    norm_eps: 1e-5,
    rope_theta: 10000,
    rope_scaling: { rope_type: 'default' },
    tie_word_embeddings: true,
    attention_bias: !llama,
    qk_norm: false,
    initializer_range: 0.02,
    ...given,
  });
}
