/** tabtune/testing as the tests of an app use it. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { newModel, openModel, openSavedRuns, Trainer } from '../src/index.js';
import type { CreateOptions, Model, TrainerEvent } from '../src/index.js';
import { startTesting } from '../src/testing.js';
import type { TestFailure, Testing, TestingOptions } from '../src/testing.js';
import { indexedDB, navigator } from '../src/testing/environment.js';
import { recovers } from './testing-example.js';

const DATA = { text: 'A sentence of some length to learn from. '.repeat(20) };
const SHAPE = { hiddenSize: 8, numHiddenLayers: 1, numAttentionHeads: 2 };

let testing: Testing;
// The package's build gives these to the worker alone.
beforeEach(() => {
  vi.stubGlobal('navigator', navigator);
  vi.stubGlobal('indexedDB', indexedDB);
});
afterEach(async () => {
  await testing?.close();
  vi.unstubAllGlobals();
});

const fresh = (): Promise<Model> => newModel(SHAPE, DATA, { worker: testing.worker });
async function trainerOf(options: Partial<CreateOptions> = {}): Promise<Trainer> {
  const model = await fresh();
  return Trainer.create({ model, data: DATA, steps: 6, seqLen: 16, logEvery: 1, ...options });
}
async function eventsOf(trainer: Trainer): Promise<TrainerEvent[]> {
  const all: TrainerEvent[] = [];
  for await (const event of trainer.run()) all.push(event);
  return all;
}
const lossesOf = (events: TrainerEvent[]): Map<number, number> =>
  new Map(events.flatMap((event) => (event.type === 'step' ? [[event.step, event.loss]] : [])));
const codesOf = (events: TrainerEvent[]): string[] =>
  events.flatMap((event) =>
    event.type === 'warning' ? [event.code] : event.type === 'state' ? [event.state] : [],
  );

describe('testing', () => {
  it('readme_sample_is_the_tested_file_and_runs', async () => {
    const readme = readFileSync(new URL('../npm/README.md', import.meta.url), 'utf8');
    const example = readFileSync(new URL('./testing-example.ts', import.meta.url), 'utf8');
    expect(readme).toContain(example.trim());
    await recovers();
  });
  it('losses_are_the_chosen_ones', async () => {
    testing = startTesting({ loss: (step) => 3 / step, evalLoss: (step) => step });
    await using trainer = await trainerOf({ steps: 3 });
    expect([...lossesOf(await eventsOf(trainer))]).toEqual([
      [1, 3],
      [2, 1.5],
      [3, 1],
    ]);
    expect((await trainer.evaluate()).loss).toBe(3);
  });
  it('a_loss_that_is_not_finite_ends_the_run', async () => {
    testing = startTesting({ loss: (step) => (step < 3 ? 1 : NaN) });
    await using trainer = await trainerOf();
    await expect(eventsOf(trainer)).rejects.toMatchObject({ code: 'NON_FINITE' });
    expect(trainer.completedSteps).toBe(2);
  });
  it.each<[TestFailure['code'], string[]]>([
    ['DEVICE_LOST', ['recovering', 'device.lost', 'run.recovered', 'done']],
    ['WORKER_CRASHED', ['recovering', 'core.panic', 'run.recovered', 'done']],
    ['OUT_OF_MEMORY', ['recovering', 'paused']],
  ])('a_run_recovers_from_%s', async (code, expected) => {
    testing = startTesting({ loss: (step) => 3 / step });
    testing.fail('step', { at: 4, code });
    await using trainer = await trainerOf();
    const events: TrainerEvent[] = [];
    for await (const event of trainer.run()) {
      events.push(event);
      if (event.type === 'state' && event.state === 'paused') break;
    }
    expect(codesOf(events)).toEqual(expect.arrayContaining(expected));
    if (expected.includes('done')) expect(lossesOf(events).get(6)).toBe(0.5);
  });
  it.each(['open', 'create', 'resume', 'step', 'evaluate', 'sample', 'export'] as const)(
    'a_failure_of_%s_rejects_that_call_once',
    async (call) => {
      testing = startTesting();
      const { worker } = testing;
      const file = new File(['GGUF and more'], 'a.gguf');
      const code = call === 'open' ? 'BAD_MODEL_FILE' : 'BAD_OPTION';
      const failure = { code, message: `no ${call}`, detail: { path: 'x' } } as const;
      const calls = {
        open: () => openModel(file, { worker }),
        create: () => trainerOf(),
        resume: () => Trainer.resume({ run, worker }),
        step: () => trainer.step(),
        evaluate: () => trainer.evaluate(),
        sample: () => trainer.sample('A', { maxTokens: 2 }).next(),
        export: () => trainer.export(),
      };
      const trainer = await trainerOf();
      const run = trainer.runId;
      await trainer.step();
      await trainer.save();
      if (call === 'resume') await trainer.dispose();
      testing.fail(call, failure);
      await expect(calls[call]()).rejects.toMatchObject({
        code,
        message: `no ${call}`,
        detail: { path: 'x' },
      });
      await calls[call]();
      await trainer.dispose();
    },
  );
  it('runs_are_saved_listed_and_continued_until_it_is_closed', async () => {
    testing = startTesting({ stepMillis: 20 });
    const { worker } = testing;
    const trainer = await trainerOf();
    for await (const event of trainer.run()) if (event.type === 'step' && event.step === 3) break;
    expect(trainer.state).toBe('paused');
    await trainer.save();
    await trainer.dispose();
    {
      using runs = await openSavedRuns({ worker });
      expect(await runs.list()).toMatchObject([
        { run: trainer.runId, step: trainer.completedSteps },
        { run: trainer.runId, step: 0 },
      ]);
    }
    await using again = await Trainer.resume({ run: trainer.runId, worker });
    expect(codesOf(await eventsOf(again))).toContain('done');
    expect((await again.export()).size).toBeGreaterThan(0);
    await again.dispose();
    await testing.close();
    testing = startTesting();
    using runs = await openSavedRuns({ worker: testing.worker });
    expect(await runs.list()).toEqual([]);
  });
  it('a_full_storage_refuses_saves_and_the_run_continues', async () => {
    testing = startTesting({ freeBytes: 0 });
    await using trainer = await trainerOf();
    expect(codesOf(await eventsOf(trainer))).toEqual(
      expect.arrayContaining(['storage.quota', 'done']),
    );
    await expect(trainer.save()).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    testing.configure({ freeBytes: undefined });
    await trainer.save();
  });
  it('a_slow_step_can_be_aborted', async () => {
    testing = startTesting();
    await using trainer = await trainerOf();
    testing.configure({ stepMillis: 20 });
    const controller = new AbortController();
    const stepping = trainer.step(6, { signal: controller.signal });
    setTimeout(() => controller.abort(), 30);
    await expect(stepping).rejects.toMatchObject({ name: 'AbortError' });
    expect(trainer.completedSteps).toBeLessThan(6);
  });
  it('without_a_gpu_a_run_is_refused', async () => {
    testing = startTesting({ gpu: false });
    await expect(trainerOf()).rejects.toMatchObject({ code: 'NO_ADAPTER' });
  });
  it.each<[string, () => void]>([
    ['losss', () => testing.configure({ losss: 1 } as TestingOptions)],
    ['loss', () => testing.configure({ loss: 1 } as unknown as TestingOptions)],
    ['stepMillis', () => testing.configure({ stepMillis: NaN })],
    ['call', () => testing.fail('train' as 'step', { code: 'DEVICE_LOST' })],
    ['code', () => testing.fail('step', { code: 'LOST' } as unknown as TestFailure)],
    ['code', () => testing.fail('open', { code: 'DEVICE_LOST' })],
    ['at', () => testing.fail('step', { code: 'DEVICE_LOST', at: -1 })],
  ])('a_wrong_%s_is_refused', (path, act) => {
    testing = startTesting();
    expect(act).toThrow(
      expect.objectContaining({
        code: 'BAD_OPTION',
        detail: { code: 'option.invalid', path },
      }) as Error,
    );
  });
  it('starts_once_at_a_time', () => {
    testing = startTesting();
    expect(() => startTesting()).toThrow('Close it first.');
  });
});
