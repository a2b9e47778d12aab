// Runs in the page: files of Llamas of any size that take little space, and token ids for them.

/**
 * Sizes of a Llama.
 * @typedef {{ vocab: number, hidden: number, intermediate: number, layers: number, heads: number, kvHeads: number, tied?: boolean, towerBytes?: number }} Sizes
 */

/**
 * Returns the files of a Llama of these sizes without a tokenizer; its weights are repeated blocks of noise. `towerBytes` bytes of a tower that the
 * model does not use may precede them.
 * @param {Sizes} sizes
 */
export function modelFiles({
  vocab,
  hidden,
  intermediate,
  layers,
  heads,
  kvHeads,
  tied = true,
  towerBytes = 0,
}) {
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: hidden,
    intermediate_size: intermediate,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: 'silu',
    tie_word_embeddings: tied,
    vocab_size: vocab,
    torch_dtype: 'float32',
  };
  const rows = (hidden / heads) * kvHeads;
  /** @type {[string, number[]][]} */
  const shapes = [
    ['model.embed_tokens.weight', [vocab, hidden]],
    ['model.norm.weight', [hidden]],
  ];
  if (!tied) shapes.push(['lm_head.weight', [vocab, hidden]]);
  for (let layer = 0; layer < layers; layer++) {
    const of = (name, ...shape) => shapes.push([`model.layers.${layer}.${name}.weight`, shape]);
    of('input_layernorm', hidden);
    of('post_attention_layernorm', hidden);
    of('self_attn.q_proj', hidden, hidden);
    of('self_attn.k_proj', rows, hidden);
    of('self_attn.v_proj', rows, hidden);
    of('self_attn.o_proj', hidden, hidden);
    of('mlp.gate_proj', intermediate, hidden);
    of('mlp.up_proj', intermediate, hidden);
    of('mlp.down_proj', hidden, intermediate);
  }
  const header =
    towerBytes > 0
      ? {
          'vision_tower.weight': {
            dtype: 'U8',
            shape: [1000, towerBytes / 1000],
            data_offsets: [0, towerBytes],
          },
        }
      : {};
  let at = towerBytes;
  for (const [name, shape] of shapes) {
    const bytes = 4 * shape.reduce((a, b) => a * b);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + bytes] };
    at += bytes;
  }
  const words = new Float32Array(1 << 18);
  for (let i = 0; i < words.length; i++)
    words[i] = 0.04 * (((Math.imul(i + 1, 2654435761) >>> 8) & 0xffff) / 65536 - 0.5);
  const noise = new Blob([words]);
  const json = new TextEncoder().encode(JSON.stringify(header));
  const front = new DataView(new ArrayBuffer(8));
  front.setBigUint64(0, BigInt(json.byteLength), true);
  const parts = [front.buffer, json];
  // A Blob made of references to the same Blob takes only the space of that one.
  const repeat = (block, bytes) => {
    for (let left = bytes; left > 0; left -= block.size)
      parts.push(left >= block.size ? block : block.slice(0, left));
  };
  repeat(new Blob([new Uint8Array(64 << 20)]), towerBytes);
  repeat(noise, at - towerBytes);
  return [new File(parts, 'model.safetensors'), new File([JSON.stringify(config)], 'config.json')];
}

/** Returns token ids for a model without a tokenizer. */
export const someTokens = (count) =>
  Uint32Array.from({ length: count }, (_, i) => (i * 7919) % 1000);
