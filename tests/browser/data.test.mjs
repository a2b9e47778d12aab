// Training data in a real browser: what they are learned as is shown before a run, and a run learns just that.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../../web/toolchain.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios();

/** A model with a vocabulary of bytes. */
const MODEL = readFileSync(join(root, 'tests/golden/lora/tiny.gguf')).toString('base64');
const RUN = { steps: 6, batchSize: 2, learningRate: 1e-3, autosave: false, keepData: false };

test('data are shown by their contents, and a run learns what was shown', async () => {
  const found = await inPage(
    `async (tabtune, { weights, run }) => {
      const model = await tabtune.openModel(new File([Uint8Array.from(atob(weights), (c) => c.charCodeAt(0))], 'tiny.gguf'));
      const rows = Array.from({ length: 40 }, (_, row) => ({ question: 'How many is ' + row + '?', answer: ' It is ' + row + '.', note: row }));
      const file = (name, text) => new File([text], name);
      const lines = rows.map((row) => JSON.stringify(row)).join('\\n');
      const table = ['question,answer,note', ...rows.map(({ question, answer, note }) => [question, answer, note].join(','))].join('\\n');
      const packed = await new Response(new Blob([lines]).stream().pipeThrough(new CompressionStream('gzip'))).blob();
      const columns = { prompt: 'question', completion: 'answer' };
      const [summary] = await tabtune.inspectData(file('rows.txt', table), {});
      const refused = await tabtune.inspectData(file('rows.jsonl', lines), { model }).catch(({ code, detail, message }) => ({ code: [code, detail.code], message }));
      const digests = [];
      for (const data of [file('rows.jsonl', lines), file('rows.csv', table), file('rows', JSON.stringify(rows)), new File([packed], 'rows.jsonl.gz')]) {
        digests.push((await tabtune.inspectData(data, { model, columns })).report.digest);
      }
      const cut = await tabtune.inspectData(new File([packed.slice(0, 60)], 'rows.jsonl.gz'), { model, columns }).catch(({ detail }) => detail.code);
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
      return { summary, refused, digests, cut, large: large.size, part: part.report.files, partSecs, report, learned: preview.flatMap(({ segments }) => segments).filter(({ learned }) => learned).flatMap(({ tokens }) => tokens).length, steps, same, data };
    }`,
    { weights: MODEL, run: RUN },
  );
  assert.deepEqual([found.summary.form, found.summary.rows, found.summary.columns, found.summary.shapes], ['csv', 40, ['question', 'answer', 'note'], { faulty: 40 }]);
  assert.deepEqual(found.refused.code, ['BAD_OPTION', 'data.shape']);
  assert.match(found.refused.message, /"prompt": "question", "completion": "answer"/);
  assert.equal(new Set(found.digests).size, 1, 'each form gives the same examples');
  assert.equal(found.cut, 'data.gzip');
  assert.ok(found.large > 40e6 && found.part[0].rows > 1000 && found.part[0].rows < 6000, 'only the beginning of a large file is read');
  assert.ok(found.partSecs < 20, `${found.partSecs} s`);
  const { report, steps } = found;
  assert.deepEqual(report.warnings.map(({ code, message }) => [code, /note \(40\)/.test(message)]).filter(([code]) => code === 'data.columns.unused'), [['data.columns.unused', true]]);
  assert.deepEqual([report.shapes, report.examples, report.tokens.learned], [{ completion: 40 }, 40, found.learned]);
  assert.equal(steps.length, found.data.stepsPerEpoch, 'one epoch was trained');
  assert.equal(steps.slice(0, 20).length > 1 && steps.every((tokens) => tokens > 0), true);
  assert.ok(found.same && found.data.digest === report.digest && found.data.seqLen === report.seqLen);
});
