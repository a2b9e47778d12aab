/** Runs that train an adapter: the origin of its files and those of its base. */
import { describe, expect, it } from 'vitest';

import { openModel, openSavedRuns, Trainer } from '../src/index.js';
import type { CreateOptions, ExportOptions, OpenOptions } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake, refuse } from '../src/testing/fake-calls.js';
import { loseIn, unbroken } from './losses.js';
import { TEXT } from './runs.js';

const FILES = [new File(['GGUF and twelve more bytes'], 'model.gguf')];
const FACTORS = [
  new File(['{}'], 'adapter_config.json'),
  new File(['factors'], 'adapter_model.safetensors'),
];
const worker = fakeWorker;

const model = (options: OpenOptions = {}): ReturnType<typeof openModel> =>
  openModel(FILES, { worker, ...options });
const trained = async (options: Partial<CreateOptions> = {}): Promise<Trainer> =>
  Trainer.create({
    model: await model(),
    data: TEXT,
    steps: 10,
    seqLen: 16,
    logEvery: 1,
    adapter: { r: 4 },
    ...options,
  });

describe('an adapter', () => {
  it('is_requested_with_the_option_names_of_the_core', async () => {
    await using trainer = await trained({ baseStorage: 'bf16' });
    expect((await trainer.info()).config).toMatchObject({
      adapter: { r: 4 },
      base_storage: 'bf16',
    });
  });
  it('stays_separate_from_a_model_that_is_opened_with_it', async () => {
    using apart = await model({ adapter: FACTORS });
    using merged = await model({ mergeAdapter: FACTORS });
    expect([apart.adapter?.r, merged.adapter]).toEqual([8, null]);
    expect(apart.contract).toMatchObject({
      adapter: ['adapter_config.json', 'adapter_model.safetensors'],
    });
    using resized = await model({ mergeAdapter: FACTORS, resizeVocabulary: true });
    expect([merged.contract, resized.contract]).toMatchObject([
      { resize: false },
      { resize: true },
    ]);
    await expect(model({ adapter: FACTORS, resizeVocabulary: true })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'resizeVocabulary' },
    });
    await expect(model({ adapter: FACTORS, mergeAdapter: FACTORS })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'adapter' },
    });
  });
  it('set_to_null_leaves_the_base_for_every_later_call', async () => {
    using apart = await model({ adapter: FACTORS });
    const before = apart.info;
    apart.adapter = null;
    expect(apart.adapter).toBeNull();
    await apart.tokenize('a');
    expect([before.adapter?.r, apart.info.adapter]).toEqual([8, null]);
    expect(apart.contract).toMatchObject({ adapter: [] });
    // Even after a later loss, the adapter does not come back.
    await using trainer = await Trainer.create({ model: apart, data: TEXT, steps: 2, seqLen: 16 });
    expect((await trainer.info()).adapter).toBeNull();
    loseIn('step', 2, 'lost');
    await trainer.step(2);
    expect((await trainer.info()).model.adapter).toBeNull();
    const wrong = await model({ adapter: FACTORS });
    expect(() => Reflect.set(wrong, 'adapter', undefined)).toThrow(
      expect.objectContaining({
        code: 'BAD_OPTION',
        detail: expect.objectContaining({ path: 'adapter' }) as unknown,
      }) as Error,
    );
    expect(wrong.adapter?.r).toBe(8);
    await wrong.dispose();
    wrong.adapter = null;
    await expect(wrong.tokenize('a')).rejects.toMatchObject({ detail: { code: 'model.taken' } });
  });
  it('that_cannot_be_removed_makes_every_call_fail_until_it_can', async () => {
    using apart = await model({ adapter: FACTORS });
    fake.unreadable = true;
    apart.adapter = null;
    for (const _ of [1, 2])
      await expect(apart.tokenize('a')).rejects.toMatchObject({ detail: { code: 'source.read' } });
    fake.unreadable = false;
    apart.adapter = null;
    expect(await apart.tokenize('a')).toEqual([97]);
    expect(apart.contract).toMatchObject({ adapter: [] });
  });
  it('that_is_trained_further_is_opened_with_the_same_base', async () => {
    await using trainer = await trained({ adapter: { from: FACTORS, dropout: 0.1 } });
    const { config, model: info } = await trainer.info();
    expect(config).toMatchObject({ adapter: { dropout: 0.1 } });
    expect(config).not.toHaveProperty('adapter.from');
    expect(info.adapter?.r).toBe(8);
  });
  it('begins_with_a_run', async () => {
    await using trainer = await trained();
    await trainer.save();
    await expect(
      Trainer.resume({ run: trainer.runId, settings: { adapter: { from: FACTORS } } }),
    ).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path: 'settings.adapter.from' } });
  });
});

describe('its base', () => {
  it('is_found_by_a_recovery_with_its_sums', async () => {
    const whole = await unbroken();
    await using trainer = await trained({ saveEvery: 4 });
    loseIn('step', 7, 'lost');
    const losses = (await trainer.step(10)).map(({ loss }) => loss);
    expect(losses).toEqual([...whole.values()]);
    expect(fake.bases).toEqual(['model.gguf 1']);
  });
  it('is_available_when_another_generation_is_loaded', async () => {
    await using trainer = await trained();
    await trainer.step(1);
    await trainer.save();
    await trainer.checkpoints.load();
    expect(fake.bases).toEqual(['model.gguf 1']);
  });
  it('is_found_again_in_the_same_page_and_after_a_fork', async () => {
    const trainer = await trained();
    await trainer.step(1);
    await trainer.save();
    const fork = await trainer.checkpoints.fork();
    await trainer.dispose();
    for (const { run } of [{ run: trainer.runId }, fork])
      await (await Trainer.resume({ run, worker })).dispose();
    expect(fake.bases).toEqual(['model.gguf 1', 'model.gguf 1']);
  });
  it('is_compared_by_its_headers_alone_if_that_is_asked', async () => {
    const trainer = await trained();
    await trainer.step(1);
    await trainer.save();
    await trainer.dispose();
    await using again = await Trainer.resume({ run: trainer.runId, verify: 'header', worker });
    await again.checkpoints.load();
    expect(fake.bases).toEqual(['model.gguf header', 'model.gguf header']);
    await expect(
      Trainer.resume({ run: trainer.runId, verify: 'none' as 'full', worker }),
    ).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path: 'verify' } });
  });
  it('is_sent_with_an_export_that_merges_the_adapter', async () => {
    await using trainer = await trained();
    const given = async (options: ExportOptions): Promise<boolean> => {
      const files = await trainer.exportFiles(options);
      const said = await Promise.all(files.map(({ blob }) => blob.text()));
      return said.some((words) => words.includes('model.gguf') && words.includes('{'));
    };
    expect([
      await given({}),
      await given({ format: 'gguf' }),
      await given({ format: 'peft' }),
      await given({ format: 'json' }),
    ]).toEqual([true, true, false, false]);
    await expect(trainer.exportFiles({ base: FILES })).resolves.toBeDefined();
    using whole = await model();
    await expect(whole.exportFiles({ base: FILES })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'base' },
    });
  });
  it('is_asked_for_by_name_elsewhere', async () => {
    const trainer = await trained();
    await trainer.step(1);
    await trainer.save();
    const file = await trainer.checkpoints.exportFile();
    await trainer.dispose();
    using saved = await openSavedRuns({ worker });
    // Under an id that this page has not trained.
    const { run } = await saved.importFile(file);
    await expect(Trainer.resume({ run, worker })).rejects.toMatchObject({
      code: 'CHECKPOINT_MISMATCH',
      detail: { code: 'checkpoint.base.missing', want: 'model.gguf' },
    });
    const renamed = new File([...FILES], 'elsewhere.gguf');
    await (await Trainer.resume({ run, base: renamed, worker })).dispose();
    await (await Trainer.resume({ run, worker })).dispose();
    expect(fake.bases).toEqual(['elsewhere.gguf 1', 'elsewhere.gguf 1']);
  });
  it('of_a_refused_start_is_forgotten', async () => {
    fake.onCall = ({ call }) =>
      call === 'create'
        ? refuse('BAD_OPTION', 'config.invalid', 'adapter.r: expected an integer')
        : undefined;
    await expect(trained()).rejects.toMatchObject({ code: 'BAD_OPTION' });
    expect(fake.sessions).toBe(0);
  });
});
