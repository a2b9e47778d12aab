import { describe, expect, it } from 'vitest';

import { inspectData, newModel, openModel, Trainer } from '../src/index.js';
import type { CreateOptions, TrainerEvent, TrainOptions } from '../src/index.js';
import { fake } from '../src/testing/fake-wasm.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { SHAPE, TEXT, collect, stepsOf, trainerOf } from './runs.js';

describe('refusals', () => {
  it('non_finite_stops_with_a_typed_error', async () => {
    fake.failAt = 3;
    fake.failWith = {
      kind: 'NON_FINITE',
      code: 'train.non-finite',
      message: 'step 3: loss is NaN; nothing was changed',
      step: 3,
      tensor: 'loss',
    };
    await using trainer = await trainerOf();
    await expect(collect(trainer.run())).rejects.toMatchObject({
      code: 'NON_FINITE',
      detail: { code: 'train.non-finite', step: 3, tensor: 'loss' },
    });
    expect(trainer.state).toBe('failed');
  });
  it('non_finite_can_be_skipped_with_a_warning', async () => {
    fake.badBatches = [3, 5, 6];
    await using trainer = await trainerOf({ onNonFinite: 'skip' });
    const events = await collect(trainer.run());
    expect(
      events.flatMap((event) => (event.type === 'warning' ? [[event.step, event.code]] : [])),
    ).toEqual([2, 3, 3].map((step) => [step, 'train.non-finite']));
    expect(stepsOf(events)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(fake.batches).toEqual([1, 2, 4, 7, 8, 9, 10, 11, 12, 13]);
  });
  it('reports_that_are_read_together_equal_those_of_single_steps', async () => {
    fake.badBatches = [3, 5, 6];
    const options: Partial<CreateOptions> = {
      onNonFinite: 'skip',
      evalEvery: 2,
      validationFraction: 0.1,
    };
    await using alone = await trainerOf(options);
    const expected = await collect(alone.run());
    const batches = fake.batches.splice(0);
    await using together = await trainerOf({ ...options, reportEvery: 4, saveEvery: 3 });
    const events = await collect(together.run());
    const told = (list: TrainerEvent[]): unknown[] =>
      list.flatMap((event) =>
        event.type === 'step' || event.type === 'eval'
          ? [[event.type, event.step, event.loss]]
          : [],
      );
    expect(told(events)).toEqual(told(expected));
    const refused = events.filter(
      (event) => event.type === 'warning' && event.code === 'train.non-finite',
    );
    expect(refused.length).toBe(3);
    expect(together.state).toBe('done');
    // The batches of refused steps were started again.
    expect(new Set(fake.batches)).toEqual(new Set(batches));
  });
  it('at_most_ten_steps_in_a_row_are_skipped', async () => {
    const bad = Array.from({ length: 10 }, (_, i) => i + 3);
    const warnings = (events: TrainerEvent[]): number =>
      events.filter((event) => event.type === 'warning').length;
    // Ten, a good one, and one more.
    fake.badBatches = [...bad, 14];
    await using passing = await trainerOf({ onNonFinite: 'skip' });
    const events = await collect(passing.run());
    expect([warnings(events), stepsOf(events).length]).toEqual([11, 10]);
    fake.badBatches = [...bad, 13];
    await using failing = await trainerOf({ onNonFinite: 'skip' });
    const seen: TrainerEvent[] = [];
    const run = (async () => {
      for await (const event of failing.run()) seen.push(event);
    })();
    await expect(run).rejects.toMatchObject({ code: 'NON_FINITE' });
    expect([warnings(seen), stepsOf(seen)]).toEqual([10, [1, 2]]);
  });
  it('skip_is_refused_with_gradient_release', async () => {
    const refused = { code: 'BAD_OPTION', detail: { path: 'onNonFinite' } };
    await expect(
      trainerOf({ onNonFinite: 'skip', gradientRelease: true, maxGradNorm: 0 }),
    ).rejects.toMatchObject(refused);
    await using trainer = await trainerOf({ onNonFinite: 'skip' });
    await trainer.save();
    const run = trainer.runId;
    await trainer.dispose();
    const resume = (settings: TrainOptions) =>
      Trainer.resume({ run, settings, override: ['all'], worker: fakeWorker() });
    await expect(resume({ gradientRelease: true })).rejects.toMatchObject(refused);
    await using resumed = await resume({});
    expect((await resumed.step()).map((event) => event.step)).toEqual([1]);
  });
  it('weights_of_data_are_used_or_refused', async () => {
    const file = (): File => new File([TEXT.text], 'a.jsonl');
    const data = [{ files: file(), weight: 2 }, file()];
    const refused = (path: string) => ({ code: 'BAD_OPTION', detail: { path } });
    await using trainer = await trainerOf();
    await trainer.save();
    const run = trainer.runId;
    await trainer.dispose();
    await expect(
      Trainer.resume({ run, data, override: ['data'], worker: fakeWorker() }),
    ).rejects.toMatchObject({
      code: 'CHECKPOINT_MISMATCH',
      message: expect.stringContaining('data_weights') as string,
    });
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker() });
    await expect(Trainer.create({ model, data, dataWeights: [1, 1] })).rejects.toMatchObject(
      refused('dataWeights'),
    );
    await expect(
      Trainer.create({ model, data: [{ files: file(), weight: 0 }] }),
    ).rejects.toMatchObject(refused('data[0].weight'));
    await expect(Trainer.create({ model, data: [] })).rejects.toMatchObject(refused('data'));
    await expect(model.evaluateRows(data, { metric: () => 1 })).rejects.toMatchObject(
      refused('data'),
    );
    await expect(inspectData(data, { bytes: 10, worker: fakeWorker() })).rejects.toMatchObject(
      refused('bytes'),
    );
    await model.dispose();
  });
  it('a_model_can_be_used_again_after_a_refused_create', async () => {
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker() });
    await expect(Trainer.create({ model, data: TEXT, seqLen: 100_000 })).rejects.toMatchObject({
      detail: { code: 'data.too-short' },
    });
    expect(await model.tokenize('ab')).toEqual([97, 98]);
    await using trainer = await Trainer.create({ model, data: TEXT, steps: 10, seqLen: 16 });
    expect((await trainer.step()).map((event) => event.step)).toEqual([1]);
    await expect(model.tokenize('ab')).rejects.toThrow('handed to a trainer');
  });
  it('a_model_disposed_while_its_create_is_refused_ends_its_worker', async () => {
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    const created = Trainer.create({ model, data: TEXT, seqLen: 100_000 });
    await new Promise((resolve) => setTimeout(resolve, 0));
    await model.dispose();
    await expect(created).rejects.toMatchObject({ detail: { code: 'data.too-short' } });
    expect(started.map(({ terminated }) => terminated)).toEqual([true]);
  });
  it('what_cannot_be_sampled_is_refused_before_the_first_step', async () => {
    const refused = { code: 'BAD_OPTION', detail: { path: 'temperature' } };
    await expect(
      trainerOf({ sampleEvery: 5, samplePrompt: 'a', sample: { temperature: -1 } }),
    ).rejects.toMatchObject(refused);
    expect(fake.sessions).toBe(0);
  });
  it.each([
    ['', 'samplePrompt: expected at least one token'],
    ['x'.repeat(1001), 'context is 1000'],
  ])('a_prompt_that_gives_no_text_is_a_warning_and_costs_no_run', async (samplePrompt, words) => {
    await using trainer = await trainerOf({ steps: 4, sampleEvery: 2, samplePrompt });
    const events = await collect(trainer.run());
    expect(events.filter((event) => event.type === 'warning')).toMatchObject([
      { code: 'run.sample', message: expect.stringContaining(words) as string },
    ]);
    expect([stepsOf(events), events.some((event) => event.type === 'sample')]).toEqual([
      [1, 2, 3, 4],
      false,
    ]);
  });
  it('a_prompt_with_unknown_characters_is_a_warning_and_gives_samples', async () => {
    await using trainer = await trainerOf({ steps: 4, sampleEvery: 2, samplePrompt: '5 €' });
    const events = await collect(trainer.run());
    const message = 'samplePrompt: no token for "€" (1)';
    expect(events.filter((event) => event.type === 'warning')).toMatchObject([
      { code: 'data.unknown', message },
    ]);
    expect(events.some((event) => event.type === 'sample')).toBe(true);
  });
  it('unknown_options_and_bad_files_are_typed', async () => {
    const model = await newModel(SHAPE, TEXT, { worker: fakeWorker() });
    await expect(
      Trainer.create({ model, data: TEXT, ...{ lerningRate: 1 } }),
    ).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path: 'lerningRate' } });
    await expect(
      openModel(new File(['nonsense'], 'x.bin'), { worker: fakeWorker() }),
    ).rejects.toMatchObject({
      code: 'BAD_MODEL_FILE',
      detail: { code: 'bundle.unknown', refusal: { artifact: 'x.bin' } },
    });
    await expect(trainerOf({ seqLen: 100_000 })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { code: 'data.too-short' },
    });
  });
});
