/** Base files of an adapter that are kept with the run, found again at their addresses, or asked for by name. */
import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { openModel, openSavedRuns, Trainer } from '../src/index.js';
import type { CheckpointInfo, CreateOptions, FilesInput, TrainerEvent } from '../src/index.js';
import { dropBase } from '../src/page/bases.js';
import { fakeWorker as worker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { lossesOf, warningsOf } from './losses.js';
import { collect, TEXT } from './runs.js';
import { keysOf, tamper } from './saves.js';

const GGUF = new File(['GGUF and twelve more bytes'], 'model.gguf');
const CONFIG = new File(['{}'], 'config.json');
const MIB = new Uint8Array(1 << 20);
/** More than a run keeps. */
const LARGE = new File(
  Array.from({ length: 65 }, () => MIB),
  'model.safetensors',
);
const ADDRESS = 'https://here/model.gguf';
let served: string | undefined;

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  served = 'GGUF of a server';
  vi.stubGlobal('fetch', async () =>
    served === undefined ? new Response('', { status: 404 }) : new Response(served),
  );
});

async function trained(
  files: FilesInput,
  options: Partial<CreateOptions> = {},
): Promise<{ run: string; warnings: string[]; losses: Map<number, number> }> {
  const model = await openModel(files, { worker });
  const settings = { steps: 10, seqLen: 16, logEvery: 1, adapter: { r: 4 }, ...options };
  await using trainer = await Trainer.create({ model, data: TEXT, ...settings });
  const events = await collect(trainer.run({ maxSteps: 4 }));
  await trainer.dispose({ save: true });
  return { run: trainer.runId, warnings: warningsOf(events), losses: lossesOf(events) };
}
/** Resumes a run as another page does, which has read none of its files. */
async function elsewhere(run: string, base?: FilesInput): Promise<TrainerEvent[]> {
  dropBase(run);
  await using trainer = await Trainer.resume({ run, base, worker });
  const events = await collect(trainer.run());
  dropBase(run);
  return events;
}
async function listed(run: string): Promise<CheckpointInfo | undefined> {
  dropBase(run);
  using runs = await openSavedRuns({ worker });
  return (await runs.list({ run }))[0];
}
const MISSING = { code: 'CHECKPOINT_MISMATCH', detail: { code: 'checkpoint.base.missing' } };

describe('small files', () => {
  it('are_kept_so_that_a_resume_elsewhere_needs_nothing', async () => {
    const whole = await openModel(GGUF, { worker });
    await using unbroken = await Trainer.create({
      ...{ model: whole, data: TEXT, steps: 10, seqLen: 16, adapter: { r: 4 } },
    });
    const expected = lossesOf(await collect(unbroken.run()));
    const { run, losses, warnings } = await trained(GGUF);
    expect([warnings, (await listed(run))?.needsBase]).toEqual([[], false]);
    const more = lossesOf(await elsewhere(run));
    expect(new Map([...losses, ...more])).toEqual(expected);
    expect(fake.bases.at(-1)).toBe('model.gguf 1');
  });
  it('are_copied_by_a_fork_and_removed_with_the_run', async () => {
    const { run } = await trained(GGUF);
    using runs = await openSavedRuns({ worker });
    const fork = await runs.fork(run);
    expect(fork.needsBase).toBe(false);
    await runs.remove(run);
    expect((await keysOf(run))['chunks']).toEqual([]);
    await elsewhere(fork.run);
    expect(fake.bases.at(-1)).toBe('model.gguf 1');
  });
  it('stay_in_the_browser_and_are_named_by_an_imported_run_which_keeps_what_it_is_given', async () => {
    const { run } = await trained(GGUF);
    using runs = await openSavedRuns({ worker });
    const blob = await runs.exportFile(run);
    expect(await blob.text()).not.toContain('twelve more');
    const { run: imported, needsBase } = await runs.importFile(blob);
    expect(needsBase).toEqual([{ name: 'model.gguf', bytes: GGUF.size }]);
    await expect(elsewhere(imported)).rejects.toMatchObject(MISSING);
    await elsewhere(imported, GGUF);
    expect((await listed(imported))?.needsBase).toBe(false);
    await elsewhere(imported);
    expect(fake.bases.at(-1)).toBe('model.gguf 1');
  });
  it('whose_bytes_are_damaged_are_asked_for', async () => {
    const { run } = await trained(GGUF);
    await tamper((database) =>
      database.put('chunks', new ArrayBuffer(GGUF.size), [run, 0, 2 ** 32]),
    );
    await expect(elsewhere(run)).rejects.toMatchObject({ detail: { want: 'model.gguf' } });
    await elsewhere(run, GGUF);
    await elsewhere(run);
  });
  it('are_not_kept_with_keepData_false_nor_of_a_run_that_trains_all_weights', async () => {
    const { run, warnings } = await trained(GGUF, { keepData: false });
    expect([warnings, await listed(run)]).toMatchObject([
      [],
      { hasData: false, needsBase: [{ name: 'model.gguf', bytes: GGUF.size }] },
    ]);
    const full = await trained(GGUF, { adapter: null });
    expect((await listed(full.run))?.needsBase).toBe(false);
    expect((await keysOf(full.run))['chunks']?.filter((key) => key.startsWith('0/'))).toEqual([
      '0/0',
    ]);
  });
});

describe('large files', () => {
  it('are_named_at_the_first_save_and_asked_for_while_the_others_are_kept', async () => {
    const { run, warnings } = await trained([CONFIG, LARGE]);
    expect(warnings).toEqual(['data.not-kept']);
    const needsBase = [{ name: 'model.safetensors', bytes: LARGE.size }];
    expect(await listed(run)).toMatchObject({ needsBase });
    using runs = await openSavedRuns({ worker });
    expect(await runs.runs()).toMatchObject([{ run, needsBase, newest: { step: 4 } }]);
    await expect(elsewhere(run)).rejects.toMatchObject(MISSING);
    const again = warningsOf(await elsewhere(run, new File([LARGE], 'renamed.safetensors')));
    expect([again, fake.bases.at(-1)]).toEqual([[], 'config.json 0,renamed.safetensors 9']);
    // The whole base may be given too.
    await elsewhere(run, [LARGE, CONFIG]);
    expect(fake.bases.at(-1)).toBe('model.safetensors 9,config.json 0');
  });
  it('of_the_training_data_are_named_too', async () => {
    const text = new File(
      Array.from({ length: 65 }, () => 'words of a text '.repeat(1 << 16)),
      'large.txt',
    );
    const model = await openModel(GGUF, { worker });
    await using trainer = await Trainer.create({ model, data: text, steps: 2, seqLen: 16 });
    const events = await collect(trainer.run());
    expect(events).toContainEqual(
      expect.objectContaining({
        code: 'data.not-kept',
        message: expect.stringContaining(`large.txt of ${text.size} bytes`) as unknown,
      }),
    );
  });
});

describe('files elsewhere', () => {
  it('are_opened_at_their_address_again', async () => {
    const { run, warnings } = await trained(new URL(ADDRESS));
    expect([warnings, (await listed(run))?.needsBase]).toEqual([[], false]);
    expect((await keysOf(run))['chunks']?.filter((key) => key.startsWith('0/'))).toEqual(['0/0']);
    await elsewhere(run);
    expect(fake.bases.at(-1)).toBe('model.gguf 1');
  });
  it('that_are_gone_are_asked_for_with_the_reason', async () => {
    const { run } = await trained(new URL(ADDRESS));
    served = undefined;
    const refused = elsewhere(run);
    await expect(refused).rejects.toMatchObject({ ...MISSING, detail: { want: 'model.gguf' } });
    await expect(refused).rejects.toThrow(/404/);
  });
});

describe('the list of runs', () => {
  it('has_each_run_once_the_last_saved_first', async () => {
    const first = await trained(GGUF, { label: 'first' });
    const second = await trained(GGUF, { label: 'second' });
    using runs = await openSavedRuns({ worker });
    const found = await runs.runs();
    expect(found.map(({ run, label, checkpoints }) => [run, label, checkpoints.length])).toEqual([
      [second.run, 'second', 2],
      [first.run, 'first', 2],
    ]);
    expect(found[0]?.checkpoints).toEqual(await runs.list({ run: second.run }));
    await tamper(async (database) => {
      for (const generation of [1, 2])
        await database.put('manifests', {}, [second.run, generation]);
    });
    expect((await runs.runs()).find(({ run }) => run === second.run)).toMatchObject({
      newest: undefined,
      label: 'second',
    });
  });
  it('needs_nothing_of_what_this_page_has_read', async () => {
    const { run } = await trained(GGUF, { keepData: false });
    using runs = await openSavedRuns({ worker });
    expect((await runs.list({ run }))[0]?.needsBase).toBe(false);
  });
});
