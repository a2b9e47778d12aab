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
  it('takes_a_config_of_any_family', () => {
    const config = { model_type: 'gemma3_text', hidden_size: 64, rope_scaling: null };
    const taken = modelConfig({ config });
    expect(taken).toEqual(config);
    expect(taken).not.toBe(config);
    const wrong = (shape: unknown) => () =>
      modelConfig(shape as { config: Record<string, unknown> });
    expect(wrong({ config, hiddenSize: 64 })).toThrow('shape.hiddenSize');
    expect(wrong({ config: 'config.json' })).toThrow('shape.config');
    expect(wrong({ config: { vocab_size: 1n } })).toThrow('shape.config');
    expect(wrong(null)).toThrow('shape');
  });
  it('refuses_heads_that_do_not_divide', () => {
    expect(() =>
      modelConfig({ hiddenSize: 100, numHiddenLayers: 1, numAttentionHeads: 3 }),
    ).toThrow('multiple of numAttentionHeads');
  });
});
