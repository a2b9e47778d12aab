/** Limits how often a worker may be lost, and determines the delay before the next one is started. */
import { fault } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';

/** Delays before each attempt: a GPU process that died twice needs more than five seconds; after a minute in total it will not come back. */
const DELAYS_SECS = [0, 1, 2, 4, 8, 16, 29];
const WINDOW_MILLIS = 60_000;
/** Number of GPU losses within the window that ends the recovery. */
const TOO_MANY = 3;

interface Crash {
  words: string;
  confirmed: number;
  times: number;
}

export class Retries {
  #lost: number[] = [];
  #crash: Crash | undefined;
  /** Index into the delays of the current recovery. */
  #tries = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * Returns the seconds to wait before another worker is started; throws if recovery is given up. `confirmed` is the last confirmed step; `unstarted`
   * says that the last worker did not even start.
   */
  delayAfter(error: TabtuneError, confirmed: number, unstarted = false): number {
    if (error.code === 'WORKER_CRASHED' && !unstarted) return this.#crashed(error, confirmed);
    if (error.code === 'DEVICE_LOST') {
      const now = this.now();
      this.#lost = [...this.#lost.filter((time) => now - time < WINDOW_MILLIS), now];
      if (this.#lost.length >= TOO_MANY) throw unavailable(error);
      // After a loss that closely follows another, the retry is delayed.
      this.#tries = Math.max(this.#tries, this.#lost.length - 1);
    }
    const delay = DELAYS_SECS[this.#tries++];
    if (delay === undefined) throw unstarted ? unreachable(error) : unavailable(error);
    return delay;
  }

  /** Marks the recovery as complete: the next loss starts a new one. */
  over(): void {
    this.#tries = 0;
  }

  /** Throws if a crash is repeated before a step is confirmed, because it would repeat forever. */
  #crashed(error: TabtuneError, confirmed: number): number {
    const before =
      this.#crash !== undefined && confirmed <= this.#crash.confirmed ? this.#crash : undefined;
    this.#crash = { words: error.message, confirmed, times: (before?.times ?? 0) + 1 };
    if (before?.words === error.message || this.#crash.times >= TOO_MANY) throw error;
    return 0;
  }
}

const unreachable = (error: TabtuneError): TabtuneError =>
  fault(
    'worker.failed',
    {
      found: 'it no longer starts: the site has changed or cannot be reached',
      hint: 'Reload the page; the last checkpoint is kept.',
    },
    { step: error.detail.step },
    error,
  );
const unavailable = (error: TabtuneError): TabtuneError =>
  fault('device.unavailable', {}, { step: error.detail.step }, error);
