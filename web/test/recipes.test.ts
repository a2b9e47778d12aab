import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';

import { resumeSettings, runSettings } from '../src/page/options.js';

const folder = new URL('../../recipes/', import.meta.url);

it.each(readdirSync(folder))('recipe_%s_reaches_the_core_as_it_is', (name) => {
  const settings = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Record<
    string,
    unknown
  >;
  expect(runSettings({ settings })).toEqual(settings);
  expect(runSettings({ settings, learningRate: 1, precision: undefined })).toEqual({
    ...settings,
    learning_rate: 1,
  });
});
it('options_are_laid_over_settings_at_any_depth', () => {
  const settings = {
    steps: 9,
    optimizer: { type: 'adamw', beta2: 0.99 },
    schedule: { type: 'wsd', warmup_steps: 2, decay_steps: 3 },
    groups: [{ pattern: '*', frozen: false }],
  };
  expect(
    runSettings({
      settings,
      optimizer: { type: 'adamw', weightDecay: 0.1 },
      warmupSteps: 5,
      groups: 'no_decay',
    }),
  ).toEqual({
    steps: 9,
    optimizer: { type: 'adamw', beta2: 0.99, weight_decay: 0.1 },
    schedule: { type: 'wsd', warmup_steps: 5, decay_steps: 3 },
    groups: 'no_decay',
  });
  // The keys of another type mean something else.
  const { optimizer } = runSettings({ settings, optimizer: { type: 'sgd' } });
  expect(optimizer).toEqual({ type: 'sgd' });
});
it('settings_that_are_no_object_are_refused', () => {
  const refused: object[] = [[], { seed: 1n }].map((settings) => ({ settings }));
  for (const options of [...refused, { settings: '{}' } as object])
    expect(() => runSettings(options)).toThrow(/^option settings/);
  expect(() => resumeSettings({ settings: {} }, [])).toThrow(/found "settings"\.$/);
});
