// Bad input in a real browser: every refusal is a typed error, and a running run continues.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { RUN, SHAPE, TEXT, create, scenarios } from './scenario.mjs';

const { inPage, page: open } = scenarios();

/** Returns the code of a rejection, as page and core name it. */
const code = `const code = (promise) => promise.then(() => 'none', (error) => [error.name, error.code, error.detail?.code].join(' '));`;

/** The files of a good model, and the same with one replaced. */
const folder = `
  const trainer = await (${create})(tabtune, argument);
  const files = (await trainer.exportFiles()).map(({ name, blob }) => new File([blob], name));
  await trainer.dispose();
  const changed = (name, parts) => files.map((file) => (file.name === name ? new File(parts, name) : file));
  const named = (name) => files.find((file) => file.name === name);`;

test('bad model files are refused with the code of their fault', async () => {
  const codes = await inPage(
    `async (tabtune, argument) => {
      ${code}
      ${folder}
      const weights = named('model.safetensors');
      const config = JSON.parse(await named('config.json').text());
      const configured = (change) => changed('config.json', [JSON.stringify({ ...config, ...change })]);
      const trained = async (change) => tabtune.Trainer.create({ model: await tabtune.openModel(configured(change)), data: { text: argument.text }, ...argument.options });
      const gguf = (bytes) => new File([new Uint8Array(bytes)], 'model.gguf');
      return {
        junk: await code(tabtune.openModel(gguf(1000))),
        empty: await code(tabtune.openModel(gguf(0))),
        noModel: await code(tabtune.openModel(new File(['a picture'], 'cat.png'))),
        truncated: await code(tabtune.openModel(changed('model.safetensors', [weights.slice(0, weights.size - 100)]))),
        header: await code(tabtune.openModel(changed('model.safetensors', [weights.slice(0, 40)]))),
        noWeights: await code(tabtune.openModel(files.filter((file) => file !== weights))),
        configText: await code(tabtune.openModel(changed('config.json', ['not json']))),
        wider: await code(trained({ intermediate_size: config.intermediate_size + 4 })),
        deeper: await code(trained({ num_hidden_layers: 3 })),
        sliding: await code(tabtune.openModel(configured({ sliding_window: 16 }))),
        activation: await code(tabtune.openModel(configured({ hidden_act: 'relu' }))),
        good: await code(tabtune.openModel(files).then((model) => model.dispose())),
      };
    }`,
    { shape: SHAPE, text: TEXT, options: RUN },
  );
  assert.deepEqual(codes, {
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
    const { page } = await open('/');
    await page.evaluate(() => {
      const input = Object.assign(document.createElement('input'), {
        type: 'file',
        webkitdirectory: true,
      });
      document.body.append(input);
    });
    await page.setInputFiles('input', folder);
    const told = await page.evaluate(`(async () => {
      const { openModel, inspectFiles } = await import('/dist/index.js');
      const { files } = document.querySelector('input');
      const refused = ({ detail, message }) => [detail.code, message];
      return Promise.all([openModel(files), inspectFiles(files), openModel(new Blob(['GGUF']), { adapter: files })].map((call) => call.catch(refused)));
    })()`);
    for (const [code, message] of told) {
      assert.equal(code, 'source.duplicate');
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
  const codes = await inPage(
    `async (tabtune, argument) => {
      ${code}
      const model = await tabtune.newModel(argument.shape, { text: argument.text });
      const started = async (options) => tabtune.Trainer.create({ model, data: { text: argument.text }, ...argument.options, ...options });
      const tried = (options) => code(started(options).then((trainer) => trainer.dispose()));
      const jsonl = (text) => ({ data: new File([text], 'chat.jsonl') });
      return {
        unknown: await tried({ stepz: 3 }),
        nested: await tried({ optimizer: { type: 'adamw', beta3: 0.9 } }),
        kind: await tried({ optimizer: { type: 'lion' } }),
        range: await tried({ learningRate: -1 }),
        text: await tried({ batchSize: 'four' }),
        frozen: await tried({ groups: [{ pattern: '*', frozen: true }] }),
        unfit: await tried({ groups: [{ pattern: '*', optimizer: { momentum: 0.9 } }] }),
        tokens: await tried({ gradientAccumulationSteps: 4e15 }),
        vanishing: await tried({ learningRate: 1e-60 }),
        empty: await tried({ data: { text: '' } }),
        short: await tried({ data: { text: 'It is' } }),
        utf8: await tried({ data: new File([new Uint8Array([0x49, 0xff, 0xfe])], 'text.txt') }),
        json: await tried(jsonl('{"prompt": ')),
        keys: await tried(jsonl('{"question": "a", "answer": "b"}')),
        context: await tried({ seqLen: 64 }),
        letters: await tried({ data: { text: 'Ω'.repeat(2000) } }),
        groups: await tried({ groups: [{ pattern: 'nothing.*' }, { pattern: '*' }] }),
        skip: await tried({ onNonFinite: 'skip', gradientRelease: true, gradientAccumulationSteps: 1, maxGradNorm: 0 }),
        good: await tried({ groups: 'no_decay' }),
        taken: await tried({}),
      };
    }`,
    { shape: SHAPE, text: TEXT, options: RUN },
  );
  assert.deepEqual(codes, {
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
    `async (tabtune, argument) => {
      ${code}
      const trainer = await (${create})(tabtune, argument);
      await trainer.step(2);
      const refused = await code(trainer.save());
      const [step] = await trainer.step(1);
      const blob = await trainer.export();
      const checkpoints = await trainer.checkpoints.list();
      await trainer.dispose();
      return { refused, step: step.step, exported: blob.size > 1000, checkpoints: checkpoints.length };
    }`,
    // Noise does not compress; a small model and its moments are larger than this.
    { shape: { ...SHAPE, hiddenSize: 128 }, text: TEXT, options: RUN },
    (devtools, origin) =>
      devtools.send('Storage.overrideQuotaForOrigin', { origin: `${origin}/`, quotaSize: 500_000 }),
  );
  assert.deepEqual(result, {
    refused: 'TabtuneError QUOTA_EXCEEDED storage.quota',
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
  const result = await inPage(
    `async (tabtune, argument) => {
      const fresh = await (${create})(tabtune, argument);
      const files = (await fresh.exportFiles()).map(({ name, blob }) => ({ name, blob }));
      await fresh.dispose();
      // The embedding of Z is not a number.
      const weights = files.find(({ name }) => name === 'model.safetensors');
      const bytes = new Uint8Array(await weights.blob.arrayBuffer());
      const head = Number(new DataView(bytes.buffer).getBigUint64(0, true));
      const entry = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + head)))['model.embed_tokens.weight'];
      const opened = () => tabtune.openModel(files.map(({ name, blob }) => new File([blob], name)));
      const whole = await opened();
      const [id] = await whole.tokenize('Z');
      whole.dispose();
      const row = 4 * entry.shape[1];
      const at = 8 + head + entry.data_offsets[0] + id * row;
      for (let i = 0; i < row; i += 4) new DataView(bytes.buffer).setFloat32(at + i, NaN, true);
      weights.blob = new Blob([bytes]);

      const run = async (text, onNonFinite) => {
        await using trainer = await tabtune.Trainer.create({ model: await opened(), data: { text }, ...argument.options, onNonFinite, allowNonFinite: true });
        const events = [];
        let failure = 'none';
        try {
          for await (const event of trainer.run()) events.push(event);
        } catch ({ code, message, detail }) {
          failure = code + ' of ' + detail.tensor + ' in ' + detail.step + ': ' + message;
        }
        const steps = events.filter(({ type }) => type === 'step').map(({ step, loss, gradNorm }) => [step, loss, gradNorm]);
        return { steps, failure, warnings: events.filter(({ type }) => type === 'warning').map(({ step, code }) => [step, code]) };
      };
      const { text } = argument;
      return { dtype: entry.dtype, stopped: await run(text, 'stop'), skipped: await run(text, 'skip'), without: await run(text.slice(0, 128) + text.slice(192), 'stop') };
    }`,
    {
      shape: { ...SHAPE, tieWordEmbeddings: false },
      text,
      options: { ...RUN, dataOrder: 'sequential', validationFraction: 0, logEvery: 1 },
    },
  );
  assert.equal(result.dtype, 'F32');
  assert.equal(result.stopped.steps.length, 2);
  assert.match(
    result.stopped.failure,
    /^NON_FINITE of loss in 3: the loss of step 3 is NaN; expected a finite number\. Nothing was changed/,
  );
  assert.deepEqual(result.skipped.warnings, [[2, 'train.non-finite']]);
  assert.deepEqual([result.skipped.failure, result.without.failure], ['none', 'none']);
  assert.equal(result.skipped.steps.length, 6);
  assert.deepEqual(result.skipped.steps, result.without.steps);
});
