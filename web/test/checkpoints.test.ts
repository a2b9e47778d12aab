import { describe, expect, it } from 'vitest';

import { openSavedRuns, Trainer } from '../src/index.js';
import type { TrainerEvent } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { gpu } from '../src/testing/fake-gpu.js';
import { collect, stepsOf, trainerOf } from './runs.js';

describe('checkpoints', () => {
  it('resume_continues_from_the_saved_step_with_stored_data', async () => {
    const first = await trainerOf({ label: 'mine' });
    await first.step(4);
    const saved = await first.save();
    expect(saved).toMatchObject({
      step: 4,
      generation: 2,
      label: 'mine',
      dataName: 'some.txt',
      hasData: true,
    });
    await first.dispose();
    await using second = await Trainer.resume({ run: first.runId, worker: fakeWorker() });
    expect(second.completedSteps).toBe(4);
    expect(stepsOf(await collect(second.run()))).toEqual([5, 6, 7, 8, 9, 10]);
  });
  it('a_resume_on_another_adapter_says_so', async () => {
    const first = await trainerOf();
    await first.step(1);
    await first.save();
    await first.dispose();
    gpu.adapter = 'Another adapter';
    await using second = await Trainer.resume({ run: first.runId, worker: fakeWorker() });
    gpu.adapter = 'Fake adapter';
    const told = await new Promise<TrainerEvent>((resolve) =>
      second.addEventListener(
        'warning',
        (event) => resolve(Reflect.get(event, 'detail') as TrainerEvent),
        { once: true },
      ),
    );
    expect(told).toMatchObject({
      code: 'checkpoint.environment',
      message: expect.stringMatching(/Fake adapter.*Another adapter/) as unknown,
    });
  });
  it('resume_changes_only_what_override_names', async () => {
    const first = await trainerOf();
    await first.step(2);
    await first.save();
    await first.dispose();
    const again = {
      run: first.runId,
      worker: fakeWorker(),
      settings: { learningRate: 1e-4, steps: 5 },
    };
    const refused = Trainer.resume({ ...again, override: ['steps'] });
    await expect(refused).rejects.toMatchObject({ code: 'CHECKPOINT_MISMATCH' });
    await expect(refused).rejects.toThrow('learning_rate');
    await using second = await Trainer.resume({
      ...again,
      worker: fakeWorker(),
      override: ['steps', 'learningRate'],
    });
    expect(stepsOf(await collect(second.run()))).toEqual([3, 4, 5]);
  });
  it('load_puts_the_trainer_back', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    await trainer.save();
    await trainer.step(3);
    await trainer.save();
    // The first generation is of step 0.
    expect((await trainer.checkpoints.load({ generation: 2 })).completedSteps).toBe(2);
    expect((await trainer.step()).map((event) => event.step)).toEqual([3]);
  });
  it('export_and_import_of_a_file', async () => {
    await using trainer = await trainerOf({ label: 'filed' });
    await trainer.step(1);
    const { generation } = await trainer.save();
    const file = await trainer.checkpoints.exportFile({ generation });
    expect([file.name, file.type]).toEqual(['filed-step-1.tabtune', 'application/octet-stream']);
    const runs = await openSavedRuns({ worker: fakeWorker() });
    const imported = await runs.importFile(file);
    expect(imported).toMatchObject({ step: 1, label: 'filed', hasData: true });
    expect(imported.run).not.toBe(trainer.runId);
    const bytes = new Uint8Array(await file.arrayBuffer());
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
    await expect(runs.importFile(new Blob([bytes]))).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
    });
    await expect(runs.importFile(new Blob(['short']))).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      detail: { code: 'checkpoint.container.magic' },
    });
  });
});
