import { describe, expect, it, vi } from 'vitest';

import { inspectFiles, newModel, openModel, openSavedRuns, Trainer } from '../src/index.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { fake, wait } from '../src/testing/fake-calls.js';
import type { CallName } from '../src/testing/fake-calls.js';
import { lossesOf } from './losses.js';
import { SHAPE, TEXT, collect, trainerOf } from './runs.js';

/** Aborts once the core is in a call of that name. */
function abortIn(call: CallName, at = 0): AbortSignal {
  const controller = new AbortController();
  fake.onCall = (called) => {
    if (called.call === call && called.at >= at) controller.abort();
  };
  return controller.signal;
}
const ABORTED = { name: 'AbortError', code: 'ABORTED', detail: { code: 'call.aborted' } };
async function quickly(work: Promise<unknown>): Promise<void> {
  const begun = performance.now();
  await expect(work).rejects.toMatchObject(ABORTED);
  // The promise is 500 ms; a machine that runs all tests at once is slower.
  expect(performance.now() - begun).toBeLessThan(1500);
}

describe('abort', () => {
  it.each([
    [
      'evaluate',
      'evaluate',
      (trainer: Trainer, signal: AbortSignal) => trainer.evaluate({ signal }),
    ],
    ['sample', 'token', (trainer: Trainer, signal: AbortSignal) => collectTokens(trainer, signal)],
    ['save', 'chunk', (trainer: Trainer, signal: AbortSignal) => trainer.save({ signal })],
    ['export', 'chunk', (trainer: Trainer, signal: AbortSignal) => trainer.export({ signal })],
    ['step', 'step', (trainer: Trainer, signal: AbortSignal) => trainer.step(3, { signal })],
    ['profile', 'step', (trainer: Trainer, signal: AbortSignal) => trainer.profile(3, { signal })],
    [
      'load',
      'resume',
      (trainer: Trainer, signal: AbortSignal) => trainer.checkpoints.load({ signal }),
    ],
  ] as const)('of_%s_leaves_the_state_of_the_last_whole_step', async (_, where, call) => {
    await using whole = await trainerOf();
    const expected = lossesOf(await whole.step(3));
    await using trainer = await trainerOf();
    await trainer.step(2);
    fake.stepMillis = 40;
    await quickly(call(trainer, abortIn(where)));
    fake.onCall = undefined;
    fake.stepMillis = 0;
    const [next] = await trainer.step();
    expect([next?.step, next?.loss]).toEqual([3, expected.get(3)]);
    expect(started.filter(({ terminated }) => terminated)).toEqual([]);
  });
  it('of_a_run_ends_within_a_micro_batch', async () => {
    await using whole = await trainerOf({ gradientAccumulationSteps: 20 });
    const expected = lossesOf(await whole.step(4));
    await using trainer = await trainerOf({ gradientAccumulationSteps: 20 });
    fake.stepMillis = 2000;
    await trainer.save();
    const begun = performance.now();
    const controller = new AbortController();
    const run = collect(trainer.run({ signal: controller.signal }));
    setTimeout(() => controller.abort(), 50);
    await expect(run).rejects.toMatchObject(ABORTED);
    expect(performance.now() - begun).toBeLessThan(600);
    fake.stepMillis = 0;
    expect(lossesOf(await trainer.step(4))).toEqual(expected);
  });
  it('of_a_waiting_call_does_not_touch_the_one_that_runs', async () => {
    fake.stepMillis = 30;
    await using trainer = await trainerOf();
    await trainer.save();
    const run = trainer.step(2);
    const controller = new AbortController();
    const evaluated = trainer.evaluate({ signal: controller.signal });
    setTimeout(() => controller.abort(), 5);
    await expect(evaluated).rejects.toMatchObject(ABORTED);
    expect((await run).map(({ step }) => step)).toEqual([1, 2]);
  });
  it.each([
    [
      'evaluate',
      'evaluate',
      (trainer: Trainer, signal: AbortSignal) => trainer.evaluate({ signal }),
    ],
    ['sample', 'token', (trainer: Trainer, signal: AbortSignal) => collectTokens(trainer, signal)],
  ] as const)(
    'of_%s_settles_while_the_device_still_compiles_and_the_next_call_waits_for_it',
    async (_, where, call) => {
      await using trainer = await trainerOf();
      await trainer.step(2);
      let compiled = false;
      fake.onCall = async ({ call }) => {
        if (call === 'step') expect(compiled).toBe(true);
        if (call !== where) return;
        await wait(1000);
        compiled = true;
      };
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      await expect(call(trainer, controller.signal)).rejects.toMatchObject(ABORTED);
      expect(compiled).toBe(false);
      const [next] = await trainer.step();
      expect([next?.step, compiled]).toEqual([3, true]);
      fake.onCall = undefined;
    },
  );
  it('of_create_leaves_the_model_usable_and_of_resume_releases_the_lock', async () => {
    using model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const options = { model, data: TEXT, steps: 10, seqLen: 16 };
    fake.stepMillis = 40;
    await quickly(Trainer.create({ ...options, signal: abortIn('create') }));
    fake.onCall = undefined;
    const trainer = await Trainer.create(options);
    await trainer.save();
    await trainer.dispose();
    await quickly(
      Trainer.resume({ run: trainer.runId, worker: fakeWorker, signal: abortIn('resume') }),
    );
    fake.onCall = undefined;
    await using second = await Trainer.resume({ run: trainer.runId, worker: fakeWorker });
    expect(second.completedSteps).toBe(0);
  });
  it('of_a_core_that_does_not_yield_ends_its_worker', async () => {
    using model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const controller = new AbortController();
    fake.onCall = ({ call }) => (call === 'create' ? wait(5000) : undefined);
    const created = Trainer.create({
      model,
      data: TEXT,
      steps: 10,
      seqLen: 16,
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(), 20);
    await quickly(created);
    fake.onCall = undefined;
    expect(started[0]?.terminated).toBe(true);
    // The model is opened again when it is needed.
    expect(await model.tokenize('ab')).toEqual([97, 98]);
  });
  it('of_open_inspect_and_import', async () => {
    const aborted = AbortSignal.abort();
    const files = [new File(['GGUF....'], 'a.gguf')];
    await quickly(openModel(files, { worker: fakeWorker, signal: aborted }));
    await quickly(inspectFiles(files, { worker: fakeWorker, signal: aborted }));
    await using trainer = await trainerOf();
    await trainer.save();
    const file = await trainer.checkpoints.exportFile();
    using runs = await openSavedRuns({ worker: fakeWorker });
    const read = Object.getOwnPropertyDescriptor(Blob.prototype, 'arrayBuffer')
      ?.value as () => Promise<ArrayBuffer>;
    const slow = vi.spyOn(Blob.prototype, 'arrayBuffer').mockImplementation(async function (
      this: Blob,
    ) {
      await wait(20);
      return read.call(this);
    });
    const controller = new AbortController();
    const imported = runs.importFile(file, {
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await quickly(imported);
    slow.mockRestore();
  });
});

async function collectTokens(trainer: Trainer, signal: AbortSignal): Promise<void> {
  for await (const token of trainer.sample('x', { maxTokens: 50, signal }))
    expect(token.text).toHaveLength(1);
}

describe('inspect', () => {
  it('gives_the_cores_report_of_each_file_without_a_gpu', async () => {
    const { files } = await inspectFiles(
      [new File(['GGUF....'], 'a.gguf'), new File(['{}'], '__proto__')],
      { worker: fakeWorker },
    );
    expect(files.map(({ file }) => file)).toEqual(['a.gguf', '__proto__']);
    expect(files[0]).toMatchObject({
      format: 'gguf',
      ok: true,
      stage: 'ok',
      tensors: 1,
      inventory: [{ name: 'GGUF', shape: [8] }],
    });
    expect(started.map(({ initialised, terminated }) => [initialised, terminated])).toEqual([
      [0, true],
    ]);
  });
});
