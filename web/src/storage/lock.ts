import { TabtuneError } from '../errors.js';

/** Holds a run for as long as the trainer lives; a crashed tab frees it by itself. */
export interface RunLock {
  readonly run: string;
  release(): void;
}

/** Takes the run's Web Lock at once or fails with BUSY. */
export async function lockRun(run: string): Promise<RunLock> {
  const locks: LockManager | undefined = globalThis.navigator?.locks;
  if (locks === undefined) return { run, release: () => undefined };
  return new Promise((resolve, reject) => {
    locks
      .request(`tabtune:${run}`, { mode: 'exclusive', ifAvailable: true }, (lock) => {
        if (lock === null) {
          reject(new TabtuneError('BUSY', `run ${run} is being trained in another tab: pause and close it there first`, { code: 'run.locked' }));
          return undefined;
        }
        return new Promise<void>((free) => resolve({ run, release: () => free() }));
      })
      .catch((thrown: unknown) => reject(new TabtuneError('STORAGE_FAILED', 'the run could not be locked', { code: 'storage.lock' }, thrown)));
  });
}
