import { describe, expect, it } from 'vitest';

import { modelConfig } from '../src/page/fresh-model.js';

describe('model shape', () => {
  it('fills_what_follows_from_the_rest', () => {
    expect(
      modelConfig({ hiddenSize: 128, numHiddenLayers: 4, numAttentionHeads: 4 }),
    ).toMatchObject({
      head_dim: 32,
      intermediate_size: 344,
      num_key_value_heads: 4,
      model_type: 'llama',
      rms_norm_eps: 1e-5,
    });
  });
  it('gpt2_has_its_own_keys', () => {
    const sizes = { hiddenSize: 64, numHiddenLayers: 2, numAttentionHeads: 2 };
    expect(modelConfig({ architecture: 'gpt2', ...sizes })).toEqual({
      model_type: 'gpt2',
      activation_function: 'gelu_new',
      n_embd: 64,
      n_layer: 2,
      n_head: 2,
      n_inner: 256,
      n_positions: 256,
      layer_norm_epsilon: 1e-5,
      initializer_range: 0.02,
    });
    expect(() =>
      modelConfig({
        architecture: 'gpt2',
        hiddenSize: 64,
        numHiddenLayers: 2,
        numAttentionHeads: 2,
        ropeTheta: 1,
      }),
    ).toThrow('rope_theta');
  });
  it('refuses_heads_that_do_not_divide', () => {
    expect(() =>
      modelConfig({ hiddenSize: 100, numHiddenLayers: 1, numAttentionHeads: 3 }),
    ).toThrow('multiple of numAttentionHeads');
  });
});
