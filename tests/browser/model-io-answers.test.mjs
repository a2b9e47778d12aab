// The package's statements about files in a real browser are true: digests of known examples, and every format in which a model is offered.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY } from '../torture/arena.mjs';
import { makeModels } from '../torture/make-models.mjs';
import { receipt, recorded, stateDict } from './stated-digests.mjs';

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

test('line 26: digests of the examples are recomputed', async () => {
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
    'model.safetensors': recorded(vector2.parameters),
    'optimizer.safetensors': recorded(vector2.state),
  };
  const { weights, optimizer } = stated(vector2);
  const receipts = /** @type {import('tabtune').Receipt[]} */ ([
    receipt(files, { weights, optimizer }),
    receipt(files, { weights, optimizer: other(optimizer) }),
    { ...receipt(files, { weights, optimizer }), warnings: [{ code: 'a.b', subject: '' }] },
  ]);
  const { verdicts, verified } = await arena.inPage(
    async (s, { documents, files, receipts }) => {
      const given = Object.entries(documents).map(
        ([name, text]) => new File([text], `${name}.state_dict.json`),
      );
      const reports = await Promise.all(given.map((file) => s.tabtune.inspectFiles(file)));
      const verdicts = Object.fromEntries(
        reports.map(({ files: [{ ok, code, subject }] }, index) => [
          Object.keys(documents)[index],
          ok ? 'ok' : `${code} ${subject}`,
        ]),
      );
      const written = Object.entries(files).map(
        ([name, hex]) =>
          new File(
            [Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))],
            name,
          ),
      );
      const verified = [];
      for (const receipt of receipts) {
        const { ok, checks } = await s.tabtune.verifyFiles(written, { receipt });
        verified.push([ok, Object.fromEntries(checks.map(({ name, result }) => [name, result]))]);
      }
      return { verdicts, verified };
    },
    {
      documents,
      files: Object.fromEntries(
        Object.entries(files).map(([name, bytes]) => [name, bytes.toString('hex')]),
      ),
      receipts,
    },
  );
  const mismatch = (name) => [name, `digest.mismatch ${name}`];
  assert.deepEqual(verdicts, {
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

test('line 45: what is offered is what exports make', async () => {
  const found = await arena.inPage(
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
  );
  for (const [what, { wrong, choices }] of Object.entries(found.answers)) {
    assert.deepEqual(wrong, [], what);
    assert.equal(choices, what === 'blocks' ? 15 : 14, `${what}: two formats and twelve types`);
  }
  assert.equal(Object.keys(found.answers).length, 9);
  assert.equal(found.answered, 14, 'inspected without being opened');
});
