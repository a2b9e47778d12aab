// Calls at their edges: counts, aborts, wrong values, and a browser that does not answer.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenarios, setting } from './scenario.mjs';

const { inPage } = scenarios({
  scripts: {
    '/late.js': { millis: 5000 },
    '/no-storage.js': {
      // The answer of the browser never comes.
      work: () => {
        const { open } = IDBFactory.prototype;
        IDBFactory.prototype.open = function (name, version) {
          const request = open.call(this, name, version);
          if (name === 'tabtune')
            for (const type of ['success', 'error', 'blocked'])
              request.addEventListener(type, (event) => event.stopImmediatePropagation());
          return request;
        };
      },
    },
    '/no-gpu.js': { work: () => (GPU.prototype.requestAdapter = () => new Promise(() => null)) },
  },
});

/** The result with a storage and a GPU that do not answer: it is awaited during the other tests, from the first on. */
let hanging = /** @type {Promise<any>} */ (Promise.resolve());
test.beforeAll(() => {
  hanging = inPage(async ({ tabtune, failure, openWorkers }, { text, shape, options }) => {
    const workers = openWorkers();
    const withoutGpu = async () => {
      const workerUrl = '/no-gpu.js';
      const model = await tabtune.newModel(shape, { text }, { workerUrl });
      const gpu = await failure(tabtune.Trainer.create({ model, data: { text }, ...options }));
      await model.dispose();
      const saved = await tabtune.openSavedRuns({ workerUrl });
      const listed = (await saved.list()).length;
      await saved.dispose();
      return { gpu, listed };
    };
    const other = withoutGpu();
    const model = await tabtune.newModel(shape, { text }, { workerUrl: '/no-storage.js' });
    const data = { text };
    const trainer = await tabtune.Trainer.create({ model, data, ...options, steps: 2 });
    const begun = performance.now();
    const events = [];
    for await (const event of trainer.run()) events.push(event);
    const list = await failure(trainer.checkpoints.list());
    await trainer.dispose();
    const steps = events.filter(({ type }) => type === 'step').length;
    const warnings = events.flatMap((event) => (event.type === 'warning' ? event.code : []));
    const took = performance.now() - begun;
    return { steps, warnings, took, list, ...(await other), workers: workers.size };
  }, setting());
  hanging.catch(() => undefined);
});

test('counts are limited, and an invalid request does not end a trainer', async () => {
  const last = 2 ** 53 - 1;
  const seen = await inPage(
    async ({ tabtune, create, failure }, { last, ...argument }) => {
      const trainer = await create(argument);
      const model = await tabtune.newModel(argument.shape, { text: argument.text });
      const refused = [
        await failure(trainer.previewSchedule(1e9)),
        await failure(trainer.previewSchedule(last)),
        await failure(trainer.previewSchedule(5, { stride: 0 })),
        await failure(model.previewSchedule({}, 1e9)),
      ];
      await model.dispose();
      const strided = await trainer.previewSchedule(last, { stride: 2 ** 52 });
      const many = (await trainer.previewSchedule(1e9, { stride: 1e4 })).length;
      const [step] = await trainer.step(1);
      const left = [trainer.state, step.step];
      await trainer.dispose();
      return { refused, strided, many, left };
    },
    {
      ...setting({
        warmupSteps: 0,
        steps: last,
        lrScheduler: { type: 'linear', totalSteps: last },
      }),
      last,
    },
  );
  for (const refused of seen.refused) assert.equal(refused.code, 'BAD_OPTION');
  assert.match(seen.refused[0].message, /at most 100000 rates; a stride of 10000 gives so many/);
  assert.deepEqual([seen.many, seen.left], [1e5, ['paused', 1]]);
  const [first, middle] = seen.strided;
  assert.ok(Math.abs(middle / first - 0.5) < 1e-12, `${seen.strided}`);
});

test('an abort takes effect at every stage, and an aborted signal starts nothing', async () => {
  const { calls, read, begun, steps, paused } = await inPage(
    async ({ tabtune, create, failure, openWorkers }, argument) => {
      const { text, shape } = argument;
      const workers = openWorkers();
      const gguf = new Blob(['GGUF']);
      /** @type {Record<string, (more: import('tabtune').Call & import('tabtune').WorkerOptions) => Promise<unknown>>} */
      const all = {
        newModel: (more) => tabtune.newModel(shape, { text }, more),
        inspectFiles: (more) => tabtune.inspectFiles(gguf, more),
        verifyFiles: (more) => tabtune.verifyFiles(gguf, more),
        readTensor: (more) => tabtune.readTensor(gguf, 'a', more),
        deriveDelta: (more) => tabtune.deriveDelta(gguf, gguf, more),
        applyDelta: (more) => tabtune.applyDelta(gguf, gguf, more),
        openModel: (more) => tabtune.openModel(gguf, more),
        extractAdapter: (more) =>
          tabtune.extractAdapter({ tuned: gguf, base: gguf, r: 1, ...more }),
        measureGpu: (more) => tabtune.measureGpu(more),
        openSavedRuns: (more) => tabtune.openSavedRuns(more),
        resume: (more) => tabtune.Trainer.resume({ run: 'none', ...more }),
      };
      const calls = [];
      for (const [name, call] of Object.entries(all)) {
        const before = workers.size;
        const early = await failure(call({ signal: AbortSignal.abort() }));
        const started = workers.size - before;
        const begun = performance.now();
        const late = await failure(
          call({ workerUrl: '/late.js', signal: AbortSignal.timeout(100) }),
        );
        const soon = performance.now() - begun < 2000;
        calls.push([name, early.code, started, late.code, soon, workers.size]);
      }
      const endless = { name: 'e', size: 8, read: () => new Promise(() => undefined) };
      const read = await failure(
        tabtune.newModel(shape, /** @type {any} */ (endless), { signal: AbortSignal.timeout(100) }),
      );
      const trainer = await create(argument);
      const aborted = { signal: AbortSignal.abort() };
      const begun = [];
      for (const call of [
        () => trainer.step(1, aborted),
        () => trainer.run(aborted).next(),
        () => trainer.profile(1, aborted),
        () => trainer.evaluate(aborted),
        () => trainer.sample('It', aborted).next(),
        () => trainer.save(aborted),
        () => trainer.export(aborted),
        () => trainer.checkpoints.load(aborted),
      ])
        begun.push((await failure(call)).code);
      const steps = [(await trainer.step(1))[0].step, trainer.state];
      // A paused run waits until it continues: an abort ends the wait.
      const controller = new AbortController();
      const drive = async () => {
        for await (const event of trainer.run({ signal: controller.signal })) {
          if (event.type !== 'step') continue;
          await trainer.pause();
          setTimeout(() => controller.abort(), 100);
        }
      };
      const paused = [(await failure(drive)).code, trainer.state];
      await trainer.dispose();
      return { calls, read: read.code, begun, steps, paused };
    },
    setting({ steps: 500 }),
  );
  for (const [name, ...found] of calls)
    assert.deepEqual(found, ['ABORTED', 0, 'ABORTED', true, 0], `${name}`);
  assert.deepEqual([...new Set(begun)], ['ABORTED']);
  assert.deepEqual([read, steps, paused], ['ABORTED', [1, 'paused'], ['ABORTED', 'paused']]);
});

test('invalid arguments throw a TabtuneError and leave no worker', async () => {
  const seen = await inPage(async ({ tabtune, failure, openWorkers }, { text, shape, options }) => {
    const workers = openWorkers();
    /** @type {Record<string, any>} */
    const { openModel, newModel, inspectFiles, verifyFiles, extractAdapter, ...rest } = tabtune;
    const { measureGpu, openSavedRuns, Trainer } = rest;
    const file = new Blob(['GGUF']);
    const pair = { tuned: file, base: file, r: 1 };
    const given = { model: {}, data: { text } };
    const openOptions = {
      none: null,
      controller: { signal: new AbortController() },
      onProgress: { onProgress: 5 },
      wasmUrl: { wasmUrl: 'http://[' },
      'wasmUrl kind': { wasmUrl: 5 },
      workerUrl: { workerUrl: 'http://[' },
      wasmBinary: { wasmBinary: new Uint8Array(3) },
      worker: { worker: {} },
      'no worker': { worker: () => undefined },
      request: { request: 5 },
      option: { sginal: undefined },
    };
    const calls = {
      'openModel: nothing': () => openModel(),
      'openModel: a name': () => openModel('hf:owner/'),
      'openModel: percent': () => openModel(new URL('data:text/plain,100%')),
      'openModel: reader': () => openModel({ name: 5, size: 1, read: () => new Uint8Array(1) }),
      'newModel: nothing': () => newModel(),
      'newModel: shape': () => newModel(null, { text }),
      'newModel: data': () => newModel(shape, 5),
      'inspectFiles: read': () => inspectFiles(file, { read: 'yes' }),
      'inspectFiles: list': () => inspectFiles([file, 5]),
      'verifyFiles: receipt': () => verifyFiles(file, { receipt: 5 }),
      'extractAdapter: nothing': () => extractAdapter(),
      'extractAdapter: to': () => extractAdapter({ ...pair, to: {} }),
      'extractAdapter: stand-in': () =>
        extractAdapter({ ...pair, to: { kind: 'file', createWritable: () => undefined } }),
      'measureGpu: options': () => measureGpu(5),
      'openSavedRuns: options': () => openSavedRuns(5),
      'openSavedRuns: key': () => openSavedRuns({ wsamUrl: 'x' }),
      'create: nothing': () => Trainer.create(),
      'create: model': () => Trainer.create(given),
      'resume: nothing': () => Trainer.resume(),
      'resume: run': () => Trainer.resume({ run: 5 }),
      'resume: generation': () => Trainer.resume({ run: 'a', generation: 'b' }),
      'estimate: model': () => Trainer.estimate({}),
    };
    /** @type {Record<string, Awaited<ReturnType<typeof failure>>>} */
    const failures = {};
    for (const [name, call] of Object.entries(calls)) failures[name] = await failure(call);
    for (const [name, options] of Object.entries(openOptions))
      failures[`openModel options: ${name}`] = await failure(() => openModel(file, options));
    const model = await newModel(shape, { text });
    const wrong = {
      ...{ label: 5, seed: 'x', groups: 5, onProgress: 'f', signal: {}, keepData: 1, adapter: 5 },
      ...{ lrScheduler: 'cosine', steps: -1, batchSize: 2 ** 40, seqLen: 2 ** 31, nonsense: 1 },
    };
    for (const [key, value] of Object.entries(wrong))
      failures[`create: ${key}`] = await failure(() =>
        Trainer.create({ ...given, model, ...options, [key]: value }),
      );
    for (const call of ['tensor', 'tokenize', 'export', 'previewSchedule'])
      failures[`model.${call}`] = await failure(() => model[call](5));
    const trainer = await Trainer.create({ ...given, model, ...options });
    const { checkpoints } = trainer;
    const more = {
      step: () => trainer.step('a'),
      'step options': () => trainer.step(1, null),
      run: () => trainer.run(null).next(),
      'run key': () => trainer.run({ steps: 5 }).next(),
      profile: () => trainer.profile(0),
      evaluate: () => trainer.evaluate({ maxBatch: 5 }),
      'evaluate count': () => trainer.evaluate({ maxBatches: -1 }),
      sample: () => trainer.sample(5).next(),
      'sample prompt': () => trainer.sample('日本').next(),
      'sample options': () => trainer.sample('It', { temperature: 'hot' }).next(),
      rate: () => trainer.setLearningRate('x'),
      preview: () => trainer.previewSchedule('x'),
      save: () => trainer.save(5),
      export: () => trainer.export({ format: 'zip' }),
      exportTo: () => trainer.exportTo(5),
      load: () => checkpoints.load('a'),
      keep: () => checkpoints.keep('a'),
      fork: () => checkpoints.fork(5),
      remove: () => checkpoints.remove('a'),
      exportFile: () => checkpoints.exportFile('a'),
      exportFolder: () => checkpoints.exportFolder({}),
      importFile: () => checkpoints.importFile([5]),
      'importFile text': () => checkpoints.importFile('a'),
    };
    for (const [name, call] of Object.entries(more)) failures[name] = await failure(call);
    const [{ step }] = await trainer.step(1);
    await trainer.dispose();
    const absent = await failure(Trainer.resume({ run: 'none' }));
    return { failures, step, absent: absent.code, workers: workers.size };
  }, setting());
  for (const [name, { code, message }] of Object.entries(seen.failures)) {
    const refusals = ['BAD_OPTION', 'LIMIT_EXCEEDED', 'BAD_MODEL_FILE'];
    assert.ok(refusals.includes(code), `${name}: ${code} ${message}`);
    assert.doesNotMatch(message, /JsValue|DataCloneError|undefined is not/, name);
  }
  assert.equal(seen.failures['sample prompt'].path, 'prompt');
  assert.deepEqual([seen.step, seen.absent, seen.workers], [1, 'CHECKPOINT_CORRUPT', 0]);
});

test('a prompt that cannot be tokenized disables samples and not the run', async () => {
  const { steps, warnings } = await inPage(
    async ({ create }, argument) => {
      const trainer = await create(argument);
      const events = [];
      for await (const event of trainer.run()) events.push(event);
      await trainer.dispose();
      const steps = events.filter(({ type }) => type === 'step').length;
      return { steps, warnings: events.filter((event) => event.type === 'warning') };
    },
    setting({ steps: 2, sampleEvery: 1, samplePrompt: '日本' }),
  );
  assert.equal(steps, 2);
  const reported = warnings.find(({ code }) => code === 'run.sample');
  assert.match(`${reported?.message}`, /^a sample failed, and the run continues: samplePrompt/);
});

test('storage and a GPU that do not answer are reported, and stop nothing else', async () => {
  const seen = await hanging;
  assert.equal(seen.steps, 2);
  assert.ok(seen.warnings.includes('storage.blocked'), `${seen.warnings}`);
  assert.ok(seen.took < 40_000, `${seen.took}`);
  assert.deepEqual([seen.list.code, seen.list.word], ['STORAGE_BLOCKED', 'storage.blocked']);
  assert.deepEqual([seen.gpu.code, seen.gpu.word], ['NO_ADAPTER', 'device.no-adapter']);
  assert.ok(seen.listed >= 0);
  assert.equal(seen.workers, 0);
});
