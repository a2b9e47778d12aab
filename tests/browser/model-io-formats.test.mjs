// Exports of models in a real browser: patched and new GGUF files, tokenizers, digests, and every offered format.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY } from '../torture/arena.mjs';
import { taken } from '../torture/gguf.mjs';
import { makeModels } from '../torture/make-models.mjs';
import { doubled, renamed, sentencePiece } from './gguf-variants.mjs';

const GOLDEN = join(root, 'tests', 'golden');
const DOCUMENTS = [
  'config.json',
  'generation_config.json',
  'model.safetensors',
  'tokenizer.json',
  'tokenizer_config.json',
];
const TEXT = "It's 12345 of  the words,\n\tand don't:  she'LL go.";

let made;

const arena = Arena.ofTests(() => {
  made = mkdtempSync(join(tmpdir(), 'tabtune-formats-'));
  makeModels(made);
  for (const [name, bytes] of Object.entries({
    doubled: doubled(),
    other: renamed(),
    pieces: sentencePiece(),
  }))
    writeFileSync(join(made, `${name}.gguf`), bytes);
  return {
    folders: {
      '/models/': 'tests/golden/models',
      '/adapters/': 'tests/golden/adapters',
      '/made/': made,
    },
  };
});
test.afterAll(() => rmSync(made, { recursive: true, force: true }));

test('line 38: a patch without a change is its base, byte for byte', async () => {
  const found = await arena.inPage(async (s) => {
    const e = await import('/torture/exports.mjs');
    const all = {};
    for (const path of ['/models/llama3', '/models/qwen2', '/models/gpt2', '/made/doubled']) {
      const base = await e.fetched(path.slice(0, path.lastIndexOf('/')), [
        `${path.slice(path.lastIndexOf('/') + 1)}.gguf`,
      ]);
      const patch = (model) => model.exportFiles({ format: 'gguf', type: 'f16', base });
      const [{ blob }] = await e.withModel(base, patch);
      all[path] = (await s.digest(blob)) === (await s.digest(base[0]));
    }
    const llama = await e.fetched('/models', ['llama3.gguf']);
    const refusals = {};
    for (const [folder, name] of [
      ['/models', 'qwen2.gguf'],
      ['/models', 'gpt2.gguf'],
      ['/made', 'other.gguf'],
    ]) {
      const base = await e.fetched(folder, [name]);
      refusals[name] = (
        await e.withModel(llama, (model) => e.summed(model, { format: 'gguf', base }))
      ).refused;
    }
    return { all, refusals };
  });
  assert.deepEqual(Object.values(found.all), [true, true, true, true], JSON.stringify(found.all));
  assert.deepEqual(
    Object.values(found.refusals),
    Array(3).fill('export.gguf.base'),
    JSON.stringify(found.refusals),
  );
});

test('line 38: a patch of one tensor changes its bytes alone, and a head that is stored twice in both places', async () => {
  /** @type {[string, string, string, string[]][]} */
  const cases = [
    ['/models', 'llama3.gguf', 'model.layers.1.self_attn.q_proj.weight', ['blk.1.attn_q.weight']],
    ['/models', 'gpt2.gguf', 'transformer.h.1.attn.c_attn.weight', ['blk.1.attn_qkv.weight']],
    ['/made', 'doubled.gguf', 'model.embed_tokens.weight', ['token_embd.weight', 'output.weight']],
  ];
  for (const [folder, name, changed, stored] of cases) {
    const text = await arena.inPage(
      async (_, { folder, name, changed }) => {
        const e = await import('/torture/exports.mjs');
        const base = await e.fetched(folder, [name]);
        // The tensor's first value gets the opposite sign.
        const files = await e.withModel(base, (model) => e.folderOf(model));
        const turned = await Promise.all(
          files.map(async (file) => {
            if (file.name !== 'model.safetensors') return file;
            const bytes = new Uint8Array(await file.arrayBuffer());
            const header = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
            const {
              [changed]: {
                data_offsets: [begin],
              },
            } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, header)));
            bytes[header + begin + 3] ^= 0x80;
            return new File([bytes], file.name);
          }),
        );
        const patched = await e.withModel(turned, (model) =>
          e.exportedAs('patched.gguf', model, { format: 'gguf', base }),
        );
        return btoa(String.fromCharCode(...new Uint8Array(await patched.arrayBuffer())));
      },
      { folder, name, changed },
    );
    const [found, base] = [
      Buffer.from(text, 'base64'),
      readFileSync(folder === '/made' ? join(made, name) : join(GOLDEN, 'models', name)),
    ];
    const spans = taken(base).tensors.filter((tensor) => stored.includes(tensor.name));
    assert.equal(spans.length, stored.length);
    const differing = [...base.keys()].filter((at) => found[at] !== base[at]);
    assert.equal(found.length, base.length);
    assert.deepEqual(
      differing,
      spans.map(({ begin }) => begin + 3),
      `${name}: the sign of one value in each copy`,
    );
  }
});

test('line 39: a folder converted to an F32 GGUF file and back has the same weights', async () => {
  const found = await arena.inPage(
    async (_, names) => {
      const e = await import('/torture/exports.mjs');
      const all = {};
      for (const name of ['llama-3', 'llama-tied', 'qwen2', 'qwen3', 'qwen3-tied', 'gpt2']) {
        const { before, gguf, ids } = await e.withModel(
          await e.fetched(`/made/${name}`, names.documents),
          async (model) => ({
            before: (await e.receiptOf(model)).digests.weights,
            gguf: await e.exportedAs('m.gguf', model, { format: 'gguf', type: 'f32' }),
            ids: await model.tokenize(names.text),
          }),
        );
        all[name] = await e.withModel([gguf], async (model) => {
          const { digests } = await e.receiptOf(model);
          return { before, after: digests.weights, ids, again: await model.tokenize(names.text) };
        });
      }
      return all;
    },
    { documents: DOCUMENTS, text: TEXT },
  );
  for (const [name, { before, after, ids, again }] of Object.entries(found)) {
    assert.match(before, /^[0-9a-f]{64}$/);
    assert.equal(after, before, name);
    assert.ok(ids.length > 10);
    assert.deepEqual(again, ids, `${name}: its tokenizer`);
  }
});

test('line 39: the rules of a tokenizer are found by trying, and unknown ones are refused', async () => {
  const { pres, ids, lower, characters } = await arena.inPage(
    async (s, { names, text, setting }) => {
      const e = await import('/torture/exports.mjs');
      const header = async (file) =>
        btoa(String.fromCharCode(...new Uint8Array(await file.slice(0, 32 << 10).arrayBuffer())));
      const pres = {};
      for (const name of ['gpt2', 'llama-tied', 'llama-3', 'qwen2']) {
        pres[name] = await e.withModel(await e.fetched(`/made/${name}`, names), async (model) =>
          header(await e.exportedAs('m.gguf', model, { format: 'gguf', type: 'q8_0' })),
        );
      }
      const pieces = await e.withModel(
        await e.fetched('/made', ['pieces.gguf']),
        async (model) => ({ ids: await model.tokenize(text), folder: await e.folderOf(model) }),
      );
      const again = await e.withModel(pieces.folder, async (model) => ({
        ids: await model.tokenize(text),
        gguf: await e.exportedAs('m.gguf', model, { format: 'gguf', type: 'f16' }),
      }));
      pres.pieces = await header(again.gguf);
      const last = await e.withModel([again.gguf], (model) => model.tokenize(text));
      // A tokenizer that makes everything lower case, as none of the known ones does.
      const files = await e.fetched('/made/qwen2', names);
      const at = files.findIndex(({ name }) => name === 'tokenizer.json');
      files[at] = new File(
        [
          JSON.stringify({
            ...JSON.parse(await files[at].text()),
            normalizer: { type: 'Lowercase' },
          }),
        ],
        'tokenizer.json',
      );
      const lower = await e.withModel(files, async (model) => [
        (await e.summed(model, { format: 'gguf', type: 'f16' })).refused,
        model.exports.find(({ type }) => type === 'f16').ok,
      ]);
      // The characters of a run.
      await s.create(setting);
      await s.step(1);
      const gguf = await e.exportedAs('m.gguf', s.current(), { format: 'gguf', type: 'f16' });
      const folder = await e.folderOf(s.current());
      await s.current().dispose();
      const characters = [];
      for (const files of [[gguf], folder])
        characters.push(
          await e.withModel(files, async (model) => [
            model.info.tokenizer.kind,
            await model.tokenize(setting.text.slice(0, 128)),
          ]),
        );
      return { pres, ids: [pieces.ids, again.ids, last], lower, characters };
    },
    { names: DOCUMENTS, text: TEXT, setting: TINY },
  );
  const stated = (text) =>
    ['model', 'pre'].map((key) =>
      taken(Buffer.from(text, 'base64'))
        .metadata.get(`tokenizer.ggml.${key}`)?.[1]
        .subarray(8)
        .toString(),
    );
  assert.deepEqual(
    Object.fromEntries(Object.entries(pres).map(([name, text]) => [name, stated(text)])),
    {
      gpt2: ['gpt2', 'gpt-2'],
      'llama-tied': ['gpt2', 'smollm'],
      'llama-3': ['gpt2', 'llama-bpe'],
      qwen2: ['gpt2', 'qwen2'],
      pieces: ['llama', undefined],
    },
  );
  assert.ok(ids[0].length > 10);
  assert.deepEqual(ids.slice(1), [ids[0], ids[0]]);
  assert.deepEqual(lower, ['export.gguf.tokenizer', false]);
  // In the order of their code points.
  const known = [...new Set(TINY.text)].sort();
  const expected = [...TINY.text.slice(0, 128)].map((character) => known.indexOf(character));
  assert.deepEqual(characters, [
    ['characters', expected],
    ['characters', expected],
  ]);
});
