import { afterEach, describe, expect, it, vi } from 'vitest';

import { newModel, Trainer } from '../src/index.js';
import type { TrainerEvent } from '../src/index.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { fake, panic } from '../src/testing/fake-calls.js';
import { gpu } from '../src/testing/fake-gpu.js';
import { listened, loseIn } from './losses.js';
import { SHAPE, TEXT, collect, stepsOf, trainerOf } from './runs.js';

afterEach(() => vi.useRealTimers());

/** Lets time pass for timers, with room for work without timers. */
async function pass(millis: number): Promise<void> {
  for (let at = 0; at < millis; at += 25) {
    await vi.advanceTimersByTimeAsync(25);
    for (let turn = 0; turn < 120; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}
const realTimeout = setTimeout;
/** Lets as much real time pass as needed, and hardly any for timers: hashes and the database run at their own pace. */
async function until(test: () => boolean): Promise<void> {
  for (let turn = 0; turn < 900 && !test(); turn++) {
    await vi.advanceTimersByTimeAsync(1);
    await new Promise((resolve) => realTimeout(resolve, 2));
  }
}
/** Returns the result of a promise, however long that takes. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let over = false;
  promise.then(
    () => (over = true),
    () => (over = true),
  );
  await until(() => over);
  return promise;
}
const fakeTime = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
describe('losses that are final', () => {
  it('a_second_loss_waits_and_a_third_within_a_minute_is_gpu_unavailable', async () => {
    fakeTime();
    await using ready = await settled(trainerOf());
    const events = listened(ready);
    const run = collect(ready.run());
    run.catch(() => undefined);
    const count = loseIn('step', 3, 'lost', 3);
    // The first loss is recovered from at once; the second waits a second.
    await until(() => count.happened === 2);
    expect([count.happened, started.length]).toEqual([2, 2]);
    await pass(900);
    expect(started.length).toBe(2);
    await pass(200);
    await until(() => count.happened === 3);
    expect([count.happened, started.length]).toEqual([3, 3]);
    await expect(settled(run)).rejects.toMatchObject({
      code: 'GPU_UNAVAILABLE',
      detail: { code: 'device.unavailable' },
    });
    expect(ready.state).toBe('failed');
    expect(events.at(-1)).toMatchObject({ state: 'failed' });
    // The checkpoints exist, and their run can be opened again.
    expect((await settled(ready.checkpoints.list())).map(({ step }) => step)).toEqual([0]);
  });
  it('without_an_adapter_it_tries_for_a_minute', async () => {
    fakeTime();
    await using ready = await settled(trainerOf());
    const evaluated = ready.evaluate();
    evaluated.catch(() => undefined);
    loseIn('evaluate');
    gpu.absent = true;
    const tries: number[] = [];
    for (let second = 0; second < 62; second++) {
      const before = started.length;
      await pass(1000);
      if (started.length > before) tries.push(second);
    }
    expect(tries).toEqual([0, 1, 3, 7, 15, 31, 60]);
    await expect(settled(evaluated)).rejects.toMatchObject({ code: 'GPU_UNAVAILABLE' });
  });
  it.each([3, 100])(
    'a_worker_that_does_not_start_%i_times_is_tried_for_a_minute',
    async (refusals) => {
      fakeTime();
      let tries = 0;
      const worker = (): Worker => {
        tries += 1;
        if (tries > 1 && tries <= 1 + refusals) throw new Error('gone');
        return fakeWorker();
      };
      await using ready = await settled(
        trainerOf({ model: await settled(newModel(SHAPE, TEXT, { worker })) }),
      );
      await settled(ready.step(3));
      loseIn('evaluate');
      const evaluated = ready.evaluate();
      evaluated.catch(() => undefined);
      await pass(refusals === 3 ? 8_000 : 61_000);
      if (refusals === 3) {
        await expect(settled(evaluated)).resolves.toMatchObject({
          loss: expect.any(Number) as number,
        });
        expect([tries, ready.completedSteps]).toEqual([5, 3]);
        return;
      }
      await expect(settled(evaluated)).rejects.toMatchObject({
        code: 'WORKER_CRASHED',
        detail: { code: 'worker.failed', step: 3 },
      });
      await expect(settled(evaluated)).rejects.toThrow(
        'Reload the page; the last checkpoint is kept.',
      );
      expect([tries, ready.state]).toEqual([8, 'failed']);
    },
  );
  it('an_adapter_that_returns_late_is_used', async () => {
    fakeTime();
    await using ready = await settled(trainerOf());
    const evaluated = ready.evaluate();
    loseIn('evaluate');
    gpu.absent = true;
    setTimeout(() => (gpu.absent = false), 5000);
    await pass(10_000);
    expect(await settled(evaluated)).toMatchObject({ tokens: 4096 });
  });
  it('the_same_trap_twice_without_a_confirmed_step_between_is_final', async () => {
    await using trainer = await trainerOf();
    const count = loseIn('step', 4, 'panic', 9);
    await expect(collect(trainer.run())).rejects.toMatchObject({
      code: 'WORKER_CRASHED',
      detail: { code: 'core.panic', step: 2 },
    });
    expect(count.happened).toBe(2);
    expect(trainer.state).toBe('failed');
  });
  it('traps_with_steps_between_them_are_recovered', async () => {
    await using trainer = await trainerOf();
    const at = new Set([3, 6, 9]);
    fake.onCall = ({ call, at: step, worker }) =>
      call === 'step' && at.delete(step) ? panic(worker) : undefined;
    expect(new Set(stepsOf(await collect(trainer.run()))).size).toBe(10);
    expect(started).toHaveLength(4);
  });
  it('a_refused_shader_is_not_tried_again', async () => {
    await using trainer = await trainerOf();
    fake.onCall = ({ call, at, worker }) => {
      if (call === 'step' && at === 4)
        worker.device?.complain('GPUValidationError', 'Invalid ComputePipeline "adamw_bf16"');
    };
    await expect(collect(trainer.run())).rejects.toMatchObject({
      code: 'SHADER_FAILED',
      detail: { kernel: 'adamw_bf16', step: 2 },
    });
    expect(stepsOf(await trainer.checkpoints.list().then(() => []))).toEqual([]);
    expect([trainer.state, started.filter(({ initialised }) => initialised > 0).length]).toEqual([
      'failed',
      1,
    ]);
  });
  it('too_little_memory_pauses_the_run_in_another_worker_with_proposals', async () => {
    await using trainer = await trainerOf({ saveEvery: 2, batchSize: 8 });
    let once = true;
    fake.onCall = ({ call, at, worker }) => {
      if (call !== 'step' || at !== 4 || !once) return;
      once = false;
      worker.device?.complain('GPUOutOfMemoryError', 'no memory');
    };
    const events: TrainerEvent[] = [];
    for await (const event of trainer.run()) {
      events.push(event);
      if (event.type === 'state' && event.state === 'paused') break;
    }
    expect(started).toHaveLength(2);
    const advice = events.find((event) => event.type === 'warning' && event.code === 'run.memory');
    expect(advice).toMatchObject({ code: 'run.memory' });
    expect(advice?.type === 'warning' && advice.message).toContain(
      'batchSize 4 with gradientAccumulationSteps 2',
    );
    expect([trainer.state, trainer.completedSteps]).toEqual(['paused', 2]);
    expect((await trainer.step()).map(({ step }) => step)).toEqual([3]);
  });
  it('a_worker_of_the_caller_is_not_replaced', async () => {
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker() });
    await using trainer = await Trainer.create({
      model,
      data: TEXT,
      steps: 10,
      seqLen: 16,
      logEvery: 1,
    });
    loseIn('step', 3);
    await expect(collect(trainer.run())).rejects.toMatchObject({ code: 'DEVICE_LOST' });
    expect(trainer.state).toBe('failed');
  });
});
