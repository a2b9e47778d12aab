import { TabtuneError } from './errors.js';

/** The lock of a run, held as long as the trainer exists; it is released automatically if the tab crashes. */
export interface RunLock {
  readonly run: string;
  /** False where the browser has no Web Locks: then nothing keeps a second tab out. */
  readonly locked: boolean;
  release(): void;
}

const nameOfLock = (run: string): string => `tabtune:${run}`;
const lockManager = (): LockManager | undefined => globalThis.navigator?.locks;

/** Takes the run's Web Lock at once or fails with BUSY. */
export async function lockRun(run: string): Promise<RunLock> {
  const locks = lockManager();
  if (locks === undefined) return { run, locked: false, release: () => undefined };
  return new Promise((resolve, reject) => {
    locks
      .request(nameOfLock(run), { mode: 'exclusive', ifAvailable: true }, (lock) => {
        if (lock === null) {
          reject(new TabtuneError('BUSY', `run ${run} is being trained in another tab: pause and close it there first`, { code: 'run.locked' }));
          return undefined;
        }
        return new Promise<void>((free) => resolve({ run, locked: true, release: () => free() }));
      })
      .catch((thrown: unknown) => reject(new TabtuneError('STORAGE_FAILED', 'the run could not be locked', { code: 'storage.lock' }, thrown)));
  });
}

/** Runs `work` under the run's lock if it is free. Without Web Locks that is unknown, so `work` is skipped. */
export async function ifFree(run: string, work: () => Promise<void>): Promise<boolean> {
  const locks = lockManager();
  if (locks === undefined) return false;
  return locks.request(nameOfLock(run), { mode: 'exclusive', ifAvailable: true }, async (lock) => {
    if (lock === null) return false;
    await work();
    return true;
  });
}
