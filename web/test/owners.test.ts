/** A worker serves one model or trainer, a model is handed over once, and foreign messages are ignored. */
import { describe, expect, it } from 'vitest';

import { inspectFiles, newModel, openSavedRuns, Trainer } from '../src/index.js';
import type { CreateOptions } from '../src/index.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { fake, wait } from '../src/testing/fake-calls.js';
import { collect, SHAPE, stepsOf, TEXT, trainerOf } from './runs.js';

const TAKEN = { code: 'BUSY', detail: { code: 'worker.taken' } };
const HANDED = { code: 'BAD_OPTION', detail: { code: 'model.taken' } };
const OPTIONS = { data: TEXT, steps: 10, seqLen: 16, logEvery: 1 } satisfies Partial<CreateOptions>;

describe('dispose', () => {
  it('gives_a_promise_everywhere_and_ends_the_worker', async () => {
    const disposables = [
      await newModel(SHAPE, TEXT, { worker: fakeWorker }),
      await openSavedRuns({ worker: fakeWorker }),
      await trainerOf(),
    ];
    const running = (): number => started.filter(({ terminated }) => !terminated).length;
    const before = running();
    for (const [at, each] of disposables.entries()) {
      const promise: unknown = each.dispose();
      expect(promise).toBeInstanceOf(Promise);
      expect(await promise).toBeUndefined();
      expect(running()).toBe(before - at - 1);
      // Once more is harmless.
      await each[Symbol.asyncDispose]();
    }
  });
  it('is_called_at_the_end_of_using_and_await_using', async () => {
    const before = started.length;
    {
      using model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
      using runs = await openSavedRuns({ worker: fakeWorker });
      await using other = await newModel(SHAPE, TEXT, { worker: fakeWorker });
      await using more = await openSavedRuns({ worker: fakeWorker });
      expect([model, runs, other, more].length).toBe(4);
    }
    const here = started.slice(before);
    expect(here.map(({ terminated }) => terminated)).toEqual([true, true, true, true]);
  });
});

describe('a ready worker', () => {
  it('serves_one_model_until_it_is_given_back', async () => {
    const worker = fakeWorker();
    const first = await newModel(SHAPE, { text: 'abc' }, { worker });
    await expect(newModel(SHAPE, TEXT, { worker })).rejects.toMatchObject(TAKEN);
    await expect(openSavedRuns({ worker })).rejects.toMatchObject(TAKEN);
    await expect(inspectFiles(new File(['GGUF'], 'a.gguf'), { worker })).rejects.toMatchObject(
      TAKEN,
    );
    expect(first.info.vocabSize).toBe(3);
    expect(await first.tokenize('ab')).toEqual([97, 98]);
    await first.dispose();
    using second = await newModel(SHAPE, TEXT, { worker });
    expect(await second.tokenize('b')).toEqual([98]);
  });
  it('has_one_owner_of_two_that_ask_at_once', async () => {
    const worker = fakeWorker();
    const [first, second] = await Promise.allSettled([
      newModel(SHAPE, TEXT, { worker }),
      newModel(SHAPE, { text: 'abc' }, { worker }),
    ]);
    expect(second).toMatchObject({ status: 'rejected', reason: TAKEN });
    if (first.status === 'rejected') throw first.reason;
    expect(first.value.info.parameters).toBeGreaterThan(0);
    await first.value.dispose();
  });
  it('is_not_ended_by_a_second_model_whose_function_returns_it', async () => {
    const port = fakeWorker();
    using first = await newModel(SHAPE, TEXT, { worker: () => port });
    await expect(newModel(SHAPE, TEXT, { worker: () => port })).rejects.toMatchObject(TAKEN);
    expect(await first.tokenize('ab')).toEqual([97, 98]);
  });
  it('released_by_a_running_trainer_serves_the_next_and_keeps_nothing', async () => {
    fake.stepMillis = 5;
    const worker = fakeWorker();
    const model = await newModel(SHAPE, TEXT, { worker });
    const trainer = await Trainer.create({ model, ...OPTIONS });
    const run = collect(trainer.run());
    await wait(20);
    await trainer.dispose();
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    const next = await newModel(SHAPE, TEXT, { worker });
    expect(fake.sessions).toBe(0);
    await using other = await Trainer.create({ model: next, ...OPTIONS });
    expect(stepsOf(await collect(other.run()))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
  it('whose_core_has_crashed_reports_that_to_the_next_owner', async () => {
    const worker = fakeWorker();
    const model = await newModel(SHAPE, TEXT, { worker });
    fake.onCall = ({ call }) => {
      if (call === 'create') throw new WebAssembly.RuntimeError('unreachable');
    };
    await expect(Trainer.create({ model, ...OPTIONS })).rejects.toMatchObject({
      code: 'WORKER_CRASHED',
    });
    await model.dispose();
    await expect(newModel(SHAPE, TEXT, { worker })).rejects.toMatchObject({
      code: 'WORKER_CRASHED',
      detail: { code: 'core.panic' },
    });
  });
});

describe('a model', () => {
  it('is_given_to_one_of_two_trainers_that_ask_at_once', async () => {
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const started = await Promise.allSettled(
      [3, 7].map((steps) => Trainer.create({ model, ...OPTIONS, steps })),
    );
    expect(started[1]).toMatchObject({ status: 'rejected', reason: HANDED });
    const [first] = started;
    if (first?.status !== 'fulfilled') throw first?.reason;
    await using trainer = first.value;
    expect((await trainer.info()).run).toBe(trainer.runId);
    expect(stepsOf(await collect(trainer.run()))).toEqual([1, 2, 3]);
  });
  it('that_is_being_handed_over_answers_afterwards', async () => {
    fake.stepMillis = 40;
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const controller = new AbortController();
    const started = Trainer.create({ model, ...OPTIONS, signal: controller.signal });
    await wait(20);
    const asked = model.tokenize('ab');
    controller.abort();
    await expect(started).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await asked).toEqual([97, 98]);
    const again = Trainer.create({ model, ...OPTIONS });
    await wait(20);
    const late = model.tokenize('ab');
    late.catch(() => undefined);
    await using _ = await again;
    await expect(late).rejects.toMatchObject(HANDED);
  });
});

describe('foreign messages', () => {
  const OTHERS = [
    'hello',
    null,
    7,
    { type: 'fatal' },
    { type: 'events', events: 'none' },
    { tabtune: 'another', type: 'fatal' },
  ];

  it('are_ignored_by_the_page_and_by_the_worker', async () => {
    fake.stepMillis = 2;
    const worker = fakeWorker();
    const model = await newModel(SHAPE, TEXT, { worker });
    await using trainer = await Trainer.create({ model, ...OPTIONS });
    const run = collect(trainer.run());
    for (const data of [
      ...OTHERS,
      { type: 'request', id: 1, tag: 'model.surprise' },
      { type: 'cancel', id: 4 },
    ]) {
      worker.dispatchEvent(Object.assign(new Event('message'), { data }));
      worker.postMessage(data);
      await wait(2);
    }
    worker.dispatchEvent(new Event('messageerror'));
    expect(stepsOf(await run)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(trainer.state).toBe('done');
  });
  it('of_a_worker_of_the_packages_own_are_an_error_if_they_cannot_be_read', async () => {
    const port = fakeWorker();
    await using trainer = await trainerOf({
      model: await newModel(SHAPE, TEXT, { worker: () => port }),
    });
    const evaluated = trainer.evaluate();
    port.dispatchEvent(new Event('messageerror'));
    await expect(evaluated).rejects.toMatchObject({ code: 'PROTOCOL' });
  });
});
