// Training data in a real browser: a run learns exactly what was shown before it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios({
  scripts: {
    '/no-files.js': { text: "import '/stops-files.js'; import '/dist/worker.js';" },
    '/stops-files.js': {
      text: "navigator.storage.getDirectory = () => Promise.reject(new DOMException('none', 'SecurityError'));",
    },
  },
});

/** A model with a vocabulary of bytes. */
const MODEL = readFileSync(join(root, 'tests/golden/lora/tiny.gguf')).toString('base64');
const RUN = { steps: 6, batchSize: 2, learningRate: 1e-3, autosave: false, keepData: false };

test('inspectData shows the contents of data, and a run learns what was shown', async () => {
  const found = await inPage(
    `async (tabtune, { weights, run }) => {
      const model = await tabtune.openModel(new File([Uint8Array.from(atob(weights), (c) => c.charCodeAt(0))], 'tiny.gguf'));
      const rows = Array.from({ length: 40 }, (_, row) => ({ question: 'How many is ' + row + '?', answer: ' It is ' + row + '.', note: row }));
      const file = (name, text) => new File([text], name);
      const lines = rows.map((row) => JSON.stringify(row)).join('\\n');
      const table = ['question,answer,note', ...rows.map(({ question, answer, note }) => [question, answer, note].join(','))].join('\\n');
      const pack = (text) => new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))).blob();
      const packed = await pack(lines);
      const columns = { prompt: 'question', completion: 'answer' };
      const [summary] = await tabtune.inspectData(file('rows.txt', table), {});
      const refused = await tabtune.inspectData(file('rows.jsonl', lines), { model }).catch(({ code, detail, message }) => ({ code: [code, detail.code], message }));
      const digests = [];
      const half = rows.length / 2;
      const members = await Promise.all([rows.slice(0, half), rows.slice(half)].map((part) => pack(part.map((row) => JSON.stringify(row) + '\\n').join(''))));
      const padded = new File([...members, new Uint8Array(512)], 'members.gz');
      for (const data of [file('rows.jsonl', lines), file('rows.csv', table), file('rows', JSON.stringify(rows)), new File([packed], 'rows.jsonl.gz'), padded]) {
        digests.push((await tabtune.inspectData(data, { model, columns })).report.digest);
      }
      const cut = await tabtune.inspectData(new File([packed.slice(0, 60)], 'rows.jsonl.gz'), { model, columns }).catch(({ detail }) => detail.code);
      const trailing = (await tabtune.inspectData(new File([packed, 'more'], 'rows.jsonl.gz'), {}))[0].warnings.map(({ code }) => code);
      const beginning = await tabtune.inspectData(new File([packed], 'rows.jsonl.gz'), { model, columns, bytes: Math.floor(packed.size / 2) });
      const large = file('large.jsonl', (lines + '\\n').repeat(20_000));
      const began = performance.now();
      const part = await tabtune.inspectData(large, { model, columns, bytes: 2 ** 18 });
      const partSecs = (performance.now() - began) / 1000;
      const { report, preview } = await tabtune.inspectData(file('rows.jsonl', lines), { model, columns, show: 40, batchSize: run.batchSize });
      const trainer = await tabtune.Trainer.create({ model, data: file('rows.jsonl', lines), columns, dataOrder: 'sequential', epochs: 1, ...run, steps: undefined });
      const steps = [];
      for await (const event of trainer.run()) if (event.type === 'step') steps.push(event.tokens);
      const same = JSON.stringify(await trainer.previewData(40)) === JSON.stringify(preview);
      const { data } = trainer;
      await trainer.dispose();
      return { summary, refused, digests, cut, trailing, beginning: beginning.report.files[0].rows, large: large.size, part: part.report.files, partSecs, report, learned: preview.flatMap(({ segments }) => segments).filter(({ learned }) => learned).flatMap(({ tokens }) => tokens).length, steps, same, data };
    }`,
    { weights: MODEL, run: RUN },
  );
  assert.deepEqual(
    [found.summary.form, found.summary.rows, found.summary.columns, found.summary.shapes],
    ['csv', 40, ['question', 'answer', 'note'], { faulty: 40 }],
  );
  assert.deepEqual(found.refused.code, ['BAD_OPTION', 'data.shape']);
  assert.match(found.refused.message, /"prompt": "question", "completion": "answer"/);
  assert.equal(new Set(found.digests).size, 1, 'each form gives the same examples');
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
    found.large > 40e6 && found.part[0].rows > 1000 && found.part[0].rows < 6000,
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

const PARQUET = ['rows', 'chats'].map((name) =>
  readFileSync(join(root, `tests/golden/${name}.parquet`)).toString('base64'),
);

test('a run reads several files, weighted mixtures, validation data and Parquet', async () => {
  const found = await inPage(
    `async (tabtune, { weights, parquet, run }) => {
      const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const model = await tabtune.openModel(new File([bytes(weights)], 'tiny.gguf'));
      const rows = (letter, count) => Array.from({ length: count }, (_, row) => JSON.stringify({ text: letter + ' ' + row }) + '\\n').join('');
      const [a, b, held] = [['a.jsonl', rows('a', 30)], ['b.jsonl', rows('b', 30)], ['held.jsonl', rows('c', 5)]].map(([name, text]) => new File([text], name));
      const told = async (data, options = {}) => {
        const { report } = await tabtune.inspectData(data, { model, packing: false, ...options });
        return [report.files.map(({ name, rows }) => name + ' ' + rows).join(), report.examples, report.validation, report.windows];
      };
      const summaries = await tabtune.inspectData([a, b], {});
      const both = await told([a, b], { validationData: held });
      const mixed = await told([{ files: a, weight: 2 }, { files: [b], weight: 0.5 }]);
      const drawn = await told([a, b], { validationFraction: 0.25 });
      const refused = await tabtune.inspectData([a, b], { model, validationData: held, validationFraction: 0.5 }).catch(({ message }) => message);
      const tables = [];
      for (const [name, at] of [['rows.parquet', 0], ['chats.parquet', 1]]) {
        const [file] = await tabtune.inspectData(new File([bytes(parquet[at])], name), {});
        tables.push([file.name, file.form, file.rows, file.columns.join(), JSON.stringify(file.shapes)]);
      }
      const cut = await tabtune.inspectData(new File([bytes(parquet[0]).slice(0, 300)], 'rows.parquet'), {}).catch(({ detail }) => detail.code);
      const run_ = { ...run, keepData: true, steps: 4, dataWeights: undefined };
      const trainer = await tabtune.Trainer.create({ model, data: [{ files: a, weight: 2 }, b], validationData: held, ...run_ });
      const losses = [];
      for await (const event of trainer.run({ maxSteps: 2 })) if (event.type === 'step') losses.push(event.loss);
      await trainer.save();
      for await (const event of trainer.run()) if (event.type === 'step') losses.push(event.loss);
      const evaluated = (await trainer.evaluate()).loss;
      const [name, digest] = [trainer.runId, trainer.data.digest];
      await trainer.dispose();
      const resumed = await tabtune.Trainer.resume({ run: name });
      const again = [];
      for await (const event of resumed.run()) if (event.type === 'step') again.push(event.loss);
      const same = resumed.data.digest === digest && (await resumed.evaluate()).loss === evaluated;
      await resumed.dispose();
      return { summaries: summaries.map(({ name, rows }) => [name, rows]), both, mixed, drawn, refused, tables, cut, losses, again, same };
    }`,
    { weights: MODEL, parquet: PARQUET, run: RUN },
  );
  assert.deepEqual(found.summaries, [
    ['a.jsonl', 30],
    ['b.jsonl', 30],
  ]);
  assert.deepEqual(found.both, ['a.jsonl 30,b.jsonl 30', 60, 5, 60]);
  assert.deepEqual(found.mixed, ['a.jsonl 30,b.jsonl 30', 60, 0, 75]);
  assert.deepEqual(found.drawn, ['a.jsonl 30,b.jsonl 30', 45, 15, 45]);
  assert.match(found.refused, /validation_?[fF]raction/);
  assert.deepEqual(found.tables, [
    ['rows.jsonl', 'jsonl', 3, 'prompt,completion,n,when', '{"completion":3}'],
    ['chats.jsonl', 'jsonl', 2, 'messages', '{"chat":2}'],
  ]);
  assert.equal(found.cut, 'data.parquet');
  assert.deepEqual(found.losses.slice(2), found.again, 'the same data, from what the run has kept');
  assert.ok(found.same);
});

test('tokens of large data are stored in a file, and give the same steps as in memory', async () => {
  const found = await inPage(
    `async (tabtune, { weights, run }) => {
      const bytes = Uint8Array.from(atob(weights), (c) => c.charCodeAt(0));
      // More ids than are kept in memory.
      const ids = Uint32Array.from({ length: 9 * 2 ** 20 }, (_, at) => ((at * 2_654_435_761) >>> 8) % 200);
      const files = async () => {
        const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('tabtune-tokens', { create: true });
        const names = [];
        for await (const [name, handle] of folder.entries()) names.push(handle);
        return names.length;
      };
      const [runs, opened] = [[], []];
      for (const workerUrl of [undefined, '/no-files.js']) {
        const model = await tabtune.openModel(new File([bytes], 'tiny.gguf'), { workerUrl });
        const trainer = await tabtune.Trainer.create({ model, data: { tokens: ids }, ...run, seqLen: 32, validationFraction: 0.0001 });
        const open = await files();
        const losses = [];
        for await (const event of trainer.run({ maxSteps: 3 })) if (event.type === 'step') losses.push(event.loss);
        const { loss } = await trainer.evaluate();
        opened.push(open);
        runs.push({ losses, loss, tokens: trainer.data.tokens.total, digest: trainer.data.digest });
        await trainer.dispose();
        for (let wait = 0; wait < 40 && (await files()) > 0; wait++) await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return { runs, opened, left: await files() };
    }`,
    { weights: MODEL, run: RUN },
  );
  const [one, other] = found.runs;
  assert.ok(one.tokens > 8 * 2 ** 20, `${one.tokens} tokens`);
  assert.deepEqual(one, other);
  assert.deepEqual([found.opened, found.left], [[1, 0], 0]);
});

test('the texts of a folder are read, and its other entries are reported as skipped', async () => {
  const found = await inPage(
    `async (tabtune, { weights }) => {
      const bytes = Uint8Array.from(atob(weights), (c) => c.charCodeAt(0));
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('texts', { create: true });
      const write = async (into, name) => {
        const writable = await (await into.getFileHandle(name, { create: true })).createWritable();
        await writable.write('to be read '.repeat(40));
        await writable.close();
      };
      for (const name of ['b.md', 'a.txt', 'rows.csv', '.hidden.txt']) await write(folder, name);
      await write(await folder.getDirectoryHandle('more', { create: true }), 'c.txt');
      const model = await tabtune.openModel(new File([bytes], 'tiny.gguf'));
      const { report } = await tabtune.inspectData(folder, { model, seqLen: 16 });
      const summaries = await tabtune.inspectData(folder, {});
      await model.dispose();
      return { summaries: summaries.map(({ name, warnings }) => [name, ...warnings.map(({ code, message }) => code + ': ' + message)]), files: report.files.map(({ name }) => name), warnings: report.warnings.filter(({ code }) => code === 'data.folder').map(({ message }) => message) };
    }`,
    { weights: MODEL },
  );
  assert.deepEqual(found.files, ['a.txt', 'b.md']);
  assert.equal(found.warnings.length, 1);
  assert.match(found.warnings[0], /not read: more, rows\.csv\.$/);
  assert.deepEqual(found.summaries, [['a.txt', `data.folder: ${found.warnings[0]}`], ['b.md']]);
});
