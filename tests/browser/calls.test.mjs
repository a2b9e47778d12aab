// Calls at their edges: counts, aborts, wrong values, and a browser that does not answer.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenario } from './calls.mjs';
import { RUN, scenarios, SHAPE, TEXT } from './scenario.mjs';

const { inPage } = scenarios({
  scripts: {
    '/late.js': { text: "import '/dist/worker.js';", millis: 5000 },
    // The answer of the browser never comes.
    '/no-storage.js': { text: "import '/stops-storage.js'; import '/dist/worker.js';" },
    '/stops-storage.js': {
      text: `const open = IDBFactory.prototype.open;
        IDBFactory.prototype.open = function (...given) {
          const request = open.apply(this, given);
          if (given[0] === 'tabtune') for (const type of ['success', 'error', 'blocked']) request.addEventListener(type, (event) => event.stopImmediatePropagation());
          return request;
        };`,
    },
    '/no-gpu.js': { text: "import '/stops-gpu.js'; import '/dist/worker.js';" },
    '/stops-gpu.js': { text: 'GPU.prototype.requestAdapter = () => new Promise(() => undefined);' },
  },
});
const OPTIONS = { shape: SHAPE, text: TEXT, options: RUN };
/** The result with a storage and a GPU that do not answer: it is awaited during the other tests, from the first on. */
let hanging;
test.beforeAll(() => {
  hanging = inPage(NO_ANSWER, OPTIONS);
  hanging.catch(() => undefined);
});

const NO_ANSWER = scenario(`
      const { text, shape, options } = argument;
      const withoutGpu = (async () => {
        const other = await tabtune.newModel(shape, { text }, { workerUrl: '/no-gpu.js' });
        const gpu = await failure(tabtune.Trainer.create({ model: other, data: { text }, ...options }));
        other.dispose();
        const saved = await tabtune.openSavedRuns({ workerUrl: '/no-gpu.js' });
        const listed = await saved.list();
        saved.dispose();
        return { gpu, listed: listed.length };
      })();
      const model = await tabtune.newModel(shape, { text }, { workerUrl: '/no-storage.js' });
      const trainer = await tabtune.Trainer.create({ model, data: { text }, ...options, steps: 2 });
      const begun = performance.now();
      const events = [];
      for await (const event of trainer.run()) events.push(event);
      const list = await failure(trainer.checkpoints.list());
      await trainer.dispose();
      const { gpu, listed } = await withoutGpu;
      const warnings = events.filter(({ type }) => type === 'warning').map(({ code }) => code);
      return { steps: events.filter(({ type }) => type === 'step').length, warnings, took: performance.now() - begun, list, gpu, listed, workers: workers.size };
    `);

test('counts are limited, and an invalid request does not end a trainer', async () => {
  const seen = await inPage(
    scenario(`
      const trainer = await create(tabtune, { ...argument, options: { ...argument.options, warmupSteps: 0, lrScheduler: { type: 'linear', totalSteps: 2 ** 53 - 1 }, steps: 2 ** 53 - 1 } });
      const refused = [await failure(trainer.previewSchedule(1e9)), await failure(trainer.previewSchedule(2 ** 53 - 1)), await failure(trainer.previewSchedule(5, 0))];
      const model = await tabtune.newModel(argument.shape, { text: argument.text });
      refused.push(await failure(model.previewSchedule({}, 1e9)));
      model.dispose();
      const strided = await trainer.previewSchedule(2 ** 53 - 1, 2 ** 52);
      const many = (await trainer.previewSchedule(1e9, 1e4)).length;
      const [step] = await trainer.step(1);
      const left = [trainer.state, step.step];
      await trainer.dispose();
      return { refused, strided, many, left };
    `),
    OPTIONS,
  );
  for (const refused of seen.refused) assert.equal(refused[0], 'BAD_OPTION');
  assert.match(seen.refused[0][2], /at most 100000 rates; a stride of 10000 gives so many/);
  assert.deepEqual([seen.many, seen.left], [1e5, ['paused', 1]]);
  const [first, middle] = seen.strided;
  assert.ok(Math.abs(middle / first - 0.5) < 1e-12, `${seen.strided}`);
});

test('an abort takes effect at every stage, and an aborted signal starts nothing', async () => {
  const seen = await inPage(
    scenario(`
      const { text, shape, options } = argument;
      const calls = {
        newModel: (more) => tabtune.newModel(shape, { text }, more),
        inspectFiles: (more) => tabtune.inspectFiles(new Blob(['GGUF']), more),
        verifyFiles: (more) => tabtune.verifyFiles(new Blob(['GGUF']), undefined, more),
        openModel: (more) => tabtune.openModel(new Blob(['GGUF']), more),
        extractAdapter: (more) => tabtune.extractAdapter({ tuned: new Blob(['GGUF']), base: new Blob(['GGUF']), r: 1, ...more }),
        measureGpu: (more) => tabtune.measureGpu(more),
        openSavedRuns: (more) => tabtune.openSavedRuns(more),
        resume: (more) => tabtune.Trainer.resume({ run: 'none', ...more }),
      };
      const heard = {};
      for (const [name, call] of Object.entries(calls)) {
        const before = workers.size;
        const early = (await failure(call({ signal: AbortSignal.abort() })))[0];
        const started = workers.size - before;
        const begun = performance.now();
        const late = (await failure(call({ workerUrl: '/late.js', signal: AbortSignal.timeout(100) })))[0];
        heard[name] = [early, started, late, performance.now() - begun < 2000, workers.size];
      }
      const endless = { name: 'e', size: 8, read: () => new Promise(() => undefined) };
      heard.read = (await failure(tabtune.newModel(shape, endless, { signal: AbortSignal.timeout(100) })))[0];
      const trainer = await create(tabtune, { ...argument, options: { ...options, steps: 500 } });
      const aborted = { signal: AbortSignal.abort() };
      heard.trainer = [];
      for (const call of [() => trainer.step(1, aborted), () => trainer.run(aborted).next(), () => trainer.profile(1, aborted), () => trainer.evaluate(aborted), () => trainer.sample('It', aborted).next(), () => trainer.save(aborted), () => trainer.export(aborted), () => trainer.checkpoints.load(undefined, aborted)]) heard.trainer.push((await failure(call))[0]);
      heard.steps = [(await trainer.step(1))[0].step, trainer.state];
      // A paused run waits until it continues: an abort ends the wait.
      const controller = new AbortController();
      const drive = async () => { for await (const event of trainer.run({ signal: controller.signal })) if (event.type === 'step') { await trainer.pause(); setTimeout(() => controller.abort(), 100); } };
      heard.paused = [(await failure(drive))[0], trainer.state];
      await trainer.dispose();
      return heard;
    `),
    OPTIONS,
  );
  const { trainer, read, steps, paused, ...calls } = seen;
  for (const [name, heard] of Object.entries(calls))
    assert.deepEqual(heard, ['ABORTED', 0, 'ABORTED', true, 0], name);
  assert.deepEqual([...new Set(trainer)], ['ABORTED']);
  assert.deepEqual([read, steps, paused], ['ABORTED', [1, 'paused'], ['ABORTED', 'paused']]);
});

test('invalid arguments throw a TabtuneError and leave no worker', async () => {
  const seen = await inPage(
    scenario(`
      const { text, shape, options } = argument;
      const controller = new AbortController();
      const file = new Blob(['GGUF']);
      const calls = {
        'openModel: nothing': () => tabtune.openModel(),
        'openModel: a text': () => tabtune.openModel('model.gguf'),
        'openModel: no options': () => tabtune.openModel(file, null),
        'openModel: a controller': () => tabtune.openModel(file, { signal: controller }),
        'openModel: onProgress': () => tabtune.openModel(file, { onProgress: 5 }),
        'openModel: wasmUrl': () => tabtune.openModel(file, { wasmUrl: 'http://[' }),
        'openModel: wasmUrl kind': () => tabtune.openModel(file, { wasmUrl: 5 }),
        'openModel: workerUrl': () => tabtune.openModel(file, { workerUrl: 'http://[' }),
        'openModel: wasmBinary': () => tabtune.openModel(file, { wasmBinary: new Uint8Array(3) }),
        'openModel: worker': () => tabtune.openModel(file, { worker: {} }),
        'openModel: no worker': () => tabtune.openModel(file, { worker: () => undefined }),
        'openModel: percent': () => tabtune.openModel(new URL('data:text/plain,100%')),
        'openModel: reader': () => tabtune.openModel({ name: 5, size: 1, read: () => new Uint8Array(1) }),
        'openModel: request': () => tabtune.openModel(file, { request: 5 }),
        'openModel: option': () => tabtune.openModel(file, { sginal: undefined }),
        'newModel: nothing': () => tabtune.newModel(),
        'newModel: shape': () => tabtune.newModel(null, { text }),
        'newModel: data': () => tabtune.newModel(shape, 5),
        'inspectFiles: read': () => tabtune.inspectFiles(file, { read: 'yes' }),
        'inspectFiles: list': () => tabtune.inspectFiles([file, 5]),
        'verifyFiles: receipt': () => tabtune.verifyFiles(file, 5),
        'extractAdapter: nothing': () => tabtune.extractAdapter(),
        'extractAdapter: target': () => tabtune.extractAdapter({ tuned: file, base: file, r: 1, target: {} }),
        'extractAdapter: stand-in': () => tabtune.extractAdapter({ tuned: file, base: file, r: 1, target: { kind: 'file', createWritable() {} } }),
        'measureGpu: options': () => tabtune.measureGpu(5),
        'openSavedRuns: options': () => tabtune.openSavedRuns(5),
        'openSavedRuns: key': () => tabtune.openSavedRuns({ wsamUrl: 'x' }),
        'create: nothing': () => tabtune.Trainer.create(),
        'create: model': () => tabtune.Trainer.create({ model: {}, data: { text } }),
        'resume: nothing': () => tabtune.Trainer.resume(),
        'resume: run': () => tabtune.Trainer.resume({ run: 5 }),
        'resume: generation': () => tabtune.Trainer.resume({ run: 'a', generation: 'b' }),
        'estimate: model': () => tabtune.Trainer.estimate({}),
      };
      const told = {};
      for (const [name, call] of Object.entries(calls)) told[name] = await failure(call);
      const model = await tabtune.newModel(shape, { text });
      const wrong = { label: 5, seed: 'x', groups: 5, onProgress: 'f', signal: {}, keepData: 1, adapter: 5, lrScheduler: 'cosine', steps: -1, batchSize: 2 ** 40, seqLen: 2 ** 31, nonsense: 1 };
      for (const [key, value] of Object.entries(wrong)) told['create: ' + key] = await failure(() => tabtune.Trainer.create({ model, data: { text }, ...options, [key]: value }));
      told['tensor'] = await failure(() => model.tensor(5));
      told['tokenize'] = await failure(() => model.tokenize(5));
      told['model.previewSchedule'] = await failure(() => model.previewSchedule(null, 5));
      told['model.export'] = await failure(() => model.export(5));
      const trainer = await tabtune.Trainer.create({ model, data: { text }, ...options });
      const more = {
        step: () => trainer.step('a'), 'step options': () => trainer.step(1, null), run: () => trainer.run(null).next(), 'run key': () => trainer.run({ steps: 5 }).next(), profile: () => trainer.profile(0),
        evaluate: () => trainer.evaluate({ maxBatch: 5 }), 'evaluate count': () => trainer.evaluate({ maxBatches: -1 }), sample: () => trainer.sample(5).next(), 'sample prompt': () => trainer.sample('日本').next(),
        'sample options': () => trainer.sample('It', { temperature: 'hot' }).next(), rate: () => trainer.setLearningRate('x'), preview: () => trainer.previewSchedule('x'), save: () => trainer.save(5),
        export: () => trainer.export({ format: 'zip' }), exportTo: () => trainer.exportTo(5), load: () => trainer.checkpoints.load('a'), keep: () => trainer.checkpoints.keep('a'), fork: () => trainer.checkpoints.fork(5),
        remove: () => trainer.checkpoints.remove('a'), exportFile: () => trainer.checkpoints.exportFile('a'), exportFolder: () => trainer.checkpoints.exportFolder({}), importFile: () => trainer.checkpoints.importFile([5]),
        'importFile text': () => trainer.checkpoints.importFile('a'),
      };
      for (const [name, call] of Object.entries(more)) told[name] = await failure(call);
      const [step] = await trainer.step(1);
      await trainer.dispose();
      const absent = await failure(tabtune.Trainer.resume({ run: 'none' }));
      return { told, step: step.step, absent, workers: workers.size };
    `),
    OPTIONS,
  );
  for (const [name, told] of Object.entries(seen.told)) {
    assert.ok(Array.isArray(told), `${name}: ${told}`);
    assert.ok(
      ['BAD_OPTION', 'LIMIT_EXCEEDED', 'BAD_MODEL_FILE'].includes(told[0]),
      `${name}: ${told}`,
    );
    assert.doesNotMatch(told[2], /JsValue|DataCloneError|undefined is not/, name);
  }
  assert.equal(seen.told['sample prompt'][1], 'prompt');
  assert.deepEqual([seen.step, seen.absent[0], seen.workers], [1, 'CHECKPOINT_CORRUPT', 0]);
});

test('a prompt that cannot be tokenized disables samples and not the run', async () => {
  const seen = await inPage(
    scenario(`
      const trainer = await create(tabtune, { ...argument, options: { ...argument.options, steps: 2, sampleEvery: 1, samplePrompt: '日本' } });
      const events = [];
      for await (const event of trainer.run()) events.push(event);
      await trainer.dispose();
      return { steps: events.filter(({ type }) => type === 'step').length, told: events.filter(({ type }) => type === 'warning').map(({ code, message }) => code + ': ' + message) };
    `),
    OPTIONS,
  );
  assert.equal(seen.steps, 2);
  assert.ok(
    seen.told.some((told) =>
      /^run\.sample: a sample failed, and the run continues: samplePrompt/.test(told),
    ),
    `${seen.told}`,
  );
});

test('storage and a GPU that do not answer are reported, and stop nothing else', async () => {
  const seen = await hanging;
  assert.equal(seen.steps, 2);
  assert.ok(seen.warnings.includes('storage.blocked'), `${seen.warnings}`);
  assert.ok(seen.took < 40_000, `${seen.took}`);
  assert.deepEqual(seen.list.slice(0, 2), ['STORAGE_BLOCKED', 'storage.blocked']);
  assert.deepEqual(seen.gpu.slice(0, 2), ['NO_ADAPTER', 'device.no-adapter']);
  assert.ok(seen.listed >= 0);
  assert.equal(seen.workers, 0);
});
