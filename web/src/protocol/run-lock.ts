import { fault } from './errors.js';

/** The lock of a run, held as long as the trainer exists; it is released automatically if the tab crashes. */
export interface RunLock {
  readonly run: string;
  /** False if the browser has no Web Locks, so that nothing keeps a second tab out. */
  readonly locked: boolean;
  release(): void;
}

const nameOfLock = (run: string): string => `tabtune:${run}`;
/** Name of a lock held around the run's own lock while leftovers are removed, so that a start can distinguish a sweep from a tab that trains. */
const nameOfSweep = (run: string): string => `tabtune-sweep:${run}`;
const lockManager = (): LockManager | undefined => globalThis.navigator?.locks;

/** Takes the run's Web Lock immediately, or once a sweep releases it. Throws BUSY if a tab holds it. */
export async function lockRun(run: string): Promise<RunLock> {
  const locks = lockManager();
  if (locks === undefined) return { run, locked: false, release: () => undefined };
  try {
    const free = await taken(locks, run);
    if (free) return free;
    // Granted immediately if no sweep is in progress.
    await locks.request(nameOfSweep(run), { mode: 'shared' }, () => undefined);
    const freed = await taken(locks, run);
    if (freed) return freed;
  } catch (thrown) {
    throw fault('storage.lock', {}, {}, thrown);
  }
  throw fault('run.locked', { subject: run });
}

/** Takes the run's lock; resolves to undefined if it is held elsewhere. */
function taken(locks: LockManager, run: string): Promise<RunLock | undefined> {
  return new Promise((resolve, reject) => {
    locks
      .request(nameOfLock(run), { mode: 'exclusive', ifAvailable: true }, (lock) => {
        if (lock === null) return resolve(undefined);
        return new Promise<void>((free) => resolve({ run, locked: true, release: () => free() }));
      })
      .catch(reject);
  });
}

/** Runs the sweep `work` under the run's lock if it is free. Without Web Locks that is unknown, so `work` is skipped. */
export async function sweptIfFree(run: string, work: () => Promise<void>): Promise<boolean> {
  const locks = lockManager();
  if (locks === undefined) return false;
  const ifFree = { mode: 'exclusive', ifAvailable: true } as const;
  return locks.request(nameOfSweep(run), ifFree, async (sweep) => {
    if (sweep === null) return false;
    return locks.request(nameOfLock(run), ifFree, async (lock) => {
      if (lock === null) return false;
      await work();
      return true;
    });
  });
}
