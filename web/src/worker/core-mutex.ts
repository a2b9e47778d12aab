/** Runs one call of the core at a time. Its result counts only if the device had no fault by its end. */
import { aborted } from '../protocol/errors.js';
import type { DeviceWatch } from './device.js';
import { unlessAborted } from '../protocol/abort.js';
import { macrotask } from './pacing.js';
import { clearAbort, requestAbort, wasmError } from './wasm.js';

/** Runs a call of the core that `signal` can abort; an abort leaves the state of the last complete step. */
export async function interruptible<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T> | T,
): Promise<T> {
  if (signal?.aborted) throw aborted();
  clearAbort();
  signal?.addEventListener('abort', requestAbort, { once: true });
  try {
    return await work();
  } finally {
    signal?.removeEventListener('abort', requestAbort);
  }
}

export class CoreMutex {
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly watch: DeviceWatch) {}

  take<T>(work: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    const turn = this.#turn.then(() => interruptible(signal, () => this.guard(work)));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Takes a turn that changes nothing: an abort settles at once, even while the device compiles kernels, which cannot be interrupted. The turn ends
   * when the core has stopped.
   */
  look<T>(work: () => Promise<T> | T, signal: AbortSignal): Promise<T> {
    return unlessAborted(this.take(work, signal), signal);
  }

  /** Runs work in a turn: it does not start after a fault, and a fault during it becomes its error. */
  async guard<T>(work: () => Promise<T> | T): Promise<T> {
    this.watch.check();
    try {
      const result = await work();
      this.watch.check();
      return result;
    } catch (thrown) {
      throw await this.watch.explain(wasmError(thrown));
    }
  }

  /** Reads everything submitted so far, then waits for a fault that this may have caused. */
  confirm(read: () => Promise<void>): Promise<void> {
    return this.guard(async () => {
      await read();
      await macrotask();
    });
  }
}
