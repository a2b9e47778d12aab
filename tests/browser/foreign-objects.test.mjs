// Objects that another library has modified: proxies, and prototypes with additional properties.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenarios, setting } from './scenario.mjs';

const { inPage } = scenarios({ folders: { '/vue/': 'node_modules/vue/dist' } });

test('objects survive the proxies of Vue', async () => {
  const seen = await inPage(
    async ({ tabtune, openWorkers }, { shape, text, options }) => {
      const workers = openWorkers();
      /** @type {any} */
      const { reactive, ref } = await import('/vue/vue.runtime.esm-browser.prod.js');
      const model = ref(await tabtune.newModel(shape, { text }));
      const tokens = await model.value.tokenize('It');
      const runs = await tabtune.openSavedRuns();
      const state = reactive({ trainer: null, options, runs });
      const data = reactive({ text });
      const create = { model: model.value, data, ...state.options };
      state.trainer = await tabtune.Trainer.create(create);
      const [{ step }] = await state.trainer.step(1);
      await state.trainer.save();
      const saved = (await ref(state.trainer.checkpoints).value.list()).length;
      const listed = (await state.runs.list({ run: state.trainer.runId })).length;
      await state.trainer.dispose();
      await state.runs.dispose();
      const other = ref(await tabtune.newModel(shape, { text }));
      await other.value.dispose();
      return { tokens: tokens.length, step, saved, listed, workers: workers.size };
    },
    setting({ groups: [{ pattern: '*', learningRateScale: 0.5 }] }),
  );
  assert.deepEqual(seen, { tokens: 2, step: 1, saved: 2, listed: 2, workers: 0 });
});

/** Names of all options, from the interfaces of the package. */
const OPTION_NAMES = ['page', 'protocol/generated'].flatMap((room) =>
  readdirSync(join(root, 'web/src', room))
    // Reports are answers, and no inputs.
    .filter((file) => file.endsWith('.ts') && file !== 'reports.ts')
    .flatMap((file) => [
      ...readFileSync(join(root, 'web/src', room, file), 'utf8').matchAll(
        /^ {2}(\w+)\?: .*\| undefined;$/gm,
      ),
    ])
    .map(([, name]) => name),
);

test('properties that a library adds to prototypes change no call', async () => {
  // Keys of inputs too, which no one gave.
  const names = [...new Set([...OPTION_NAMES, 'kind', 'text', 'extend'])];
  assert.ok(
    names.length > 100 && names.includes('maxSteps') && names.includes('signal'),
    `${names}`,
  );
  const groups = [{ pattern: '*norm*', learningRateScale: 0.5 }, { pattern: '*' }];
  const short = setting({ steps: 5, batchSize: 1, seqLen: 8, groups }, { numHiddenLayers: 1 });
  const seen = await inPage(
    async ({ tabtune, filesOf }, { shape, text, options, names }) => {
      const all = async (/** @type {AsyncIterable<any>} */ iterator) => {
        const found = [];
        for await (const each of iterator)
          found.push(Object.hasOwn(each, 'type') ? each.type : each.text);
        return found;
      };
      // Each call with no options, or with an object that has none.
      const results = async () => {
        const found = [];
        const data = { text };
        found.push((await tabtune.support()).storage.locks);
        const model = await tabtune.newModel(shape, data);
        found.push(model.info.config, await model.tokenize('It'));
        found.push(await tabtune.inspectData(data));
        found.push((await tabtune.inspectData(data, { model })).report.digest);
        found.push(await tabtune.Trainer.estimate(model));
        found.push(await model.previewSchedule({ steps: 4 }, 4));
        // The number of saves does not depend on the time that a run takes.
        const saves = { autosave: false };
        const trainer = await tabtune.Trainer.create({ model, data, ...options, ...saves });
        const { checkpoints, runId } = trainer;
        found.push(await all(trainer.run({ maxSteps: 2 })), trainer.completedSteps);
        found.push((await trainer.step()).length, (await trainer.evaluate()).loss);
        found.push(await all(trainer.sample('It')));
        const rows = { text: '{"text":"It is"}', name: 'rows.jsonl' };
        found.push((await trainer.evaluateRows(rows, { metric: () => 1 })).loss);
        found.push((await trainer.profile(1)).steps);
        const { generation, label } = await trainer.save();
        found.push(generation, label, (await checkpoints.list()).length);
        found.push((await checkpoints.exportFile()).name);
        await checkpoints.load();
        const fork = await checkpoints.fork();
        found.push(fork.label, await all(trainer.run()), trainer.completedSteps);
        const folder = filesOf(await trainer.exportFiles({ card: { license: 'mit' } }));
        found.push((await tabtune.verifyFiles(folder)).ok);
        await trainer.dispose();
        const runs = await tabtune.openSavedRuns();
        const file = await runs.exportFile(runId);
        await runs.remove(fork.run);
        found.push((await runs.list({ run: runId })).length, (await runs.history(runId)).length);
        const resumed = await tabtune.Trainer.resume({ run: runId });
        found.push(resumed.completedSteps);
        await resumed.dispose();
        await runs.remove(runId);
        found.push((await runs.importFile(file)).step);
        await runs.remove(runId);
        await runs.dispose();
        found.push((await tabtune.inspectFiles(folder)).kind);
        const opened = await tabtune.openModel(folder);
        found.push(opened.info.architecture, opened.warnings, (await opened.score('It is')).loss);
        found.push((await opened.tensor(opened.info.tensors[0].name)).shape);
        found.push((await opened.exportFiles()).map(({ name }) => name));
        await opened.dispose();
        const pair = { tuned: folder, base: folder, r: 1 };
        found.push((await tabtune.extractAdapter(pair)).files.length);
        return found;
      };
      const truth = await results();
      const [objects, lists] = /** @type {any[]} */ ([Object.prototype, Array.prototype]);
      for (const name of names) objects[name] = 5;
      lists.toJSON = objects.toJSON = () => 'none';
      let polluted;
      try {
        polluted = await results();
      } catch (/** @type {any} */ thrown) {
        polluted = [String(thrown), thrown.stack];
      } finally {
        for (const name of ['toJSON', ...names]) Reflect.deleteProperty(objects, name);
        delete lists.toJSON;
      }
      return { truth, polluted };
    },
    { ...short, text: short.text.slice(0, 300), names },
  );
  assert.ok(seen.truth.length > 15);
  assert.deepEqual(seen.polluted, seen.truth);
});
