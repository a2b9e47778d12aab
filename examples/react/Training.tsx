// A component that trains with the hook next to it, with a button that pauses and resumes. In Next.js
// and other frameworks that render on a server it is a client component.
'use client';

import { useCallback, useState } from 'react';
import { openModel, Trainer } from 'tabtune';
import { useTrainer } from './use-trainer';

export function Training({ files, data }: { files: File[]; data: File }) {
  const start = useCallback(
    async (signal: AbortSignal) => {
      using model = await openModel(files, { signal });
      return await Trainer.create({ model, data, signal });
    },
    [files, data],
  );
  const { trainer, snapshot, error } = useTrainer(start);
  const [failure, setFailure] = useState<unknown>();

  async function train(trainer: Trainer) {
    try {
      for await (const event of trainer.run())
        if (event.type === 'warning') console.warn(event.message);
    } catch (thrown) {
      // The component was unmounted, and the run ended with it.
      if ((thrown as Error).name !== 'AbortError') setFailure(thrown);
    }
  }

  if (error ?? failure) return <p role="alert">{String(error ?? failure)}</p>;
  if (!trainer || !snapshot) return <p>Loading …</p>;
  const { state, step, totalSteps, lastStep } = snapshot;
  return (
    <section>
      <progress value={step} max={totalSteps} />
      <output>{lastStep ? `step ${step}: loss ${lastStep.loss}` : state}</output>
      {state === 'ready' && <button onClick={() => void train(trainer)}>Train</button>}
      {state === 'running' && <button onClick={() => void trainer.pause()}>Pause</button>}
      {state === 'paused' && <button onClick={() => void trainer.resume()}>Resume</button>}
    </section>
  );
}
