// Deltas, plans and single tensors in a real browser: the same bytes as natively (tests/suite/cli/deltas.rs), and no byte of a file that is not needed.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const GOLDEN = JSON.parse(readFileSync(join(root, 'tests', 'golden', 'deltas.json'), 'utf8'));
const PIECE = 64 << 10;
const folder = mkdtempSync(join(tmpdir(), 'tabtune-sparse-'));
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { at, inPage } = scenarios({ folders: { '/golden/': 'tests/golden', '/sparse/': folder } });

test('a delta leads from base to target and back in every form, with the bytes that it has natively', async () => {
  const found = await inPage(async (s, { forms, json, step, flip }) => {
    const hex = (bytes) =>
      [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    const bytesOf = async (file) => new Uint8Array(await file.arrayBuffer());
    const same = async (a, b) => {
      const [left, right] = [await bytesOf(a), await bytesOf(b)];
      return left.length === right.length && left.every((byte, at) => byte === right[at]);
    };
    const isReceipt = ({ name }) => name === 'tabtune.receipt.json';
    const bothWays = async (base, target) => {
      const { files, report } = await s.tabtune.deriveDelta(base, target);
      const delta = new File([files[0].blob], files[0].name);
      const ways = {};
      for (const [way, model, result] of [
        ['applyDelta', base, target],
        ['removeDelta', target, base],
      ]) {
        const used = await s.tabtune[way](model, delta);
        const weights = used.files.filter((file) => !isReceipt(file));
        const equal = await Promise.all(
          // A JSON state dict keeps the name of the model it was made of.
          weights.map(({ name, blob }) =>
            same(blob, result.find((file) => file.name === name) ?? result[0]),
          ),
        );
        const { ok } = await s.tabtune.verifyFiles(s.filesOf(used.files));
        ways[way] = [equal.length, equal.every(Boolean), ok];
        ways.report = JSON.stringify(used.report) === JSON.stringify(report);
      }
      const wrong = await s.failure(s.tabtune.applyDelta(target, delta));
      const sum = hex(await crypto.subtle.digest('SHA-256', await bytesOf(delta)));
      return { sum, ...ways, wrong: wrong.word, changed: report.changed.length };
    };
    const all = {};
    for (const [form, { files, changed, spans }] of Object.entries(forms)) {
      /** @type {File[][]} */
      const [base, target] = [[], []];
      for (const path of files) {
        const bytes = await bytesOf(await (await fetch(`/golden/${path}`)).blob());
        const name = path.split('/').pop();
        base.push(new File([bytes], name));
        if (path === changed)
          for (const [begin, end] of spans)
            for (let place = begin; place < end; place += step) bytes[place] ^= flip;
        else if (form === 'checkpoint') continue;
        target.push(new File([bytes], name));
      }
      all[form] = await bothWays(base, target);
    }
    const document = (text, name) => [new File([text], `${name}.state_dict.json`)];
    all.json = await bothWays(document(json.base, 'base'), document(json.target, 'target'));
    return all;
  }, GOLDEN);
  const forms = { ...GOLDEN.forms, json: GOLDEN.json };
  const expected = Object.entries(forms).map(([form, { delta, spans }]) => {
    const files = form === 'parts' ? 3 : 1;
    return [
      form,
      {
        sum: delta,
        applyDelta: [files, true, true],
        removeDelta: [files, true, true],
        report: true,
        wrong: 'delta.base.mismatch',
        changed: spans?.length ?? 1,
      },
    ];
  });
  assert.deepEqual(found, Object.fromEntries(expected));
});

test('a delta is written to a stream, and refused where the models differ', async () => {
  const found = await inPage(async (s) => {
    const fetched = async (path) => (await fetch(`/golden/models/${path}`)).blob();
    const model = new File([await fetched('llama3/model.safetensors')], 'model.safetensors');
    const other = new File([await fetched('gpt2/model.safetensors')], 'model.safetensors');
    const pieces = [];
    const to = new WritableStream({ write: (piece) => void pieces.push(piece) });
    const { files, receipt } = await s.tabtune.deriveDelta(model, model, { to, name: 'none' });
    const { report } = await s.tabtune.deriveDelta(model, model, { name: 'none' });
    return {
      written: pieces.length > 0,
      files,
      operation: receipt?.operation,
      report: [report.name, report.changed, report.baseWeights === report.targetWeights],
      differ: (await s.failure(s.tabtune.deriveDelta(model, other))).word,
      none: (await s.failure(s.tabtune.applyDelta(model, model))).word,
    };
  });
  assert.deepEqual(found, {
    written: true,
    files: [],
    operation: 'derive',
    report: ['none', [], true],
    differ: 'delta.keys.differ',
    none: 'format.unsupported',
  });
});

/** Writes a Llama of more than 20 GB, whose weights take no room on disk; returns the span of one of its tensors. */
function writeSparse() {
  const [hidden, inner, rows, layers] = [4096, 11008, 128256, 24];
  const config = {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    hidden_act: 'silu',
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: true,
    vocab_size: rows,
  };
  const shapes = { 'model.embed_tokens.weight': [rows, hidden], 'model.norm.weight': [hidden] };
  for (let layer = 0; layer < layers; layer += 1) {
    const part = `model.layers.${layer}`;
    for (const name of ['q', 'k', 'v', 'o'])
      shapes[`${part}.self_attn.${name}_proj.weight`] = [hidden, hidden];
    for (const name of ['gate', 'up']) shapes[`${part}.mlp.${name}_proj.weight`] = [inner, hidden];
    shapes[`${part}.mlp.down_proj.weight`] = [hidden, inner];
    for (const name of ['input', 'post_attention'])
      shapes[`${part}.${name}_layernorm.weight`] = [hidden];
  }
  const header = {};
  let end = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const begin = end;
    end += 4 * shape.reduce((product, length) => product * length, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text]));
  truncateSync(join(folder, 'model.safetensors'), 8 + text.length + end);
  return { tensors: Object.keys(shapes).length, bytes: end };
}

test('a plan of 20 GB reads less than 1 MB, and a tensor its bytes and no others', async () => {
  const { tensors, bytes } = writeSparse();
  assert.ok(bytes > 20e9);
  const read = () => at.site.ranges.splice(0).reduce((sum, [, , count]) => sum + count, 0);
  const files = ['config.json', 'model.safetensors'];
  const inspected = await inPage(async (s, names) => {
    const urls = names.map((name) => new URL(`/sparse/${name}`, location.href));
    const { plan, refusals } = await s.tabtune.inspectFiles(urls, { plan: true });
    const alone = await s.failure(s.tabtune.inspectFiles(urls, { names: 'hf' }));
    return { plan, refusals, without: alone.path };
  }, files);
  const { refusals, without } = inspected;
  const plan = inspected.plan ?? assert.fail('no plan');
  const ofPlan = read();
  assert.ok(ofPlan < 1e6, `${ofPlan} bytes`);
  assert.deepEqual(refusals, []);
  assert.equal(without, 'names');
  assert.equal(plan.sourceFormat, 'hf_folder');
  assert.match(plan.planDigest, /^[0-9a-f]{64}$/);
  assert.equal(plan.entries.length, tensors);
  assert.ok(plan.entries.every(({ deferred }) => deferred));
  const name = 'model.layers.7.self_attn.q_proj.weight';
  const { begin, end } = plan.entries.find((entry) => entry.name === name) ?? assert.fail(name);
  const found = await inPage(
    async (s, { names, name }) => {
      const urls = names.map((each) => new URL(`/sparse/${each}`, location.href));
      const request = { keyRemap: { sourceToTarget: { [name]: 'q' } } };
      const { bytes, ...tensor } = await s.tabtune.readTensor(urls, 'q', { request });
      const unknown = await s.failure(s.tabtune.readTensor(urls, 'none'));
      return { tensor, bytes: bytes.byteLength, unknown: unknown.word };
    },
    { names: files, name },
  );
  assert.deepEqual(found, {
    tensor: { name: 'q', dtype: 'F32', shape: [4096, 4096] },
    bytes: end - begin,
    unknown: 'plan.tensor.unknown',
  });
  // Whole pieces, and the headers of two calls.
  const ofTensor = read();
  assert.ok(ofTensor <= end - begin + 2 * PIECE + 2 * ofPlan, `${ofTensor} bytes`);
});
