import { describe, expect, it, vi } from 'vitest';

import { newModel, Trainer } from '../src/index.js';
import type { TrainerEvent } from '../src/index.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { fake, panic } from '../src/testing/fake-calls.js';
import { listened, lossesOf, loseIn, present, statesOf, unbroken, warningsOf } from './losses.js';
import { SHAPE, TEXT, collect, stepsOf, trainerOf } from './runs.js';

describe('a lost gpu', () => {
  it.each(['lost', 'panic'] as const)(
    '%s_in_a_step_continues_from_the_newest_checkpoint_with_the_same_losses',
    async (how) => {
      const whole = await unbroken();
      await using trainer = await trainerOf({ saveEvery: 4 });
      loseIn('step', 7, how);
      const events = await collect(trainer.run());
      expect(lossesOf(events)).toEqual(whole);
      // Step 6 was read, step 5 is the last one followed by a read: both are repeated.
      expect(stepsOf(events)).toEqual([1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10]);
      expect(statesOf(events)).toEqual([
        ['running', 0],
        ['recovering', 4],
        ['running', 5],
        ['done', 10],
      ]);
      expect(warningsOf(events)).toEqual([
        how === 'lost' ? 'device.lost' : 'core.panic',
        'run.recovered',
      ]);
    },
  );
  it('no_step_is_reported_between_the_fault_and_the_recovery', async () => {
    await using trainer = await trainerOf();
    loseIn('step', 5);
    const events = await collect(trainer.run());
    const lost = events.findIndex((event) => event.type === 'warning');
    const recovering = events.findIndex(
      (event) => event.type === 'state' && event.state === 'recovering',
    );
    expect(recovering).toBe(lost + 1);
    expect(stepsOf(events.slice(0, lost))).toEqual([1, 2, 3, 4]);
  });
  it('an_idle_trainer_is_notified_and_restored_at_its_step', async () => {
    await using trainer = await trainerOf();
    const events = listened(trainer);
    await trainer.step(3);
    const confirmed = new Promise<TrainerEvent>((resolve) =>
      trainer.addEventListener(
        'warning',
        (event) => resolve(Reflect.get(event, 'detail') as TrainerEvent),
        { once: true },
      ),
    );
    const begun = performance.now();
    present()?.device?.destroy();
    expect(await confirmed).toMatchObject({ code: 'device.lost' });
    expect(performance.now() - begun).toBeLessThan(1000);
    await vi.waitFor(() => expect(trainer.state).toBe('paused'));
    expect(trainer.completedSteps).toBe(3);
    expect(stepsOf(events)).toEqual([1, 2, 3, 1, 2, 3]);
    expect(started).toHaveLength(2);
  });
  it.each([
    ['evaluate', (trainer: Trainer) => trainer.evaluate(), 'evaluate'],
    ['save', (trainer: Trainer) => trainer.save(), 'chunk'],
    ['export', (trainer: Trainer) => trainer.exportFiles(), 'chunk'],
    ['step', (trainer: Trainer) => trainer.step(2), 'step'],
    ['profile', (trainer: Trainer) => trainer.profile(2), 'step'],
    ['load', (trainer: Trainer) => trainer.checkpoints.load(), 'resume'],
    ['sample', (trainer: Trainer) => trainer.sample('x', { maxTokens: 3 }).next(), 'token'],
  ] as const)('%s_hit_by_a_loss_is_made_again', async (_, call, where) => {
    await using trainer = await trainerOf();
    await trainer.step(3);
    const count = loseIn(where);
    await expect(call(trainer)).resolves.toBeDefined();
    expect([count.happened, started.length]).toEqual([1, 2]);
  });
  it('calls_that_touch_no_gpu_wait_for_the_recovery', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    fake.onCall = ({ call }) => (call === 'resume' ? held : undefined);
    present()?.device?.destroy();
    await vi.waitFor(() => expect(trainer.state).toBe('recovering'));
    const calls = [
      trainer.info(),
      trainer.previewSchedule(2),
      trainer.checkpoints.list(),
      trainer.history(),
      trainer.setLearningRate(0.1),
      trainer.startDecay(),
      trainer.stop(),
    ];
    go();
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(
      calls.map(() => 'fulfilled'),
    );
  });
  it('only_a_sample_that_had_begun_rejects_with_recovered_true', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    loseIn('token', 2);
    const tokens: string[] = [];
    const sample = (async () => {
      for await (const token of trainer.sample('x', { maxTokens: 50 })) tokens.push(token.text);
    })();
    await expect(sample).rejects.toMatchObject({
      code: 'DEVICE_LOST',
      detail: { code: 'device.lost', recovered: true, step: 2 },
    });
    expect(tokens).toHaveLength(2);
    expect((await trainer.step()).map(({ step }) => step)).toEqual([3]);
  });
  it('create_and_resume_are_made_again', async () => {
    const created = loseIn('create');
    await using trainer = await trainerOf();
    await trainer.step(2);
    await trainer.save();
    await trainer.dispose();
    const resumed = loseIn('resume');
    await using second = await Trainer.resume({ run: trainer.runId, worker: fakeWorker });
    expect([created.happened, resumed.happened, second.completedSteps]).toEqual([1, 1, 2]);
  });
  it('a_model_whose_worker_crashed_is_opened_again', async () => {
    using model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const [first] = started;
    if (first) void panic(first);
    expect(await model.tokenize('ab')).toEqual([97, 98]);
    expect(started).toHaveLength(2);
  });
  it('without_a_checkpoint_the_run_restarts_from_its_inputs', async () => {
    const whole = await unbroken();
    await using trainer = await trainerOf({ autosave: false });
    loseIn('step', 7);
    const events = await collect(trainer.run());
    expect(lossesOf(events)).toEqual(whole);
    expect(warningsOf(events)).toEqual(['run.unprotected', 'device.lost', 'run.recovered']);
    expect(await trainer.checkpoints.list()).toEqual([]);
  });
  it('a_default_run_survives_a_loss_at_its_first_step', async () => {
    const whole = await unbroken();
    await using trainer = await trainerOf();
    loseIn('step', 1);
    const events = await collect(trainer.run());
    expect(lossesOf(events)).toEqual(whole);
    expect(fake.overrides).toHaveLength(1);
  });
  it('manual_changes_are_repeated_at_the_same_steps', async () => {
    const set = async (trainer: Trainer): Promise<Map<number, number>> => {
      const events = listened(trainer);
      await trainer.step(2);
      await trainer.setLearningRate(0.05);
      await trainer.step(2);
      await trainer.startDecay();
      await trainer.step(2);
      await trainer.setLearningRate(undefined);
      await trainer.step(2);
      return lossesOf(events);
    };
    await using whole = await trainerOf({ autosave: false });
    const expected = await set(whole);
    for (const options of [{ autosave: false }, {}]) {
      await using trainer = await trainerOf(options);
      loseIn('step', 8);
      expect(await set(trainer)).toEqual(expected);
      // A second loss, after generations that were saved while the steps were repeated.
      loseIn('evaluate');
      await trainer.evaluate();
      expect((await trainer.info()).manualLearningRate).toBeUndefined();
      expect((await trainer.step()).map(({ step }) => step)).toEqual([9]);
    }
  });
  it('loading_a_generation_forgets_later_manual_changes', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    const { generation } = await trainer.save();
    await trainer.setLearningRate(0.05);
    await trainer.step(2);
    await trainer.checkpoints.load({ generation });
    loseIn('evaluate');
    await trainer.evaluate();
    expect(trainer.completedSteps).toBe(2);
    expect((await trainer.info()).manualLearningRate).toBeUndefined();
  });
  it('the_changes_of_a_resume_are_repeated_until_a_checkpoint_has_them', async () => {
    const first = await trainerOf();
    await first.save();
    await first.dispose();
    await using trainer = await Trainer.resume({
      run: first.runId,
      settings: { learningRate: 0.5 },
      override: ['learningRate'],
      worker: fakeWorker,
    });
    loseIn('step', 2);
    await collect(trainer.run({ maxSteps: 3 }));
    await trainer.save();
    loseIn('step', 5);
    await collect(trainer.run({ maxSteps: 3 }));
    expect(fake.overrides).toEqual([['learning_rate'], ['learning_rate'], []]);
    expect((await trainer.info()).config).toMatchObject({ learning_rate: 0.5 });
  });
  it('a_pause_requested_during_a_recovery_pauses_at_the_step_before_the_loss', async () => {
    await using trainer = await trainerOf();
    loseIn('step', 5);
    const seen: TrainerEvent[] = [];
    let paused = false;
    for await (const event of trainer.run()) {
      seen.push(event);
      if (event.type === 'state' && event.state === 'recovering') {
        void trainer.pause().then(() => {
          paused = trainer.state === 'paused';
          setTimeout(() => void trainer.resume(), 10);
        });
      }
    }
    expect(paused).toBe(true);
    expect(statesOf(seen).map(([state]) => state)).toEqual([
      'running',
      'recovering',
      'paused',
      'running',
      'done',
    ]);
    expect(new Set(stepsOf(seen)).size).toBe(10);
  });
  it('a_stop_requested_during_a_recovery_ends_the_run', async () => {
    await using trainer = await trainerOf();
    loseIn('step', 5);
    const seen: TrainerEvent[] = [];
    for await (const event of trainer.run()) {
      seen.push(event);
      if (event.type === 'state' && event.state === 'recovering') void trainer.stop();
    }
    expect(seen.at(-1)).toMatchObject({ type: 'state', state: 'stopped' });
    expect(trainer.completedSteps).toBeLessThan(6);
  });
});
