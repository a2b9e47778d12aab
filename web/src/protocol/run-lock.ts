import { answerTo, unanswered } from './answers.js';
import { fault, finding } from './errors.js';
import { limited } from './limited.js';
import type { Finding } from './reports.js';

/** The lock of a run, held as long as the trainer exists; it is released automatically if the tab crashes. */
export interface RunLock {
  readonly run: string;
  /** Reason why nothing keeps a second tab out; absent if the run is locked. */
  readonly warning?: Finding;
  release(): void;
}

const nameOfLock = (run: string): string => `tabtune:${run}`;
/** Name of a lock held around the run's own lock while leftovers are removed, so that a start can distinguish a sweep from a tab that trains. */
const nameOfSweep = (run: string): string => `tabtune-sweep:${run}`;
/** Keys that the browser would otherwise find on `Object.prototype`, which some libraries extend. */
const OWN_KEYS = { signal: undefined };
const lockManager = (): LockManager | undefined => globalThis.navigator?.locks;

/** Time limit for a sweep in another tab to release the lock. */
const SWEEP_MILLIS = 10_000;

/**
 * Takes the run's Web Lock immediately, or once a sweep releases it. Throws BUSY if a tab holds it. If the browser has no locks, refuses them or does
 * not answer, the run is not locked, with a warning.
 */
export async function lockRun(run: string): Promise<RunLock> {
  const locks = lockManager();
  let request: Promise<RunLock | 'held'> | undefined;
  const take = (): Promise<RunLock | 'held' | undefined> =>
    answerTo('lock', () => (request = locks && requestLock(locks, run)));
  let lock = await take();
  if (locks === undefined || lock === undefined) {
    // A lock that is granted later is released with this one.
    const release = (): void =>
      void request?.then((late) => late !== 'held' && late.release()).catch(() => undefined);
    const silence = { subject: 'to lock a run', found: 'another tab could train it too' };
    return {
      run,
      warning: unanswered.has('lock')
        ? finding('storage.silent', silence)
        : finding('run.unlocked'),
      release,
    };
  }
  if (lock === 'held') {
    // Granted immediately if no sweep is in progress.
    const swept = locks.request(nameOfSweep(run), { mode: 'shared', ...OWN_KEYS }, () => undefined);
    await limited<unknown>(swept, SWEEP_MILLIS, () => undefined).catch(() => undefined);
    lock = await take();
  }
  if (lock === undefined || lock === 'held') throw fault('run.locked', { subject: run });
  return lock;
}

/** Takes the run's lock, unless it is held elsewhere. */
function requestLock(locks: LockManager, run: string): Promise<RunLock | 'held'> {
  return new Promise((resolve, reject) => {
    locks
      .request(nameOfLock(run), { mode: 'exclusive', ifAvailable: true, ...OWN_KEYS }, (lock) => {
        if (lock === null) return resolve('held');
        return new Promise<void>((free) => resolve({ run, release: () => free() }));
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
