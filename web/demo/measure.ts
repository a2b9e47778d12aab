/** Measures how long a step of the next run takes, by a trainer of which nothing is kept. */
import { Trainer } from 'tabtune';
import type { Progress } from 'tabtune';

import type { Setup } from './panels/setup.js';
import { keepSpeed } from './speeds.js';

/** Returns the seconds of a batch of an evaluation; undefined if there is no part for it. The first one prepares the GPU. */
async function secsOfBatch(trainer: Trainer): Promise<number | undefined> {
  try {
    await trainer.evaluate({ maxBatches: 1 });
    const begun = performance.now();
    await trainer.evaluate({ maxBatches: 1 });
    return (performance.now() - begun) / 1000;
  } catch {
    return undefined;
  }
}

/** Measures two steps, of which the first also prepares the GPU, and a batch of an evaluation if the run has a part for it. */
export async function measureNext(
  setup: Setup,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  await setup.settle(signal);
  setup.fit.check();
  const { options, data, speedKey } = setup;
  const trainer = await setup.handOver((model) =>
    Trainer.create({
      model,
      ...options,
      data,
      autosave: false,
      keepData: false,
      evalEvery: 0,
      signal,
      onProgress,
    }),
  );
  const stop = (): void => void trainer.dispose();
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const [first, second = first] = await trainer.step(Math.min(2, options.steps));
    const batch = await secsOfBatch(trainer);
    signal.throwIfAborted();
    if (second) keepSpeed(speedKey, { step: second.secs, batch });
  } finally {
    signal.removeEventListener('abort', stop);
    await trainer.dispose();
  }
}
