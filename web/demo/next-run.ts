/** Makes the trainer of the next run, from the form. */
import { TabtuneError, Trainer } from 'tabtune';
import type { CreateOptions } from 'tabtune';

import type { Setup } from './panels/setup.js';
import { driveOptions } from './settings.js';
import type { OpenAgain } from './subject.js';
import type { Intervals } from './waiting.js';

/** A run that was just opened. */
export interface Opened {
  trainer: Trainer;
  /** Name of the run. */
  label: string;
  /** Unknown for a run that is resumed with its own options. */
  intervals?: Intervals;
  /** Identifies the settings whose speed is measured. */
  speedKey?: string;
  /** Unknown for a run that is resumed. */
  again?: OpenAgain | undefined;
}

/** Makes the trainer of the run that the form describes. A text that is too short to keep a part of it for evaluations has none; `say` says so. */
export async function openNext(
  setup: Setup,
  say: (words: string) => void,
  { signal, onProgress }: Required<Pick<CreateOptions, 'signal' | 'onProgress'>>,
): Promise<Opened> {
  await setup.settle(signal);
  setup.fit.check();
  const { data, label, speedKey } = setup;
  const drive = driveOptions(setup.trained);
  const options = { ...setup.options, ...drive, data, label, signal, onProgress };
  const create = async ({ evalEvery, sampleEvery }: Intervals): Promise<Opened> => {
    let again: OpenAgain | undefined;
    const trainer = await setup.handOver((model, opening) => {
      again = opening;
      return Trainer.create({ model, ...options, evalEvery, sampleEvery });
    });
    const intervals = { evalEvery, sampleEvery, saveEvery: drive.saveEvery };
    return { trainer, label, intervals, speedKey, again };
  };
  try {
    return await create(drive);
  } catch (thrown) {
    if (!(thrown instanceof TabtuneError) || thrown.detail.code !== 'data.no-validation')
      throw thrown;
    say('The text is too short to keep a part of it for evaluations: there will be none.');
    return create({ ...drive, evalEvery: 0 });
  }
}
