// Bad input in a real browser: every refusal is a typed error, and a running run continues.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { TEXT, inside, scenarios, setting } from './scenario.mjs';

const { at, inPage } = scenarios();

/** Returns how each of these calls fails, in words. @param {Record<string, { name?: string, code: string, word?: string }>} failures */
const inWords = (failures) =>
  Object.fromEntries(
    Object.entries(failures).map(([key, { name, code, word }]) => [
      key,
      code === 'none' ? code : `${name} ${code} ${word}`,
    ]),
  );

test('bad model files are refused with the code of their fault', async () => {
  const failures = await inPage(async ({ tabtune, create, failure, filesOf }, argument) => {
    const trainer = await create(argument);
    const files = filesOf(await trainer.exportFiles());
    await trainer.dispose();
    /** @param {string} name @returns {File} */
    const named = (name) => Object(files.find((file) => file.name === name));
    /** @param {string} name @param {BlobPart} part */
    const changed = (name, part) => [
      ...files.filter((file) => file.name !== name),
      new File([part], name),
    ];
    const weights = named('model.safetensors');
    const cut = (/** @type {number} */ end) => changed(weights.name, weights.slice(0, end));
    const config = JSON.parse(await named('config.json').text());
    const configured = (/** @type {object} */ change) =>
      changed('config.json', JSON.stringify({ ...config, ...change }));
    const gguf = (/** @type {number} */ bytes) => new File([new Uint8Array(bytes)], 'model.gguf');
    const opened = {
      junk: gguf(1000),
      empty: gguf(0),
      noModel: new File(['a picture'], 'cat.png'),
      truncated: cut(weights.size - 100),
      header: cut(40),
      noWeights: files.filter((file) => file !== weights),
      configText: changed('config.json', 'not json'),
      sliding: configured({ sliding_window: 16 }),
      activation: configured({ hidden_act: 'relu' }),
      good: files,
    };
    const trained = {
      wider: configured({ intermediate_size: config.intermediate_size + 4 }),
      deeper: configured({ num_hidden_layers: 3 }),
    };
    /** @type {Record<string, Awaited<ReturnType<typeof failure>>>} */
    const failures = {};
    for (const [name, given] of Object.entries(opened))
      failures[name] = await failure(async () => (await tabtune.openModel(given)).dispose());
    for (const [name, given] of Object.entries(trained))
      failures[name] = await failure(async () => {
        const model = await tabtune.openModel(given);
        const data = { text: argument.text };
        return tabtune.Trainer.create({ model, data, ...argument.options });
      });
    return failures;
  }, setting());
  assert.deepEqual(inWords(failures), {
    junk: 'TabtuneError BAD_MODEL_FILE gguf.magic.invalid',
    empty: 'TabtuneError BAD_MODEL_FILE gguf.header.truncated',
    noModel: 'TabtuneError BAD_MODEL_FILE format.unsupported',
    truncated: 'TabtuneError BAD_MODEL_FILE safetensors.data.truncated',
    header: 'TabtuneError BAD_MODEL_FILE safetensors.header.past-end',
    noWeights: 'TabtuneError BAD_MODEL_FILE bundle.weights.missing',
    configText: 'TabtuneError BAD_MODEL_FILE bundle.config.json',
    wider: 'TabtuneError BAD_MODEL_FILE model.tensor.shape',
    deeper: 'TabtuneError BAD_MODEL_FILE model.tensor.missing',
    sliding: 'TabtuneError UNSUPPORTED_ARCH model.config.unsupported',
    activation: 'TabtuneError UNSUPPORTED_ARCH model.config.unsupported',
    good: 'none',
  });
});

test('two files of one name in a picked folder are refused with their paths', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-folder-'));
  try {
    mkdirSync(join(folder, 'old'));
    for (const name of ['config.json', 'model.safetensors', 'old/config.json'])
      writeFileSync(join(folder, name), '{}');
    const { page } = await at.open('/');
    await page.evaluate(() => {
      const input = Object.assign(document.createElement('input'), {
        type: 'file',
        webkitdirectory: true,
      });
      document.body.append(input);
    });
    await page.setInputFiles('input', folder);
    const failures = await inside(page, async ({ tabtune, failure }) => {
      const { files } = document.querySelector('input');
      const picked = /** @type {FileList} */ (files);
      const adapter = { adapter: picked };
      return Promise.all([
        failure(tabtune.openModel(picked)),
        failure(tabtune.inspectFiles(picked)),
        failure(tabtune.openModel(new Blob(['GGUF']), adapter)),
      ]);
    });
    for (const { word, message } of failures) {
      assert.equal(word, 'source.duplicate');
      assert.match(
        message,
        /2 files are called config\.json: .*\/config\.json, .*old\/config\.json/,
      );
    }
    await page.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('bad data and settings are refused by name, and the model can be used again', async () => {
  const failures = await inPage(async ({ tabtune, failure }, { shape, text, options }) => {
    const model = await tabtune.newModel(shape, { text });
    const jsonl = (/** @type {string} */ rows) => ({ data: new File([rows], 'chat.jsonl') });
    const tried = {
      unknown: { stepz: 3 },
      nested: { optimizer: { type: 'adamw', beta3: 0.9 } },
      kind: { optimizer: { type: 'lion' } },
      range: { learningRate: -1 },
      text: { batchSize: 'four' },
      frozen: { groups: [{ pattern: '*', frozen: true }] },
      unfit: { groups: [{ pattern: '*', optimizer: { momentum: 0.9 } }] },
      tokens: { gradientAccumulationSteps: 4e15 },
      vanishing: { learningRate: 1e-60 },
      empty: { data: { text: '' } },
      short: { data: { text: 'It is' } },
      utf8: { data: new File([new Uint8Array([0x49, 0xff, 0xfe])], 'text.txt') },
      json: jsonl('{"prompt": '),
      keys: jsonl('{"question": "a", "answer": "b"}'),
      context: { seqLen: 64 },
      letters: { data: { text: 'Ω'.repeat(2000) } },
      groups: { groups: [{ pattern: 'nothing.*' }, { pattern: '*' }] },
      skip: {
        ...{ onNonFinite: 'skip', gradientRelease: true },
        ...{ gradientAccumulationSteps: 1, maxGradNorm: 0 },
      },
      good: { groups: 'no_decay' },
      taken: {},
    };
    /** @type {Record<string, Awaited<ReturnType<typeof failure>>>} */
    const failures = {};
    for (const [name, more] of Object.entries(tried)) {
      const given = /** @type {any} */ ({ model, data: { text }, ...options, ...more });
      failures[name] = await failure(async () => (await tabtune.Trainer.create(given)).dispose());
    }
    return failures;
  }, setting());
  assert.deepEqual(inWords(failures), {
    unknown: 'TabtuneError BAD_OPTION option.invalid',
    nested: 'TabtuneError BAD_OPTION option.invalid',
    kind: 'TabtuneError BAD_OPTION option.invalid',
    range: 'TabtuneError BAD_OPTION config.invalid',
    text: 'TabtuneError BAD_OPTION option.invalid',
    frozen: 'TabtuneError BAD_OPTION config.invalid',
    unfit: 'TabtuneError BAD_OPTION config.invalid',
    tokens: 'TabtuneError BAD_OPTION config.invalid',
    vanishing: 'TabtuneError BAD_OPTION config.invalid',
    empty: 'TabtuneError BAD_OPTION data.empty',
    short: 'TabtuneError BAD_OPTION data.too-short',
    utf8: 'TabtuneError BAD_OPTION data.encoding',
    json: 'TabtuneError BAD_OPTION data.row',
    keys: 'TabtuneError BAD_OPTION data.shape',
    context: 'TabtuneError BAD_OPTION model.context',
    letters: 'TabtuneError BAD_OPTION tokenizer.text',
    groups: 'TabtuneError BAD_OPTION optim.groups',
    skip: 'TabtuneError BAD_OPTION option.invalid',
    good: 'none',
    taken: 'TabtuneError BAD_OPTION model.taken',
  });
});

test('a full disk fails the save and not the run', async () => {
  const result = await inPage(
    async ({ create, failure }, argument) => {
      const trainer = await create(argument);
      await trainer.step(2);
      const { code, word } = await failure(trainer.save());
      const [{ step }] = await trainer.step(1);
      const { size } = await trainer.export();
      const checkpoints = (await trainer.checkpoints.list()).length;
      await trainer.dispose();
      return { refused: [code, word], step, exported: size > 1000, checkpoints };
    },
    // Noise does not compress; a small model and its moments are larger than this.
    setting({}, { hiddenSize: 128 }),
    (devtools, origin) =>
      devtools.send('Storage.overrideQuotaForOrigin', { origin: `${origin}/`, quotaSize: 500_000 }),
  );
  assert.deepEqual(result, {
    refused: ['QUOTA_EXCEEDED', 'storage.quota'],
    step: 3,
    exported: true,
    checkpoints: 0,
  });
});

test("onNonFinite: 'skip' skips the batches of a step that is not finite, and the run continues with the next", async () => {
  // In sequential order a step takes 64 characters. The third step's characters include the only Z; a batch's last target is the next one's first
  // character, so that the text without them leaves every other batch unchanged.
  const text =
    TEXT.slice(0, 128) +
    'e' +
    TEXT.slice(1, 20) +
    'Z' +
    TEXT.slice(20, 63) +
    'e' +
    TEXT.slice(200, 600);
  const given = setting(
    { dataOrder: 'sequential', validationFraction: 0, logEvery: 1 },
    { tieWordEmbeddings: false },
  );
  const result = await inPage(
    async ({ tabtune, create, failure, filesOf }, { text, ...argument }) => {
      const fresh = await create({ ...argument, text });
      const exported = filesOf(await fresh.exportFiles());
      await fresh.dispose();
      const whole = await tabtune.openModel(exported);
      const [id] = await whole.tokenize('Z');
      await whole.dispose();
      // The embedding of Z is not a number.
      const weights = /** @type {File} */ (
        exported.find(({ name }) => name === 'model.safetensors')
      );
      const bytes = new DataView(await weights.arrayBuffer());
      const head = Number(bytes.getBigUint64(0, true));
      const header = JSON.parse(await weights.slice(8, 8 + head).text());
      const { dtype, shape, data_offsets } = header['model.embed_tokens.weight'];
      const row = 4 * shape[1];
      const at = 8 + head + data_offsets[0] + id * row;
      for (let i = 0; i < row; i += 4) bytes.setFloat32(at + i, NaN, true);
      const others = exported.filter((file) => file !== weights);
      const files = [...others, new File([bytes], weights.name)];
      /** @param {string} text @param {'stop' | 'skip'} onNonFinite */
      const run = async (text, onNonFinite) => {
        const model = await tabtune.openModel(files);
        const more = { onNonFinite, allowNonFinite: true };
        const options = { model, data: { text }, ...argument.options, ...more };
        const trainer = await tabtune.Trainer.create(options);
        const [steps, warnings] = /** @type {unknown[][][]} */ ([[], []]);
        const failed = await failure(async () => {
          for await (const event of trainer.run()) {
            if (event.type === 'step') steps.push([event.step, event.loss, event.gradNorm]);
            if (event.type === 'warning') warnings.push([event.step, event.code]);
          }
        });
        await trainer.dispose();
        return { steps, failed, warnings };
      };
      return {
        dtype,
        stopped: await run(text, 'stop'),
        skipped: await run(text, 'skip'),
        without: await run(text.slice(0, 128) + text.slice(192), 'stop'),
      };
    },
    { ...given, text },
  );
  assert.equal(result.dtype, 'F32');
  assert.equal(result.stopped.steps.length, 2);
  const { code, tensor, message } = result.stopped.failed;
  assert.deepEqual([code, tensor], ['NON_FINITE', 'loss']);
  const expected = /^the loss of step 3 is NaN; expected a finite number\. Nothing was changed/;
  assert.match(message, expected);
  assert.deepEqual(result.skipped.warnings, [[2, 'train.non-finite']]);
  assert.deepEqual([result.skipped.failed.code, result.without.failed.code], ['none', 'none']);
  assert.equal(result.skipped.steps.length, 6);
  assert.deepEqual(result.skipped.steps, result.without.steps);
});
