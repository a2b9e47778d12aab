/** Evaluations, samples and saves that a run makes by itself. */
import { describe, expect, it } from 'vitest';

import type { CreateOptions } from '../src/index.js';
import { fake, refuse } from '../src/testing/fake-calls.js';
import { collect, stepsOf, trainerOf } from './runs.js';

describe('evaluations and samples of a run', () => {
  it('an_interval_that_was_chosen_is_used_and_told', async () => {
    const rate = { setting: 'learning_rate', value: 2e-5, reason: 'weights that have learned' };
    const schedule = {
      setting: 'schedule',
      value: { type: 'cosine', warmup_steps: 1 },
      reason: '',
    };
    fake.chosen = [
      rate,
      schedule,
      { setting: 'eval_every', value: 2, reason: 'once in each pass' },
    ];
    const evaluated = async (options: Partial<CreateOptions>): Promise<[number[], string[]]> => {
      await using trainer = await trainerOf({ steps: 6, ...options });
      const events = await collect(trainer.run());
      const evaluations = events.filter(({ type }) => type === 'eval').map(({ step }) => step);
      return [evaluations, trainer.settings.chosen.map(({ name }) => name)];
    };
    expect(await evaluated({})).toEqual([
      [2, 4, 6],
      ['learningRate', 'lrScheduler', 'evalEvery'],
    ]);
    expect(await evaluated({ evalEvery: 3 })).toEqual([
      [3, 6],
      ['learningRate', 'lrScheduler'],
    ]);
    expect(await evaluated({ evalEvery: 0 })).toEqual([[], ['learningRate', 'lrScheduler']]);
    await using trainer = await trainerOf({ steps: 6 });
    expect(trainer.settings.chosen[1]).toEqual({
      name: 'lrScheduler',
      value: { type: 'cosine', warmupSteps: 1 },
      reason: '',
    });
    expect(trainer.settings.values).toMatchObject({ steps: 6 });
  });
  it('a_loss_that_rises_on_the_kept_data_is_a_warning_once', async () => {
    const losses = [3, 2, 2.5, 2.6, 1, 4];
    fake.evaluation = () => losses.shift() ?? 0;
    await using trainer = await trainerOf({ steps: 6, evalEvery: 1 });
    const events = await collect(trainer.run());
    const rises = events.filter(
      (event) => event.type === 'warning' && event.code === 'run.overfitting',
    );
    expect(rises).toMatchObject([
      {
        step: 3,
        message:
          'the loss on the data kept for evaluation rises (2.5000 after 2.0000): the model begins to memorise. Stop here, or go back to the checkpoint with the lowest loss.',
      },
    ]);
  });
  it('samples_evaluations_and_saves_are_made_when_due', async () => {
    await using trainer = await trainerOf({
      steps: 4,
      evalEvery: 2,
      sampleEvery: 4,
      saveEvery: 4,
      samplePrompt: 'It',
      sample: { maxTokens: 5 },
    });
    const kinds = (await collect(trainer.run()))
      .map((event) => event.type)
      .filter((type) => type !== 'step' && type !== 'state');
    // Before the first step; the best evaluation so far; the save that is due, and the best again, with its evaluation.
    expect(kinds).toEqual([
      'checkpoint',
      'eval',
      'checkpoint',
      'checkpoint',
      'eval',
      'checkpoint',
      'sample',
    ]);
  });
  it('a_failed_evaluation_or_sample_is_a_warning_and_loses_no_step', async () => {
    await using trainer = await trainerOf({
      steps: 4,
      evalEvery: 2,
      sampleEvery: 2,
      samplePrompt: 'It',
    });
    fake.onCall = ({ call }) =>
      call === 'evaluate'
        ? refuse('NON_FINITE', 'train.non-finite', 'the mean loss over 40 tokens is NaN')
        : undefined;
    const events = await collect(trainer.run());
    const warnings = events.filter((event) => event.type === 'warning');
    expect(warnings).toMatchObject(
      [2, 4].map((step) => ({
        step,
        code: 'run.evaluation',
        message: 'an evaluation failed, and the run continues: the mean loss over 40 tokens is NaN',
      })),
    );
    expect([stepsOf(events).length, trainer.state]).toEqual([4, 'done']);
  });
  it('a_failed_sample_is_reported_and_the_next_one_is_written', async () => {
    await using trainer = await trainerOf({
      steps: 4,
      sampleEvery: 2,
      samplePrompt: 'It',
      sample: { maxTokens: 3 },
    });
    let samples = 0;
    fake.onCall = ({ call, at }) => {
      if (call === 'token' && at === 0) samples += 1;
      return call === 'token' && samples === 1 && at === 1
        ? refuse('NON_FINITE', 'train.non-finite', 'logits: NaN')
        : undefined;
    };
    const events = await collect(trainer.run());
    expect(events.filter((event) => event.type === 'warning')).toMatchObject([
      {
        step: 2,
        code: 'run.sample',
        message: 'a sample failed, and the run continues: logits: NaN',
      },
    ]);
    expect(events.flatMap((event) => (event.type === 'sample' ? [event.step] : []))).toEqual([4]);
    expect([stepsOf(events).length, trainer.state]).toEqual([4, 'done']);
  });
  it('validation_data_that_no_step_evaluates_are_a_warning', async () => {
    const told = async (options: Partial<CreateOptions>): Promise<string[]> => {
      await using trainer = await trainerOf({ steps: 1, ...options });
      return (await collect(trainer.run())).flatMap((event) =>
        event.type === 'warning' ? [event.code] : [],
      );
    };
    const validationData = { text: 'Another sentence. '.repeat(20) };
    expect(await told({ validationData })).toContain('data.validation.unused');
    expect(await told({ validationData, evalEvery: 1 })).not.toContain('data.validation.unused');
    expect(await told({})).not.toContain('data.validation.unused');
  });
  it('a_run_without_data_for_its_evaluations_does_not_begin', async () => {
    fake.nothingKept = true;
    await expect(trainerOf({ evalEvery: 2 })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { code: 'data.no-validation' },
    });
    await using trainer = await trainerOf({});
    expect(await trainer.step()).toHaveLength(1);
  });
  it('only_the_best_evaluation_so_far_is_saved', async () => {
    await using trainer = await trainerOf({ steps: 6, evalEvery: 2 });
    const losses = [1.5, 1.7, 1.2];
    fake.evaluation = () => losses.shift() ?? NaN;
    const events = await collect(trainer.run());
    const saved = events.flatMap((event) => (event.type === 'checkpoint' ? [event.step] : []));
    // Before the first step, after the best evaluation; the last step also before its evaluation.
    expect(saved).toEqual([0, 2, 6, 6]);
  });
});
