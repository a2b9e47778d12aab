/** The ways out after a run was out of memory: it continues from its checkpoint with settings that need less, or a new one is set up. */
import type { TrainOptions } from 'tabtune';

import type { Run } from '../run.js';
import type { CheckpointPanel } from './checkpoints.js';
import type { Setup } from './setup.js';
import type { Remedy } from './warnings.js';

/** Returns the settings with which a run that was out of memory continues from its checkpoint; its batch stays the same. */
export function resumeWays({
  batchSize = 4,
  gradientAccumulationSteps = 1,
  gradientRelease,
  gradientCheckpointing,
}: TrainOptions): { text: string; settings: TrainOptions }[] {
  const [batch, parts] = [batchSize / 2, gradientAccumulationSteps * 2];
  return [
    ...(Number.isInteger(batch) && gradientRelease !== true
      ? [
          {
            text: `Resume with the same batch in ${parts} parts of ${batch}`,
            settings: { batchSize: batch, gradientAccumulationSteps: parts },
          },
        ]
      : []),
    ...(gradientCheckpointing === true
      ? []
      : [
          {
            text: 'Resume and compute activations twice instead of keeping them',
            settings: { gradientCheckpointing: true },
          },
        ]),
  ];
}

/** Returns the remedies for the open run; `acting` shows why one failed. */
export function memoryRemedies(
  run: Run,
  setup: Setup,
  checkpoints: CheckpointPanel,
  acting: (work: () => Promise<void>) => () => void,
): Remedy[] {
  const { trainer } = run;
  if (!trainer) return [];
  setup.fit.ranOut();
  const ways = resumeWays(trainer.settings.values).map(({ text, settings }) => ({
    text,
    act: acting(async () => {
      const newest = await checkpoints.newest(trainer.runId);
      if (!newest) throw new Error('There is no checkpoint to resume from.');
      await run.resume(newest, undefined, { settings, override: Object.keys(settings) });
    }),
  }));
  return [...ways, { text: 'Set up a new run', act: acting(() => run.again()) }];
}
