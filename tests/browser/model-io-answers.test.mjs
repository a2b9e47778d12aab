// The package's statements about files in a real browser are true: digests of known examples, and every format in which a model is offered.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY } from '../torture/arena.mjs';
import { makeModels } from '../torture/make-models.mjs';

const VECTORS = JSON.parse(readFileSync(join(root, 'tests', 'golden', 'digests.json'), 'utf8'));
const DOCUMENTS = [
  'config.json',
  'generation_config.json',
  'model.safetensors',
  'tokenizer.json',
  'tokenizer_config.json',
];
const FOLDER = ['config.json', 'model.safetensors'];
const PARTS = [1, 2, 3].map((part) => `qwen3-0000${part}-of-00003.gguf`);

let made;

const arena = Arena.ofTests(() => {
  made = mkdtempSync(join(tmpdir(), 'tabtune-answers-'));
  makeModels(made);
  return {
    folders: {
      '/models/': 'tests/golden/models',
      '/adapters/': 'tests/golden/adapters',
      '/made/': made,
    },
  };
});
test.afterAll(() => rmSync(made, { recursive: true, force: true }));

/** Returns a JSON state dict of recorded tensors, with groups if there are any, that states these digests. */
function stateDict(tensors, groups, digests) {
  const entries = tensors.map(({ name, dtype, shape, bytes_hex: hex }) => [
    name,
    { dtype, shape, data: Buffer.from(hex, 'hex').toString('base64') },
  ]);
  const record = ({ name, dtype, shape }) => {
    const [parameter, word] = name.split(':');
    const path = groups.find(({ members }) =>
      members.some((member) => member.parameter === parameter),
    ).model_tree_path;
    return [
      name,
      {
        path: word ? [...path, word] : path,
        role: word ? `state:${word}` : 'parameter',
        dtype,
        shape,
        file: 'state_dict',
      },
    ];
  };
  const identity = {
    model_family: 'small',
    revision: 'r1',
    checkpoint_family: 'tabtune.train',
    checkpoint_ref: 'step-7',
  };
  const manifest = groups && {
    format: 'tabtune.manifest',
    version: 1,
    identity,
    tensors: Object.fromEntries(tensors.map(record)),
    groups,
  };
  return JSON.stringify({
    format: 'tabtune.torch_state_dict_json',
    version: 1,
    encoding: 'base64',
    manifest,
    digests,
    state_dict: Object.fromEntries(entries),
  });
}

/** Returns a safetensors file of recorded tensors. */
function safetensors(tensors) {
  const header = {};
  let end = 0;
  for (const { name, dtype, shape, bytes_hex: hex } of tensors)
    header[name] = { dtype, shape, data_offsets: [end, (end += hex.length / 2)] };
  const text = JSON.stringify(header);
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(Math.ceil(text.length / 8) * 8));
  return Buffer.concat([
    front,
    Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8)),
    ...tensors.map(({ bytes_hex: hex }) => Buffer.from(hex, 'hex')),
  ]);
}

const sorted = (value) => {
  if (Array.isArray(value) || typeof value !== 'object' || value === null)
    return Array.isArray(value) ? value.map(sorted) : value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
};

/** Returns a receipt that states that these files were written and have these digests, with its own digest (crate/FORMATS.md, "Digests"). */
function receipt(files, digests) {
  const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');
  const outputs = Object.entries(files).map(([name, bytes]) => ({
    role: name.startsWith('optimizer') ? 'optimizer' : 'weights',
    name,
    format: 'safetensors',
    bytes: bytes.length,
    sha256: sum(bytes),
  }));
  const document = {
    version: 1,
    operation: 'export',
    tool: { name: 'tabtune', version: '0.1.0' },
    inputs: [],
    outputs,
    digests,
    tensors: { admitted: [], dropped: [], renamed: [], converted: [] },
    groups: { admitted: [], dropped: [] },
    conversions: [],
    checks: [],
    warnings: [],
  };
  const long = (text) => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    return Buffer.concat([length, Buffer.from(text)]);
  };
  return {
    ...document,
    receipt_digest: sum(
      Buffer.concat([
        Buffer.from([10]),
        long('tabtune/receipt/1'),
        long(JSON.stringify(sorted(document))),
      ]),
    ),
  };
}

test('digests_of_the_examples_are_recomputed__line_26', async () => {
  const { vector1, vector2 } = VECTORS;
  const all = [...vector2.parameters, ...vector2.state];
  const stated = (vector) =>
    Object.fromEntries(
      ['weights', 'optimizer', 'assignment', 'state'].map((name) => [
        name,
        vector[`${name}_digest`],
      ]),
    );
  const other = (digest) => digest.replace(/^./, (first) => (first === '0' ? '1' : '0'));
  const documents = {
    first: stateDict(vector1.tensors, undefined, { weights: vector1.weights_digest }),
    second: stateDict(all, vector2.groups, stated(vector2)),
  };
  for (const name of ['weights', 'optimizer', 'assignment', 'state'])
    documents[name] = stateDict(all, vector2.groups, {
      ...stated(vector2),
      [name]: other(stated(vector2)[name]),
    });
  const files = {
    'model.safetensors': safetensors(vector2.parameters),
    'optimizer.safetensors': safetensors(vector2.state),
  };
  const { weights, optimizer } = stated(vector2);
  const receipts = [
    receipt(files, { weights, optimizer }),
    receipt(files, { weights, optimizer: other(optimizer) }),
    { ...receipt(files, { weights, optimizer }), warnings: [{ code: 'a.b', subject: '' }] },
  ];
  const { told, verified } = await arena.with((subject) =>
    subject.do(
      async (s, { documents, files, receipts }) => {
        const given = Object.entries(documents).map(
          ([name, text]) => new File([text], `${name}.state_dict.json`),
        );
        const reports = await Promise.all(given.map((file) => s.tabtune.inspectFiles(file)));
        const told = Object.fromEntries(
          reports.map(({ files: [{ ok, code, subject }] }, index) => [
            Object.keys(documents)[index],
            ok ? 'ok' : `${code} ${subject}`,
          ]),
        );
        const written = Object.entries(files).map(
          ([name, hex]) =>
            new File(
              [Uint8Array.from(hex.match(/../g), (byte) => Number.parseInt(byte, 16))],
              name,
            ),
        );
        const verified = [];
        for (const receipt of receipts) {
          const { ok, checks } = await s.tabtune.verifyFiles(written, receipt);
          verified.push([ok, Object.fromEntries(checks.map(({ name, result }) => [name, result]))]);
        }
        return { told, verified };
      },
      {
        documents,
        files: Object.fromEntries(
          Object.entries(files).map(([name, bytes]) => [name, bytes.toString('hex')]),
        ),
        receipts,
      },
    ),
  );
  const mismatch = (name) => [name, `digest.mismatch ${name}`];
  assert.deepEqual(told, {
    first: 'ok',
    second: 'ok',
    ...Object.fromEntries(['weights', 'optimizer', 'assignment', 'state'].map(mismatch)),
  });
  const sound = {
    receipt_digest: 'verified',
    'output:model.safetensors': 'verified',
    'output:optimizer.safetensors': 'verified',
    weights: 'verified',
    optimizer: 'verified',
  };
  assert.deepEqual(verified, [
    [true, sound],
    [false, { ...sound, optimizer: 'differs' }],
    [false, { ...sound, receipt_digest: 'differs' }],
  ]);
});

test('what_is_offered_is_what_exports_make__line_45', async () => {
  const found = await arena.with((subject) =>
    subject.do(
      async (s, { documents, folder, parts, setting }) => {
        const e = await import('/torture/exports.mjs');
        const answers = {};
        /** @param {string} what @param {File[]} files @param {{ base?: File[], mergeAdapter?: File[] }} more */
        const tried = async (what, files, { base, ...options } = {}) => {
          answers[what] = await e.withModel(
            files,
            async (model) => ({
              ...(await e.offered(model, model, base)),
              warnings: model.warnings.length,
            }),
            options,
          );
        };
        const qwen2 = await e.fetched('/models/qwen2', folder);
        const replaced = (name, text) => [
          ...qwen2.filter((file) => file.name !== name),
          new File([text], name),
        ];
        const config = JSON.parse(await qwen2[0].text());
        const split = await e.fetched('/models', parts);
        await tried('dense', await e.fetched('/made/qwen3', documents));
        await tried('blocks', [
          await e.withModel(await e.fetched('/made/llama-tied', documents), (model) =>
            e.exportedAs('m.gguf', model, { format: 'gguf', type: 'q8_0' }),
          ),
        ]);
        // More rows in the table than the configuration states.
        await tried(
          'padded',
          replaced('config.json', JSON.stringify({ ...config, vocab_size: config.vocab_size - 1 })),
        );
        await tried('tied', await e.fetched('/made/gpt2', documents));
        await tried('unknown tokenizer', replaced('tokenizer.json', '{}'));
        await tried('adapter merged', qwen2, {
          mergeAdapter: await e.fetched('/adapters/qwen2-patterns', [
            'adapter_config.json',
            'adapter_model.safetensors',
          ]),
        });
        await tried('split', split, { base: split });
        await s.create(setting);
        await s.step(1);
        const trained = {
          ...(await e.offered(s.current(), await s.current().details())),
          warnings: 0,
        };
        const characters = await e.folderOf(s.current());
        await s.current().dispose();
        await tried('character', characters);
        return {
          answers: { ...answers, trained },
          answered: (await s.tabtune.inspectFiles(qwen2)).exports.length,
        };
      },
      { documents: DOCUMENTS, folder: FOLDER, parts: PARTS, setting: TINY },
    ),
  );
  for (const [what, { wrong, choices }] of Object.entries(found.answers)) {
    assert.deepEqual(wrong, [], what);
    assert.equal(choices, what === 'blocks' ? 15 : 14, `${what}: two formats and twelve types`);
  }
  assert.equal(Object.keys(found.answers).length, 9);
  assert.equal(found.answered, 14, 'inspected without being opened');
});
