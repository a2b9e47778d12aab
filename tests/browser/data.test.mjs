// Training data in a real browser: a run learns exactly what was shown before it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios({
  scripts: {
    '/no-files.js': {
      work: () => {
        const refused = () => Promise.reject(new DOMException('none', 'SecurityError'));
        navigator.storage.getDirectory = refused;
      },
    },
  },
});

const base64 = (/** @type {string} */ name) =>
  readFileSync(join(root, 'tests/golden', name)).toString('base64');
/** A model with a vocabulary of bytes. */
const MODEL = base64('lora/tiny.gguf');
const RUN = { steps: 6, batchSize: 2, learningRate: 1e-3, autosave: false, keepData: false };

test('inspectData shows the contents of data, and a run learns what was shown', async () => {
  const found = await inPage(
    async ({ tabtune, failure, bytesOf }, { weights, run }) => {
      const model = await tabtune.openModel(new File([bytesOf(weights)], 'tiny.gguf'));
      const rows = Array.from({ length: 40 }, (_, row) => ({
        question: `How many is ${row}?`,
        answer: ` It is ${row}.`,
        note: row,
      }));
      const file = (/** @type {string} */ name, /** @type {string} */ text) =>
        new File([text], name);
      const written = rows.map((row) => JSON.stringify(row));
      const lines = written.join('\n');
      const cells = rows.map(({ question, answer, note }) => [question, answer, note].join(','));
      const table = ['question,answer,note', ...cells].join('\n');
      const pack = (/** @type {string} */ text) =>
        new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))).blob();
      const packed = await pack(lines);
      const half = [written.slice(0, 20), written.slice(20)].map((part) => part.join('\n') + '\n');
      const members = await Promise.all(half.map(pack));
      const columns = { prompt: 'question', completion: 'answer' };
      const given = { model, columns, learningRate: run.learningRate };
      const [summary] = await tabtune.inspectData(file('rows.txt', table), {});
      const jsonl = file('rows.jsonl', lines);
      const refused = await failure(tabtune.inspectData(jsonl, { model }));
      const digests = new Set();
      for (const data of [
        jsonl,
        file('rows.csv', table),
        file('rows', JSON.stringify(rows)),
        new File([packed], 'rows.jsonl.gz'),
        new File([...members, new Uint8Array(512)], 'members.gz'),
      ])
        digests.add((await tabtune.inspectData(data, given)).report.digest);
      const gz = (/** @type {BlobPart[]} */ ...parts) => new File(parts, 'rows.jsonl.gz');
      const cut = await failure(tabtune.inspectData(gz(packed.slice(0, 60)), given));
      const [{ warnings }] = await tabtune.inspectData(gz(packed, 'more'), {});
      const bytes = Math.floor(packed.size / 2);
      const beginning = await tabtune.inspectData(gz(packed), { ...given, bytes });
      const large = file('large.jsonl', `${lines}\n`.repeat(20_000));
      const began = performance.now();
      const part = await tabtune.inspectData(large, { ...given, bytes: 2 ** 18 });
      const partSecs = (performance.now() - began) / 1000;
      const shown = { ...given, show: 40, batchSize: run.batchSize };
      const { report, preview } = await tabtune.inspectData(jsonl, shown);
      const order = { dataOrder: /** @type {const} */ ('sequential'), epochs: 1, steps: undefined };
      const trainer = await tabtune.Trainer.create({ ...given, data: jsonl, ...run, ...order });
      const steps = [];
      for await (const event of trainer.run()) if (event.type === 'step') steps.push(event.tokens);
      const same =
        JSON.stringify(await trainer.previewData({ show: 40 })) === JSON.stringify(preview);
      const { data } = trainer;
      await trainer.dispose();
      const segments = preview.flatMap((each) => each.segments).filter(({ learned }) => learned);
      return {
        summary,
        refused,
        digests: digests.size,
        cut: cut.word,
        trailing: warnings.map(({ code }) => code),
        beginning: Number(beginning.report.files[0].rows),
        large: large.size,
        part: Number(part.report.files[0].rows),
        partSecs,
        report,
        learned: segments.flatMap(({ tokens }) => tokens).length,
        steps,
        same,
        data,
      };
    },
    { weights: MODEL, run: RUN },
  );
  assert.deepEqual(
    [found.summary.form, found.summary.rows, found.summary.columns, found.summary.shapes],
    ['csv', 40, ['question', 'answer', 'note'], { faulty: 40 }],
  );
  assert.deepEqual([found.refused.code, found.refused.word], ['BAD_OPTION', 'data.shape']);
  assert.match(found.refused.message, /"prompt": "question", "completion": "answer"/);
  assert.equal(found.digests, 1, 'each form gives the same examples');
  assert.equal(found.cut, 'data.gzip');
  assert.deepEqual(
    found.trailing,
    ['data.gzip.trailing', 'data.shape'],
    'without a model, too, a summary says why rows are faulty',
  );
  assert.ok(
    found.beginning > 0 && found.beginning < 40,
    'the rows in the beginning of a packed file are shown',
  );
  assert.ok(
    found.large > 40e6 && found.part > 1000 && found.part < 6000,
    'only the beginning of a large file is read',
  );
  assert.ok(found.partSecs < 20, `${found.partSecs} s`);
  const { report, steps } = found;
  assert.deepEqual(
    report.warnings
      .map(({ code, message }) => [code, /note \(40\)/.test(message)])
      .filter(([code]) => code === 'data.columns.unused'),
    [['data.columns.unused', true]],
  );
  assert.deepEqual(
    [report.shapes, report.examples, report.tokens.learned],
    [{ completion: 40 }, 40, found.learned],
  );
  assert.equal(steps.length, found.data.stepsPerEpoch, 'one epoch was trained');
  assert.equal(steps.slice(0, 20).length > 1 && steps.every((tokens) => tokens > 0), true);
  assert.ok(
    found.same && found.data.digest === report.digest && found.data.seqLen === report.seqLen,
  );
});

test('a run reads several files, weighted mixtures, validation data and Parquet', async () => {
  const found = await inPage(
    async ({ tabtune, failure, bytesOf }, { weights, parquet, run }) => {
      const model = await tabtune.openModel(new File([bytesOf(weights)], 'tiny.gguf'));
      const rows = (/** @type {string} */ letter, /** @type {number} */ count) =>
        new File(
          Array.from({ length: count }, (_, row) => `{"text":"${letter} ${row}"}\n`),
          `${letter}.jsonl`,
        );
      const [a, b, validationData] = [rows('a', 30), rows('b', 30), rows('c', 5)];
      /** @param {import('tabtune').DataInput} data @param {import('tabtune').TrainOptions & { validationData?: File }} options */
      const counted = async (data, options = {}) => {
        const given = { model, packing: false, learningRate: 1e-3, ...options };
        const { files, examples, validation, windows } = (await tabtune.inspectData(data, given))
          .report;
        const names = files.map(({ name, rows }) => `${name} ${rows}`).join();
        return [names, examples, validation, windows];
      };
      const summaries = await tabtune.inspectData([a, b], {});
      const mixture = [
        { files: a, weight: 2 },
        { files: [b], weight: 0.5 },
      ];
      const counts = {
        both: await counted([a, b], { validationData }),
        mixed: await counted(mixture),
        drawn: await counted([a, b], { validationFraction: 0.25 }),
      };
      const both = { model, validationData, validationFraction: 0.5 };
      const refused = await failure(tabtune.inspectData([a, b], both));
      const tables = [];
      for (const [name, content] of Object.entries(parquet)) {
        const [file] = await tabtune.inspectData(new File([bytesOf(content)], name), {});
        const { form, rows, columns, shapes } = file;
        tables.push([file.name, form, rows, columns.join(), shapes]);
      }
      const short = new File([bytesOf(parquet['rows.parquet']).slice(0, 300)], 'rows.parquet');
      const cut = await failure(tabtune.inspectData(short, {}));
      const data = [{ files: a, weight: 2 }, b];
      const options = { ...run, keepData: true, steps: 4 };
      const trainer = await tabtune.Trainer.create({ model, data, validationData, ...options });
      /** @param {import('tabtune').Trainer} trainer @param {number} [maxSteps] */
      const lossesOf = async (trainer, maxSteps) => {
        const losses = [];
        for await (const event of trainer.run({ maxSteps }))
          if (event.type === 'step') losses.push(event.loss);
        return losses;
      };
      await lossesOf(trainer, 2);
      await trainer.save();
      const losses = await lossesOf(trainer);
      const evaluated = (await trainer.evaluate()).loss;
      const { digest } = trainer.data;
      await trainer.dispose();
      const resumed = await tabtune.Trainer.resume({ run: trainer.runId });
      const again = await lossesOf(resumed);
      const same = resumed.data.digest === digest && (await resumed.evaluate()).loss === evaluated;
      await resumed.dispose();
      const names = summaries.map(({ name, rows }) => [name, rows]);
      return { summaries: names, counts, refused, tables, cut: cut.word, losses, again, same };
    },
    {
      weights: MODEL,
      parquet: { 'rows.parquet': base64('rows.parquet'), 'chats.parquet': base64('chats.parquet') },
      run: RUN,
    },
  );
  assert.deepEqual(found.summaries, [
    ['a.jsonl', 30],
    ['b.jsonl', 30],
  ]);
  assert.deepEqual(found.counts, {
    both: ['a.jsonl 30,b.jsonl 30', 60, 5, 60],
    mixed: ['a.jsonl 30,b.jsonl 30', 60, 0, 75],
    drawn: ['a.jsonl 30,b.jsonl 30', 45, 15, 45],
  });
  assert.match(found.refused.message, /validation_?[fF]raction/);
  assert.deepEqual(found.tables, [
    ['rows.jsonl', 'jsonl', 3, 'prompt,completion,n,when', { completion: 3 }],
    ['chats.jsonl', 'jsonl', 2, 'messages', { chat: 2 }],
  ]);
  assert.equal(found.cut, 'data.parquet');
  assert.equal(found.losses.length, 2);
  assert.deepEqual(found.losses, found.again, 'the same data, from what the run has kept');
  assert.ok(found.same);
});

test('tokens of large data are stored in a file, and give the same steps as in memory', async () => {
  const found = await inPage(
    async ({ tabtune, bytesOf, losses, pause }, { weights, run }) => {
      // More ids than are kept in memory.
      const tokens = Uint32Array.from(
        { length: 9 * 2 ** 20 },
        (_, at) => ((at * 2_654_435_761) >>> 8) % 200,
      );
      const files = async () => {
        const home = await navigator.storage.getDirectory();
        const folder = await home.getDirectoryHandle('tabtune-tokens', { create: true });
        let count = 0;
        for await (const _ of folder.keys()) count++;
        return count;
      };
      const [runs, opened] = /** @type {[object[], number[]]} */ ([[], []]);
      for (const workerUrl of [undefined, '/no-files.js']) {
        const weightsFile = new File([bytesOf(weights)], 'tiny.gguf');
        const model = await tabtune.openModel(weightsFile, { workerUrl });
        const options = { ...run, seqLen: 32, validationFraction: 0.0001 };
        const trainer = await tabtune.Trainer.create({ model, data: { tokens }, ...options });
        opened.push(await files());
        const found = await losses(trainer, 3);
        const { loss } = await trainer.evaluate();
        const { digest } = trainer.data;
        runs.push({ losses: found, loss, tokens: trainer.data.tokens.total, digest });
        await trainer.dispose();
        for (let wait = 0; wait < 40 && (await files()) > 0; wait++) await pause(100);
      }
      return { runs, opened, left: await files() };
    },
    { weights: MODEL, run: RUN },
  );
  const [stored, inMemory] = /** @type {{ tokens: number }[]} */ (found.runs);
  assert.ok(stored.tokens > 8 * 2 ** 20, `${stored.tokens} tokens`);
  assert.deepEqual(stored, inMemory);
  assert.deepEqual([found.opened, found.left], [[1, 0], 0]);
});

test('the texts of a folder are read, and its other entries are reported as skipped', async () => {
  const found = await inPage(async ({ tabtune, bytesOf }, weights) => {
    const home = await navigator.storage.getDirectory();
    const folder = await home.getDirectoryHandle('texts', { create: true });
    /** @param {FileSystemDirectoryHandle} into @param {string} name */
    const write = async (into, name) => {
      const writable = await (await into.getFileHandle(name, { create: true })).createWritable();
      await writable.write('to be read '.repeat(40));
      await writable.close();
    };
    for (const name of ['b.md', 'a.txt', 'rows.csv', '.hidden.txt']) await write(folder, name);
    await write(await folder.getDirectoryHandle('more', { create: true }), 'c.txt');
    const model = await tabtune.openModel(new File([bytesOf(weights)], 'tiny.gguf'));
    const { report } = await tabtune.inspectData(folder, { model, seqLen: 16 });
    const summaries = await tabtune.inspectData(folder, {});
    await model.dispose();
    return { report, summaries };
  }, MODEL);
  const { files, warnings } = found.report;
  assert.deepEqual(
    files.map(({ name }) => name),
    ['a.txt', 'b.md'],
  );
  const [skipped, ...others] = warnings.filter(({ code }) => code === 'data.folder');
  assert.deepEqual(others, []);
  assert.match(skipped.message, /not read: more, rows\.csv\.$/);
  assert.deepEqual(
    found.summaries.map(({ name, warnings }) => [name, ...warnings.map((each) => each.message)]),
    [['a.txt', skipped.message], ['b.md']],
  );
  assert.equal(found.summaries[0].warnings[0].code, 'data.folder');
});
