import { openDB } from 'idb';
import { describe, expect, it, vi } from 'vitest';

import { openSavedRuns, Trainer } from '../src/index.js';
import type { HistoryEntry, TrainerEvent } from '../src/index.js';
import { SaveClock } from '../src/worker/autosave.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { loseIn, warningsOf } from './losses.js';
import { collect, origin, stepsOf, trainerOf } from './runs.js';

const savedSteps = (events: TrainerEvent[]): number[] =>
  events.flatMap((event) => (event.type === 'checkpoint' ? [event.step] : []));

describe('automatic saves', () => {
  it('a_new_run_is_saved_before_its_first_step_and_when_it_is_done', async () => {
    await using trainer = await trainerOf();
    const events = await collect(trainer.run());
    expect(savedSteps(events)).toEqual([0, 10]);
    expect(events.findIndex((event) => event.type === 'checkpoint')).toBeLessThan(
      events.findIndex((event) => event.type === 'step'),
    );
    // Nothing is saved twice.
    await trainer.stop();
    expect(await trainer.checkpoints.list()).toHaveLength(2);
  });
  it('a_trainer_that_never_runs_leaves_nothing', async () => {
    const trainer = await trainerOf();
    await trainer.dispose();
    using runs = await openSavedRuns({ worker: fakeWorker });
    expect(await runs.list({ run: trainer.runId })).toEqual([]);
  });
  it('autosave_false_saves_nothing_and_warns', async () => {
    await using trainer = await trainerOf({ autosave: false });
    const events = await collect(trainer.run());
    expect([savedSteps(events), warningsOf(events)]).toEqual([[], ['run.unprotected']]);
    await expect(trainerOf({ autosave: false, saveEvery: 3 })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'saveEvery' },
    });
    await expect(trainerOf({ saveTotalLimit: 1 })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'saveTotalLimit' },
    });
  });
  it('the_second_copy_is_written_at_the_end', async () => {
    await using trainer = await trainerOf();
    await collect(trainer.run());
    expect(origin.now.files.at('tabtune', trainer.runId)).toBeDefined();
  });
  it('a_deleted_database_is_restored_from_the_second_copy', async () => {
    const trainer = await trainerOf();
    await collect(trainer.run());
    await trainer.dispose();
    const database = await openDB('tabtune');
    for (const store of ['chunks', 'manifests', 'heads', 'runs', 'history'])
      await database.clear(store);
    database.close();
    await using second = await Trainer.resume({ run: trainer.runId, worker: fakeWorker });
    const told = await new Promise<TrainerEvent>((resolve) =>
      second.addEventListener(
        'warning',
        (event) => resolve(Reflect.get(event, 'detail') as TrainerEvent),
        { once: true },
      ),
    );
    expect([second.completedSteps, told]).toMatchObject([10, { code: 'checkpoint.none' }]);
  });
  it('time_alone_saves', async () => {
    fake.stepMillis = 4;
    await using trainer = await trainerOf({ steps: 150, saveEverySecs: 0.02 });
    const steps = savedSteps(await collect(trainer.run()));
    expect(steps.length).toBeGreaterThan(2);
    expect(steps.length).toBeLessThan(50);
  });
  it('a_hidden_page_saves_once', async () => {
    const listeners = new Map<string, () => void>();
    const listen = (type: string, work: () => void) => void listeners.set(type, work);
    vi.stubGlobal('document', {
      visibilityState: 'hidden',
      addEventListener: listen,
      removeEventListener: (type: string) => listeners.delete(type),
    });
    vi.stubGlobal('window', {
      addEventListener: listen,
      removeEventListener: (type: string) => listeners.delete(type),
    });
    const { SaveClock: Clock } = await import('../src/worker/autosave.js');
    const due = vi.spyOn(Clock.prototype, 'dueHidden').mockImplementation(function (
      this: SaveClock,
      step,
    ) {
      return this.needed(step);
    });
    const trainer = await trainerOf();
    await trainer.step(2);
    listeners.get('visibilitychange')?.();
    await vi.waitFor(async () =>
      expect((await trainer.checkpoints.list()).map(({ step }) => step)).toEqual([2, 0]),
    );
    listeners.get('pagehide')?.();
    await trainer.info();
    expect(await trainer.checkpoints.list()).toHaveLength(2);
    // On return the device is read.
    const looked = loseIn('confirm');
    vi.stubGlobal('document', {
      visibilityState: 'visible',
      addEventListener: listen,
      removeEventListener: (type: string) => listeners.delete(type),
    });
    listeners.get('visibilitychange')?.();
    await vi.waitFor(() => expect([looked.happened, trainer.state]).toEqual([1, 'paused']));
    vi.stubGlobal('document', { removeEventListener: (type: string) => listeners.delete(type) });
    await trainer.dispose();
    expect(listeners.size).toBe(0);
    due.mockRestore();
  });
  it('the_state_before_a_decay_is_saved_and_kept', async () => {
    await using trainer = await trainerOf({ steps: 40, saveEvery: 1, saveTotalLimit: 2 });
    await trainer.step(3);
    await trainer.startDecay();
    await trainer.step(9);
    expect((await trainer.checkpoints.list()).map(({ step }) => step)).toContain(3);
    await using planned = await trainerOf({
      steps: 40,
      saveEvery: 1,
      saveTotalLimit: 2,
      lrScheduler: { type: 'wsd', decaySteps: 9, decayStartStep: 4 },
    });
    await planned.step(12);
    expect((await planned.checkpoints.list()).map(({ step }) => step)).toContain(4);
  });
});

describe('failures of storage', () => {
  it('a_full_storage_is_a_warning_and_the_run_continues', async () => {
    await using trainer = await trainerOf({ saveEvery: 3 });
    origin.now.quota = 10;
    const events = await collect(trainer.run());
    expect(stepsOf(events)).toHaveLength(10);
    expect(warningsOf(events)).toContain('storage.quota');
    await expect(trainer.save()).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      detail: { code: 'storage.quota' },
    });
    expect((await trainer.info()).completedSteps).toBe(10);
  });
  it('a_fault_of_the_gpu_before_a_save_keeps_it_from_beginning', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    await trainer.save();
    let asked = 0;
    fake.onCall = ({ call, worker }) => {
      if (call === 'evaluate') worker.device?.complain('GPUValidationError', 'buffer too large');
      if (call === 'chunk') asked += 1;
    };
    await trainer.evaluate().catch(() => undefined);
    await expect(trainer.save()).rejects.toMatchObject({ code: 'SHADER_FAILED' });
    expect(asked).toBe(0);
  });
  it('a_save_interrupted_by_a_fault_never_becomes_the_head', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    const { generation } = await trainer.save();
    await trainer.step(1);
    fake.onCall = ({ call, worker }) => {
      if (call === 'confirm') worker.device?.complain('GPUValidationError', 'buffer too large');
    };
    await expect(trainer.save()).rejects.toMatchObject({ code: 'SHADER_FAILED' });
    fake.onCall = undefined;
    expect((await trainer.checkpoints.list())[0]).toMatchObject({ generation, step: 2 });
  });
  it('a_loss_in_a_save_is_recovered_and_no_failure_of_storage', async () => {
    await using trainer = await trainerOf();
    const events: TrainerEvent[] = [];
    const count = loseIn('chunk', 1);
    for await (const event of trainer.run()) events.push(event);
    expect([count.happened, warningsOf(events)]).toEqual([1, ['device.lost', 'run.recovered']]);
  });
});

describe('history', () => {
  const eventsOf = (events: TrainerEvent[]) =>
    events.filter(
      (event): event is HistoryEntry =>
        event.type === 'step' || event.type === 'eval' || event.type === 'sample',
    );
  const options = {
    evalEvery: 2,
    sampleEvery: 4,
    samplePrompt: 'It',
    sample: { maxTokens: 5 },
    saveEvery: 3,
  };
  it('is_restored_by_a_resume', async () => {
    const first = await trainerOf(options);
    const told = eventsOf(await collect(first.run({ maxSteps: 7 })));
    expect(await first.history()).toEqual(told);
    await first.save();
    await first.dispose();
    using runs = await openSavedRuns({ worker: fakeWorker });
    expect(await runs.history(first.runId)).toEqual(told);
    await using second = await Trainer.resume({ run: first.runId, worker: fakeWorker });
    expect(await second.history()).toEqual(told);
    const more = eventsOf(await collect(second.run()));
    expect(await second.history()).toEqual([...told, ...more]);
  });
  it('has_each_step_once_after_a_loss_and_is_cut_where_a_checkpoint_was_loaded', async () => {
    await using whole = await trainerOf(options);
    await collect(whole.run());
    const expected = (await whole.history()).map((entry) =>
      entry.type === 'step' ? { ...entry, secs: 0 } : entry,
    );
    await using trainer = await trainerOf(options);
    loseIn('step', 8);
    await collect(trainer.run());
    expect(
      (await trainer.history()).map((entry) =>
        entry.type === 'step' ? { ...entry, secs: 0 } : entry,
      ),
    ).toEqual(expected);
    const [, , older] = await trainer.checkpoints.list();
    await trainer.checkpoints.load({ generation: older?.generation });
    expect((await trainer.history()).at(-1)?.step).toBe(older?.step);
  });
  it('is_copied_by_a_fork', async () => {
    await using trainer = await trainerOf(options);
    await collect(trainer.run({ maxSteps: 6 }));
    await trainer.save();
    const fork = await trainer.checkpoints.fork({ label: 'branch' });
    expect(fork).toMatchObject({ label: 'branch', step: 6, hasData: true });
    expect(fork.run).not.toBe(trainer.runId);
    await using branch = await Trainer.resume({ run: fork.run, worker: fakeWorker });
    expect((await branch.history()).length).toBe((await trainer.history()).length);
    expect((await branch.step()).map(({ step }) => step)).toEqual([7]);
  });
});
