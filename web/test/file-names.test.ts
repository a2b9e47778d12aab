/** Names that a person gave, as parts of the names of files. */
import { expect, it } from 'vitest';

import { openModel } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { trainerOf } from './runs.js';

it('an_export_has_a_name_that_file_systems_and_people_can_read', async () => {
  using model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
  const named = async (name: string): Promise<unknown> => {
    const [config] = await model.exportFiles({ name });
    return (JSON.parse((await config?.blob.text()) ?? '') as { name: unknown }).name;
  };
  expect(await named('a\u202Egpj.exe\u2066\u200F\u0085\u0007\n\uD800b')).toBe('a-gpj.exe------b');
  expect(await named('x'.repeat(5000))).toBe('x'.repeat(120));
  // A letter of several bytes is kept whole or not at all.
  expect(await named('я🦙'.repeat(100))).toBe('я🦙'.repeat(20));
  expect(await named('x'.repeat(118) + '🦙')).toBe('x'.repeat(118));
  expect(await named('org/Llama ü')).toBe('org/Llama ü');
});

it('a_checkpoint_has_a_name_that_file_systems_and_people_can_read', async () => {
  await using trainer = await trainerOf({ label: `\u202Etab${'я'.repeat(5000)}` });
  await trainer.save();
  const { name } = await trainer.checkpoints.exportFile();
  expect(name).toBe(`-tab${'я'.repeat(58)}-step-0.tabtune`);
});
