// Objects that another library has modified: proxies, and prototypes with additional properties.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { scenario } from './calls.mjs';
import { RUN, scenarios, SHAPE, TEXT } from './scenario.mjs';

const { inPage } = scenarios({ folders: { '/vue/': 'node_modules/vue/dist' } });
const OPTIONS = { shape: SHAPE, text: TEXT, options: RUN };

test('objects survive the proxies of Vue', async () => {
  const seen = await inPage(
    scenario(`
      const { reactive, ref } = await import('/vue/vue.runtime.esm-browser.prod.js');
      const model = ref(await tabtune.newModel(argument.shape, { text: argument.text }));
      const tokens = await model.value.tokenize('It');
      const state = reactive({ trainer: null, options: { ...argument.options, groups: [{ pattern: '*', learningRateScale: 0.5 }] }, runs: await tabtune.openSavedRuns() });
      state.trainer = await tabtune.Trainer.create({ model: model.value, data: reactive({ text: argument.text }), ...state.options });
      const [step] = await state.trainer.step(1);
      await state.trainer.save();
      const [saved, listed] = [(await ref(state.trainer.checkpoints).value.list()).length, (await state.runs.list(state.trainer.runId)).length];
      await state.trainer.dispose();
      state.runs.dispose();
      const other = ref(await tabtune.newModel(argument.shape, { text: argument.text }));
      other.value.dispose();
      return { tokens: tokens.length, step: step.step, saved, listed, workers: workers.size };
    `),
    OPTIONS,
  );
  assert.deepEqual(seen, { tokens: 2, step: 1, saved: 2, listed: 2, workers: 0 });
});

/** Names of all options, from the interfaces of the package. */
const OPTION_NAMES = ['page', 'protocol/generated'].flatMap((room) =>
  readdirSync(join(root, 'web/src', room))
    .filter((file) => file.endsWith('.ts'))
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
  const seen = await inPage(
    scenario(`
      const all = async (iterator) => {
        const found = [];
        for await (const one of iterator) found.push(Object.hasOwn(one, 'type') ? one.type : one.text);
        return found;
      };
      const { shape, text, options } = argument;
      // Each call with no options, or with an object that has none.
      const told = async () => {
        const said = [];
        const note = (what) => said.push(what);
        const data = { text };
        note((await tabtune.support()).storage.locks);
        const model = await tabtune.newModel(shape, data);
        note([model.info.config, await model.tokenize('It')]);
        note(await tabtune.inspectData(data));
        note((await tabtune.inspectData(data, { model })).report.digest);
        note(await tabtune.Trainer.estimate(model));
        note(await model.previewSchedule({ steps: 4 }, 4));
        const trainer = await tabtune.Trainer.create({ model, data, ...options });
        note([await all(trainer.run({ maxSteps: 2 })), trainer.completedSteps]);
        note([(await trainer.step()).length, (await trainer.evaluate()).loss, await all(trainer.sample('It'))]);
        note((await trainer.evaluateRows({ text: '{"text":"It is"}', name: 'rows.jsonl' }, { metric: () => 1 })).loss);
        note((await trainer.profile(1)).steps);
        const { generation, label } = await trainer.save();
        note([generation, label, (await trainer.checkpoints.list()).length, (await trainer.checkpoints.exportFile()).name]);
        await trainer.checkpoints.load();
        const fork = await trainer.checkpoints.fork();
        note(fork.label);
        note([await all(trainer.run()), trainer.completedSteps]);
        const files = await trainer.exportFiles({ card: { license: 'mit' } });
        note((await tabtune.verifyFiles(files.map(({ name, blob }) => new File([blob], name)))).ok);
        const { runId } = trainer;
        await trainer.dispose();
        const runs = await tabtune.openSavedRuns();
        const { blob } = await runs.exportFile(runId);
        await runs.remove(fork.run);
        note([(await runs.list(runId)).length, (await runs.history(runId)).length]);
        const resumed = await tabtune.Trainer.resume({ run: runId });
        note(resumed.completedSteps);
        await resumed.dispose();
        await runs.remove(runId);
        note((await runs.importFile(blob)).step);
        await runs.remove(runId);
        runs.dispose();
        const folder = files.map(({ name, blob: bytes }) => new File([bytes], name));
        note((await tabtune.inspectFiles(folder)).kind);
        const opened = await tabtune.openModel(folder);
        note([opened.info.architecture, opened.warnings, (await opened.tensor(opened.info.tensors[0].name)).shape]);
        note([(await opened.score('It is')).loss, (await opened.exportFiles()).map(({ name }) => name)]);
        opened.dispose();
        note((await tabtune.extractAdapter({ tuned: folder, base: folder, r: 1 })).files.length);
        return said;
      };
      const truth = await told();
      for (const name of argument.names) Object.prototype[name] = 5;
      Array.prototype.toJSON = Object.prototype.toJSON = () => 'none';
      let polluted;
      try {
        polluted = await told();
      } catch (thrown) {
        polluted = [String(thrown), thrown.stack];
      } finally {
        for (const name of ['toJSON', ...argument.names]) delete Object.prototype[name];
        delete Array.prototype.toJSON;
      }
      return { truth, polluted };
    `),
    {
      shape: { ...SHAPE, numHiddenLayers: 1 },
      text: TEXT.slice(0, 300),
      options: { ...RUN, steps: 5, batchSize: 1, seqLen: 8, groups },
      names,
    },
  );
  assert.ok(seen.truth.length > 15);
  assert.deepEqual(seen.polluted, seen.truth);
});
