// Wasm memory stays small whatever the model: a tensor much larger than the bound is opened, trained, saved, exported, imported, resumed.
import { TINY } from './arena.mjs';

/** Adds to the page a model of one large tensor, its table of letters, and small ones; made of blocks of noise. */
export async function largeModel(s, { megabytes }) {
  const hidden = 256;
  const vocab = (megabytes << 20) / 4 / hidden;
  const config = {
    architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_size: hidden, intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 4,
    num_key_value_heads: 4, max_position_embeddings: 16, rms_norm_eps: 1e-5, rope_theta: 10000, hidden_act: 'silu', tie_word_embeddings: true, vocab_size: vocab, torch_dtype: 'float32',
  };
  const block = 'model.layers.0.';
  const shapes = [
    ['model.embed_tokens.weight', [vocab, hidden]], ['model.norm.weight', [hidden]], [`${block}input_layernorm.weight`, [hidden]], [`${block}post_attention_layernorm.weight`, [hidden]],
    ...['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) => [`${block}self_attn.${name}.weight`, [hidden, hidden]]),
    [`${block}mlp.gate_proj.weight`, [16, hidden]], [`${block}mlp.up_proj.weight`, [16, hidden]], [`${block}mlp.down_proj.weight`, [hidden, 16]],
  ];
  const header = {};
  let at = 0;
  for (const [name, shape] of shapes) {
    const bytes = 4 * shape.reduce((a, b) => a * b);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + bytes] };
    at += bytes;
  }
  const words = new Float32Array(1 << 18);
  for (let i = 0; i < words.length; i++) words[i] = 0.04 * (((Math.imul(i + 1, 2654435761) >>> 8) & 0xffff) / 65536 - 0.5);
  const noise = new Blob([words]);
  const json = new TextEncoder().encode(JSON.stringify(header));
  const front = new DataView(new ArrayBuffer(8));
  front.setBigUint64(0, BigInt(json.byteLength), true);
  const parts = [front.buffer, json];
  for (let left = at; left > 0; left -= noise.size) parts.push(left >= noise.size ? noise : noise.slice(0, left));
  return [new File(parts, 'model.safetensors'), new File([JSON.stringify(config)], 'config.json')];
}

export async function heap(arena, tally, { megabytes, bound, optimizer }) {
  await arena.with(async (subject) => {
    const found = await subject.do(
      `async (s, { megabytes, options }) => {
        const grown = [];
        const rates = {};
        const note = async (call, ms, bytes) => {
          const { wasm, wasmAtStart, reads, hashed, stored } = await s.tell('counts');
          grown.push([call, wasm - wasmAtStart, Math.round(ms), reads]);
          if (bytes) rates[call] = [bytes / 1e6 / (ms / 1000), hashed, stored];
          await s.tell('reset');
        };
        const timed = async (call, work, bytes) => {
          const from = performance.now();
          const result = await work();
          await note(call, performance.now() - from, bytes?.(result));
          return result;
        };
        const files = await (${largeModel})(s, { megabytes });
        const tokens = Uint32Array.from({ length: 64 }, (_, i) => (i * 7919) % 1000);
        const model = await timed('open', () => s.tabtune.openModel(files, { worker: s.workers() }));
        const trainer = await timed('create', () => s.tabtune.Trainer.create({ model, data: { tokens }, ...options }));
        s.adopt(trainer);
        await timed('step', () => trainer.step(1));
        const saved = await timed('save', () => trainer.save(), ({ bytes }) => bytes);
        await timed('export', () => trainer.exportFiles());
        const { blob } = await timed('export of the checkpoint', () => trainer.checkpoints.exportFile());
        const [next] = (await trainer.step(1)).map(({ loss }) => loss);
        const run = trainer.runId;
        await trainer.dispose();
        await timed('resume', () => s.resume({ run }), () => saved.bytes);
        const [again] = await s.step(1);
        const imported = await timed('import', () => s.current().checkpoints.importFile(blob), () => saved.bytes);
        await s.current().dispose();
        const runs = await s.runs();
        await runs.remove(imported.run);
        await runs.remove(run);
        return { grown, rates, next, again, bytes: saved.bytes };
      }`,
      { megabytes, options: { ...TINY.options, validationFraction: 0, gradientAccumulationSteps: 1, optimizer } },
    );
    for (const [call, growth, ms, reads] of found.grown) {
      const wrong = growth > bound * 2 ** 20 ? [`wasm memory grew by ${(growth / 2 ** 20).toFixed(1)} MiB, bound ${bound} MiB`] : [];
      if (call === 'resume' && found.next !== found.again) wrong.push('the resumed run is another');
      tally.add(`wasm memory: ${call}`, wrong, ms);
      tally.note(`wasm memory: ${call}`, `+${(growth / 2 ** 20).toFixed(1)} MiB with a tensor of ${megabytes} MiB, largest read ${(reads / 2 ** 20).toFixed(1)} MiB`);
    }
    const [rate, hashed, stored] = found.rates.save;
    const perByte = hashed / stored;
    tally.add('bytes hashed per saved byte', perByte > 1.01 + (8 << 20) / stored || perByte < 0.99 ? [`${perByte.toFixed(3)}`] : []);
    tally.note('bytes hashed per saved byte', `${perByte.toFixed(2)}; save ${rate.toFixed(0)} MB/s, resume ${found.rates.resume[0].toFixed(0)} MB/s, ${found.bytes} bytes`);
  });
}
