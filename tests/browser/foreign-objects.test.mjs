// Objects that another library has modified: proxies, and prototypes with additional properties.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
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

test('methods that a library puts on prototypes change nothing', async () => {
  const seen = await inPage(
    scenario(`
      // Keys of data and files, and options that were not given.
      const KEYS = ['name', 'text', 'read', 'kind', 'extend', 'label', 'tokenizer', 'wasmUrl', 'workerUrl', 'wasmBinary', 'worker', 'generation', 'adapter', 'keepData', 'onProgress', 'weightDecay'];
      const groups = [{ pattern: '*norm*', learningRateScale: 0.5 }, { pattern: '*' }];
      const losses = async () => {
        const trainer = await create(tabtune, { ...argument, options: { ...argument.options, groups } });
        const found = (await trainer.step(2)).map(({ loss }) => loss);
        const { files } = await trainer.exportFiles({ format: 'safetensors', card: { license: 'mit' } }).then((files) => ({ files: files.length }));
        const told = [trainer.dataName, trainer.runId.length];
        await trainer.dispose();
        return [...found, files, ...told];
      };
      const truth = await losses();
      Array.prototype.toJSON = function () { return 'a list'; };
      Object.prototype.toJSON = function () { return 'an object'; };
      for (const key of KEYS) Object.prototype[key] = key;
      let polluted;
      try {
        polluted = await losses();
      } finally {
        delete Array.prototype.toJSON;
        for (const key of ['toJSON', ...KEYS]) delete Object.prototype[key];
      }
      return { truth, polluted };
    `),
    OPTIONS,
  );
  assert.deepEqual(seen.polluted, seen.truth);
});
