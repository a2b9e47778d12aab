// A React hook that owns one run: it starts when the component mounts, and is paused, saved and ended
// when it unmounts. StrictMode, which mounts twice, leaves one run; on a server the hook only renders.
import { useEffect, useState, useSyncExternalStore } from 'react';
import type { Trainer, TrainerSnapshot } from 'tabtune';

export interface Training {
  trainer: Trainer | undefined;
  /** State, step and loss; another object after each change, so that the component renders again. */
  snapshot: TrainerSnapshot | undefined;
  error: unknown;
}

const never = () => () => undefined;

/** `start` opens a model and creates the trainer. Wrap it in `useCallback`: another function is another run. */
export function useTrainer(start: (signal: AbortSignal) => Promise<Trainer>): Training {
  const [{ trainer, error }, set] = useState<{ trainer?: Trainer; error?: unknown }>({});
  useEffect(() => {
    const unmounted = new AbortController();
    const started = start(unmounted.signal);
    started.then(
      (trainer) => !unmounted.signal.aborted && set({ trainer }),
      (error: unknown) => !unmounted.signal.aborted && set({ error }),
    );
    return () => {
      unmounted.abort();
      set({});
      started.then((trainer) => trainer.dispose({ save: true })).catch(() => undefined);
    };
  }, [start]);
  const snapshot = useSyncExternalStore(
    trainer?.subscribe ?? never,
    () => trainer?.snapshot,
    () => undefined,
  );
  return { trainer, snapshot, error };
}
