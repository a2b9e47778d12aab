// Our page: the public API on a safetensors file that is made in memory. With ?probe its worker counts dispatches and buffers.
import { openModel, Trainer } from '../../../dist/index.js';
import { publish } from './contract.mjs';

const NAMES = {
  n1: 'input_layernorm',
  n2: 'post_attention_layernorm',
  wq: 'self_attn.q_proj',
  wk: 'self_attn.k_proj',
  wv: 'self_attn.v_proj',
  wo: 'self_attn.o_proj',
  wg: 'mlp.gate_proj',
  wu: 'mlp.up_proj',
  wd: 'mlp.down_proj',
};

function hfName(name) {
  if (name === 'emb') return 'model.embed_tokens.weight';
  if (name === 'norm') return 'model.norm.weight';
  const [layer, part] = name.split('.');
  return `model.layers.${layer.slice(1)}.${NAMES[part]}.weight`;
}

/** Transposes a matrix: those of the specification are [in, out], those of a linear layer [out, in]. */
function transposed(data, [rows, columns]) {
  const out = new Float32Array(data.length);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) out[c * rows + r] = data[r * columns + c];
  return out;
}

function safetensors(weights) {
  const header = {};
  const parts = [];
  let at = 0;
  for (const { name, shape, data } of weights) {
    const turn = shape.length === 2 && name !== 'emb';
    header[hfName(name)] = {
      dtype: 'F32',
      shape: turn ? shape.toReversed() : shape,
      data_offsets: [at, (at += data.byteLength)],
    };
    parts.push(turn ? transposed(data, shape) : data);
  }
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  return new File([new BigUint64Array([BigInt(head.length)]), head, ...parts], 'model.safetensors');
}

function config(spec, size) {
  const { d, layers, heads, ffn, vocab, T } = spec.SIZES[size];
  const shape = {
    hidden_size: d,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    intermediate_size: ffn,
    vocab_size: vocab,
    max_position_embeddings: T,
  };
  return new File(
    [
      JSON.stringify({
        model_type: 'llama',
        hidden_act: 'silu',
        tie_word_embeddings: true,
        rms_norm_eps: spec.NORM_EPS,
        rope_theta: spec.ROPE_BASE,
        ...shape,
      }),
    ],
    'config.json',
  );
}

const probed = new URLSearchParams(location.search).has('probe');
const worker =
  probed && (() => new Worker(new URL('../probe-worker.mjs', import.meta.url), { type: 'module' }));

publish(async (spec, size, tokens) => {
  const { T, B } = spec.SIZES[size];
  const { lr, beta1, beta2, eps, weightDecay } = spec.OPT;
  const model = await openModel(
    [safetensors(spec.initWeights(size)), config(spec, size)],
    worker ? { worker } : {},
  );
  const params = model.info.parameters;
  const trainer = await Trainer.create({
    model,
    data: { tokens: Uint32Array.from(tokens) },
    dataOrder: 'sequential',
    keepData: false,
    steps: 1_000_000,
    batchSize: B,
    seqLen: T,
    learningRate: lr,
    maxGradNorm: 0,
    optimizer: { type: 'adamw', beta1, beta2, eps, weightDecay },
    groups: [{ pattern: '*norm*', weightDecay: 0 }, { pattern: '*' }],
  });
  globalThis.__trainer = trainer;
  const train = async (_first, count) => (await trainer.step(count)).map((step) => step.loss);
  return { params, sameInit: true, train };
});
