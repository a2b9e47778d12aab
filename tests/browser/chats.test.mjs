// Chat templates of each kind in a real browser: the learned parts of a row. The table is that of the Rust tests.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios();
const golden = (name) =>
  JSON.parse(readFileSync(join(root, 'tests', 'golden', `${name}.json`), 'utf8'));
const HIDDEN = 8;

/** Returns the files of a model of zeros with a small vocabulary of bytes: name → base64. */
function modelFiles() {
  const { document } = golden('joints').tokenizers.byte_level;
  const vocabulary = Object.keys(document.model.vocab).length;
  const square = [HIDDEN, HIDDEN];
  const layer = { input_layernorm: [HIDDEN], post_attention_layernorm: [HIDDEN] };
  for (const name of ['q', 'k', 'v', 'o']) layer[`self_attn.${name}_proj`] = square;
  for (const name of ['gate', 'up', 'down']) layer[`mlp.${name}_proj`] = square;
  const shapes = {
    'model.embed_tokens.weight': [vocabulary, HIDDEN],
    'model.norm.weight': [HIDDEN],
  };
  for (const [name, shape] of Object.entries(layer))
    shapes[`model.layers.0.${name}.weight`] = shape;
  const header = {};
  let length = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const end = length + 2 * shape.reduce((product, side) => product * side, 1);
    header[name] = { dtype: 'BF16', shape, data_offsets: [length, end] };
    length = end;
  }
  const front = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(front.length));
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_act: 'silu',
    hidden_size: HIDDEN,
    intermediate_size: HIDDEN,
    head_dim: 4,
  };
  Object.assign(config, {
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
  });
  Object.assign(config, {
    rope_theta: 10000,
    vocab_size: vocabulary,
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
  });
  const texts = {
    'config.json': config,
    'tokenizer.json': document,
    'tokenizer_config.json': { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' },
  };
  const encoded = Object.entries(texts).map(([name, value]) => [
    name,
    Buffer.from(JSON.stringify(value)).toString('base64'),
  ]);
  const weights = Buffer.concat([size, front, Buffer.alloc(length)]);
  return [...encoded, ['model.safetensors', weights.toString('base64')]];
}

test('each kind of template teaches the answers', async () => {
  const cases = golden('template-kinds');
  const found = await inPage(
    async ({ tabtune, bytesOf }, { files, cases }) => {
      const found = [];
      for (const { template, row } of cases) {
        const model = await tabtune.openModel([
          ...files.map(([name, text]) => new File([bytesOf(text)], name)),
          new File([template], 'chat_template.jinja'),
        ]);
        const data = { text: JSON.stringify(row), name: 'rows.jsonl' };
        const options = /** @type {const} */ ({ show: 8, seqLen: 1024, dataOrder: 'sequential' });
        const { report, preview } = await tabtune.inspectData(data, { model, ...options });
        const learned = preview.map(({ segments }) =>
          segments.filter((segment) => segment.learned).map(({ text }) => text),
        );
        found.push({ rules: report.rules, begins: preview[0].segments[0].text, learned });
        await model.dispose();
      }
      return found;
    },
    { files: modelFiles(), cases },
  );
  for (const [at, { name, rule, learned, begins }] of cases.entries()) {
    assert.deepEqual([found[at].learned, found[at].rules], [learned, { [rule]: 1 }], name);
    if (begins) assert.ok(found[at].begins.startsWith(begins), found[at].begins);
  }
});
