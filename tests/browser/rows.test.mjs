// Rows that are given in memory, in a real browser: they are learned as the same rows of a file, and faulty ones are named by their index.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios();
const MODEL = readFileSync(join(root, 'tests/golden', 'lora/tiny.gguf')).toString('base64');

test('rows in memory are learned as those of a file', async () => {
  const found = await inPage(async ({ tabtune, failure, losses, bytesOf }, weights) => {
    const open = () =>
      tabtune.openModel(new File([bytesOf(weights)], 'tiny.gguf'), { chatTemplate: 'chatml' });
    const model = await open();
    /** @param {readonly object[]} rows */
    const file = (rows) =>
      new File(
        rows.map((row) => `${JSON.stringify(row)}\n`),
        'rows.jsonl',
      );
    const chat = (/** @type {number} */ n) => ({
      messages: [
        { role: 'user', content: `And ${n}?` },
        { role: 'assistant', content: `It is ${n + 1}.` },
      ],
    });
    const numbers = Array.from({ length: 24 }, (_, n) => n);
    const texts = numbers.map((n) => `Line ${n} of a poem.`);
    /** @type {Record<string, [import('tabtune').DataInput, object[], import('tabtune').TrainOptions?]>} */
    const shapes = {
      chats: [numbers.map(chat), numbers.map(chat)],
      pairs: [
        numbers.map((n) => ({ prompt: `${n}:`, completion: ` ${n + 1}` })),
        numbers.map((n) => ({ prompt: `${n}:`, completion: ` ${n + 1}` })),
      ],
      texts: [texts, texts.map((text) => ({ text }))],
      ids: [
        numbers.map((n) => ({ input_ids: Uint32Array.of(1, n + 5, n + 6) })),
        numbers.map((n) => ({ input_ids: [1, n + 5, n + 6] })),
      ],
      columns: [
        numbers.map((n) => ({ question: `${n}?`, answer: ` ${n}`, url: 'https://a' })),
        numbers.map((n) => ({ question: `${n}?`, answer: ` ${n}`, url: 'https://a' })),
        { columns: { prompt: 'question', completion: 'answer' } },
      ],
      one: [[chat(1)], [chat(1)]],
    };
    /** @type {Record<string, unknown[]>} */
    const learned = {};
    for (const [name, [rows, same, options]] of Object.entries(shapes)) {
      const [given, read] = [
        await tabtune.inspectData(rows, { ...options, model }),
        await tabtune.inspectData(file(same), { ...options, model }),
      ];
      learned[name] = [
        given.report.digest === read.report.digest,
        JSON.stringify(given.preview) === JSON.stringify(read.preview),
        given.report.files[0]?.form,
        given.report.examples + given.report.validation,
      ];
    }
    const bad = [
      ...numbers.map(chat),
      { messages: [] },
      { messages: 5 },
      { messages: [{ role: 'user', content: 7 }] },
    ];
    const refused = await failure(tabtune.inspectData(bad, { model }));
    const mixture = [{ files: numbers.map(chat), weight: 2 }, { files: [chat(1), { prompt: 1 }] }];
    const inMixture = await failure(tabtune.Trainer.create({ model, data: mixture, steps: 1 }));
    const skipped = await tabtune.inspectData(bad, { model, onBadRow: 'skip' });
    const run = { steps: 4, batchSize: 2, seqLen: 64, learningRate: 1e-3 };
    /** @param {import('tabtune').Model} of @param {import('tabtune').DataInput} data */
    const trained = async (of, data) => {
      const trainer = await tabtune.Trainer.create({ model: of, data, ...run });
      const found = await losses(trainer, 2);
      await trainer.save();
      const { runId: id } = trainer;
      await trainer.dispose();
      const again = await tabtune.Trainer.resume({ run: id });
      found.push(...(await losses(again, 2)));
      await again.dispose();
      return found;
    };
    const losses_ = [
      await trained(model, numbers.map(chat)),
      await trained(await open(), file(numbers.map(chat))),
    ];
    const shape = { hiddenSize: 32, numHiddenLayers: 1, numAttentionHeads: 2 };
    const fresh = await tabtune.newModel(shape, ['ab', 'bc']);
    const { vocabSize } = fresh.info;
    await fresh.dispose();
    return { learned, refused, inMixture, skipped: skipped.report, losses: losses_, vocabSize };
  }, MODEL);
  for (const [name, [digest, preview, form, examples]] of Object.entries(found.learned))
    assert.deepEqual(
      [digest, preview, form, examples],
      [true, true, 'jsonl', name === 'one' ? 1 : 24],
      name,
    );
  assert.deepEqual([found.refused.code, found.refused.path], ['BAD_OPTION', 'data[24]']);
  assert.match(found.refused.message, /^data\[24\][:,].*data\[25\][:,].*data\[26\][:,]/s);
  assert.doesNotMatch(found.refused.message, /rows\.jsonl|line \d/);
  assert.equal(found.inMixture.path, 'data[1].files[1]', found.inMixture.message);
  const { examples, validation, warnings } = found.skipped;
  assert.equal(examples + validation, 24, 'the other rows are learned');
  assert.ok(warnings.some(({ code }) => code === 'data.row.skipped'));
  assert.deepEqual(found.losses[0], found.losses[1]);
  assert.equal(found.losses[0]?.length, 4);
  assert.ok(found.vocabSize >= 3, String(found.vocabSize));
});

test('inspectData gives the settings that a run on the data has, with their reasons', async () => {
  const found = await inPage(async ({ tabtune }) => {
    const rows = Array.from({ length: 30 }, (_, at) => ({ text: `${at} is a number. `.repeat(9) }));
    const shape = { hiddenSize: 16, numHiddenLayers: 1, numAttentionHeads: 2 };
    const model = await tabtune.newModel(shape, rows);
    const { settings } = await tabtune.inspectData(rows, { model, batchSize: 2 });
    const given = await tabtune.inspectData(rows, { model, learningRate: 1e-3 });
    const trainer = await tabtune.Trainer.create({ model, data: rows, batchSize: 2 });
    const run = trainer.settings;
    await trainer.dispose();
    return { settings, run, given: given.settings.chosen };
  });
  assert.deepEqual(found.settings, found.run);
  assert.ok(found.run.chosen.some(({ name }) => name === 'evalEvery'));
  assert.deepEqual(found.given, []);
});
