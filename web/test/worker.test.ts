import { afterEach, describe, expect, it, vi } from 'vitest';

import { VERSION, WASM_HASH } from '../src/protocol/build.js';
import { OWNER } from '../src/protocol/messages.js';
import { PROTOCOL } from '../src/protocol/protocol.js';
import { newModel, openModel, openSavedRuns, Trainer } from '../src/index.js';
import { DeviceWatch } from '../src/worker/device.js';
import { CoreMutex } from '../src/worker/core-mutex.js';
import { Outbox } from '../src/worker/outbox.js';
import { checkWhole } from '../src/protocol/whole.js';
import { channel, fakeWorker, started } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { FakeWorkerState, gpu, gpuScope, workers } from '../src/testing/fake-gpu.js';
import { SHAPE, TEXT, collect, stepsOf, trainerOf } from './runs.js';

afterEach(() => vi.useRealTimers());

describe('device', () => {
  it('without_timestamp_query_all_but_profile_works', async () => {
    gpu.features = new Set();
    await using trainer = await trainerOf();
    expect(stepsOf(await collect(trainer.run({ maxSteps: 3 })))).toEqual([1, 2, 3]);
    expect(gpu.requested).toEqual([[]]);
    await expect(trainer.profile()).rejects.toMatchObject({
      code: 'MISSING_FEATURE',
      detail: { code: 'device.feature', feature: 'timestamp-query' },
    });
    expect((await trainer.step()).map(({ step }) => step)).toEqual([4]);
  });
  it('timestamp_query_is_requested_where_it_exists', async () => {
    await using trainer = await trainerOf();
    expect((await trainer.profile()).timing).toBe('device');
    expect(gpu.requested).toEqual([['timestamp-query']]);
  });
  it('a_device_that_could_not_be_opened_is_requested_again', async () => {
    using model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const options = { model, data: TEXT, steps: 10, seqLen: 16 };
    gpu.absent = true;
    await expect(Trainer.create(options)).rejects.toMatchObject({
      code: 'NO_ADAPTER',
      detail: { code: 'device.no-adapter' },
    });
    gpu.absent = false;
    await using trainer = await Trainer.create(options);
    expect((await trainer.info()).device).toBe('Fake adapter');
    expect(started).toHaveLength(1);
  });
});

describe('mutex', () => {
  it('nothing_of_the_core_begins_with_a_fault_set_and_a_fault_names_what_failed', async () => {
    const watch = new DeviceWatch();
    const adapters = gpuScope(new FakeWorkerState());
    const told: unknown[] = [];
    watch.install(adapters, (error) => told.push(error.code));
    const Adapter = adapters.GPUAdapter as unknown as new () => GPUAdapter;
    const device = await new Adapter().requestDevice({});
    const mutex = new CoreMutex(watch);
    await workers.run({ state: new FakeWorkerState(), scope: adapters }, async () => {
      expect(await mutex.take(() => 1)).toBe(1);
      device.destroy();
      let begun = false;
      // The core's own error for a failed read is less exact.
      await expect(
        mutex.take(() =>
          Promise.reject(Object.assign(new Error('no map'), { kind: 'DEVICE_LOST' })),
        ),
      ).rejects.toMatchObject({ detail: { code: 'device.lost', reason: 'destroyed' } });
      await expect(mutex.take(() => (begun = true))).rejects.toMatchObject({ code: 'DEVICE_LOST' });
      expect([begun, told]).toEqual([false, ['DEVICE_LOST']]);
    });
  });
});

describe('one run, one trainer', () => {
  it('a_second_trainer_of_a_run_is_busy_at_once_until_the_first_is_gone', async () => {
    const first = await trainerOf();
    await first.save();
    const begun = performance.now();
    await expect(Trainer.resume({ run: first.runId, worker: fakeWorker })).rejects.toMatchObject({
      code: 'BUSY',
      detail: { code: 'run.locked' },
    });
    expect(performance.now() - begun).toBeLessThan(100);
    using runs = await openSavedRuns({ worker: fakeWorker });
    await expect(runs.remove(first.runId)).rejects.toMatchObject({ code: 'BUSY' });
    await first.dispose();
    await (await Trainer.resume({ run: first.runId, worker: fakeWorker })).dispose();
    await runs.remove(first.runId);
    expect(await runs.list({ run: first.runId })).toEqual([]);
  });
  it('without_locks_there_is_a_warning', async () => {
    vi.stubGlobal('navigator', {});
    await using trainer = await trainerOf();
    const [warning] = await collect(trainer.run({ maxSteps: 1 }));
    expect(warning).toMatchObject({ type: 'warning', code: 'run.unlocked' });
  });
  it('loading_is_busy_during_a_run_and_saves_unsaved_steps', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf();
    const run = collect(trainer.run());
    await expect(trainer.checkpoints.load()).rejects.toMatchObject({
      code: 'BUSY',
      detail: { code: 'loop.running' },
    });
    await vi.waitFor(() => expect(trainer.completedSteps).toBeGreaterThan(1));
    await trainer.pause();
    const at = trainer.completedSteps;
    await trainer.checkpoints.load({ generation: 1 });
    expect([
      trainer.completedSteps,
      (await trainer.checkpoints.list()).map(({ step }) => step),
    ]).toEqual([0, [at, 0]]);
    await trainer.resume();
    await run;
  });
  it.each([
    [1 << 20, 2],
    [8 * 2 ** 30, 1],
  ])('a_model_of_%i_bytes_is_loaded_beside_at_most_%i_sessions', async (gpuBytes, most) => {
    fake.gpuBytes = gpuBytes;
    await using trainer = await trainerOf();
    await trainer.step(2);
    const before = fake.sessions;
    let seen = 0;
    fake.onCall = ({ call }) => {
      if (call === 'resume') seen = fake.sessions - before + 2;
    };
    await trainer.checkpoints.load({ generation: 1 });
    expect([seen, fake.sessions, trainer.completedSteps]).toEqual([most, before, 0]);
  });
  it('a_load_that_fails_leaves_a_whole_state', async () => {
    fake.gpuBytes = 8 * 2 ** 30;
    await using trainer = await trainerOf();
    await trainer.step(2);
    let once = true;
    fake.onCall = ({ call }) => {
      if (call !== 'resume' || !once) return;
      once = false;
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- as the core does
      throw {
        kind: 'LIMIT_EXCEEDED',
        code: 'device.limit',
        message: 'a buffer is too large',
        limit: 'max_buffer_size',
        need: 2,
        have: 1,
      };
    };
    await expect(trainer.checkpoints.load({ generation: 1 })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: { limit: 'max_buffer_size', need: 2, have: 1 },
    });
    expect((await trainer.step()).map(({ step }) => step)).toEqual([3]);
  });
  it('a_load_aborted_with_one_model_in_memory_restores_the_state_too', async () => {
    Object.assign(fake, { gpuBytes: 8 * 2 ** 30, stepMillis: 40 });
    await using trainer = await trainerOf();
    await trainer.step(2);
    const controller = new AbortController();
    fake.onCall = ({ call }) => call === 'resume' && controller.abort();
    await expect(
      trainer.checkpoints.load({ generation: 1, signal: controller.signal }),
    ).rejects.toMatchObject({ name: 'AbortError' });
    fake.onCall = undefined;
    expect((await trainer.step()).map(({ step }) => step)).toEqual([3]);
  });
  it('other_data_start_at_their_beginning_and_are_kept', async () => {
    const first = await trainerOf();
    await first.step(3);
    await first.save();
    await first.dispose();
    const data = { text: 'Other words altogether. '.repeat(30), name: 'other.txt' };
    const again = { run: first.runId, worker: fakeWorker };
    await expect(Trainer.resume({ ...again, data })).rejects.toMatchObject({
      code: 'CHECKPOINT_MISMATCH',
    });
    await expect(Trainer.resume({ ...again, override: ['data'] })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'data' },
    });
    const second = await Trainer.resume({ ...again, data, override: ['data'] });
    fake.batches = [];
    await second.step(1);
    expect(fake.batches).toEqual([1]);
    expect((await second.save()).dataName).toBe('other.txt');
    await second.dispose();
    await using third = await Trainer.resume(again);
    expect(third.completedSteps).toBe(4);
  });
});

describe('protocol', () => {
  it('a_silent_worker_is_a_crashed_one_after_half_a_minute', async () => {
    vi.useFakeTimers();
    const { port } = channel();
    const opened = newModel(SHAPE, TEXT, { worker: port });
    opened.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(29_900);
    const early = await Promise.race([opened.catch(() => 'ended'), Promise.resolve('waiting')]);
    await vi.advanceTimersByTimeAsync(200);
    expect(early).toBe('waiting');
    await expect(opened).rejects.toMatchObject({
      code: 'WORKER_CRASHED',
      detail: { code: 'worker.silent' },
    });
  });
  it('unknown_tags_and_fields_of_wrong_type_are_protocol', async () => {
    const port = fakeWorker();
    const hello = { protocol: PROTOCOL, version: VERSION, wasmHash: WASM_HASH };
    const requests = {
      'worker.hello': hello,
      'model.surprise': undefined,
      'trainer.evaluate': { maxBatches: 'many' },
    };
    for (const [id, [tag, ask]] of Object.entries(requests).entries())
      port.postMessage({ [OWNER]: 'me', type: 'request', id, tag, ask }, []);
    await vi.waitFor(() => expect(port.received).toHaveLength(3));
    expect(port.received).toMatchObject([
      { type: 'reply', id: 0 },
      { type: 'error', id: 1, error: { code: 'PROTOCOL' } },
      { type: 'error', id: 2, error: { code: 'PROTOCOL' } },
    ]);
  });
  it('the_details_of_a_refusal_cross_from_the_core', async () => {
    await expect(
      openModel(new File(['nonsense'], 'x.bin'), { worker: fakeWorker }),
    ).rejects.toMatchObject({
      code: 'BAD_MODEL_FILE',
      detail: {
        code: 'bundle.unknown',
        path: 'x.bin',
        offset: 4,
        refusal: { artifact: 'x.bin' },
        refusals: [{ code: 'bundle.unknown' }, { code: 'bundle.second' }],
      },
    });
    await expect(trainerOf({ seqLen: 100_000 })).rejects.toMatchObject({
      detail: { code: 'data.too-short', need: 100_001, have: 820 },
    });
    using model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
    expect(model.warnings).toEqual([
      {
        code: 'model.tensor.extra',
        subject: 'rope_freqs.weight',
        message: 'rope_freqs.weight is not used',
      },
    ]);
  });
  it('weights_that_are_not_finite_are_refused_unless_allowed', async () => {
    fake.nonFinite = true;
    await expect(trainerOf()).rejects.toMatchObject({ detail: { code: 'model.non-finite' } });
    await using trainer = await trainerOf({ allowNonFinite: true });
    expect(await trainer.step()).toHaveLength(1);
  });
  it('a_run_posts_at_most_ten_messages_of_events_a_second', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const posts: number[] = [];
    const outbox = new Outbox(() => posts.push(performance.now()), 1);
    for (let step = 1; step <= 3000; step++) {
      outbox.push({
        type: 'step',
        step,
        epoch: 0.5,
        loss: 1,
        gradNorm: 1,
        learningRate: 1,
        tokens: 1,
        secs: 0,
      });
      vi.advanceTimersByTime(1);
    }
    expect(posts.length).toBeLessThanOrEqual(31);
    outbox.close();
    const before = posts.length;
    outbox.push({ type: 'state', state: 'running', step: 1 });
    vi.advanceTimersByTime(1000);
    expect(posts).toHaveLength(before);
  });
  it('data_beyond_the_memory_of_a_tab_are_refused_by_size', () => {
    expect(() => checkWhole('a.txt', 700 << 20)).not.toThrow();
    expect(() => checkWhole('a.txt', 800 << 20)).toThrow(
      expect.objectContaining({ code: 'LIMIT_EXCEEDED' }),
    );
    expect(() => checkWhole('a.tokens', 2000 << 20)).not.toThrow();
  });
});
