/** Aborts of calls, on both sides of the protocol. */
import { aborted } from './errors.js';

/** Waits for `work` until `signal` aborts. The work itself continues, and an error that it throws later is ignored. */
export function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  what?: string,
): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(aborted(what));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
