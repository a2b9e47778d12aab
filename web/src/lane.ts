/** One call of the core at a time; afterwards the device must still be whole for the result to count. */
import { aborted } from './errors.js';
import type { DeviceWatch } from './device.js';
import { macrotask } from './pacing.js';
import { clearAbort, requestAbort, wasmError } from './wasm.js';

/** A call of the core that `signal` makes give up, at the state of the last whole step. */
export async function interruptible<T>(signal: AbortSignal | undefined, work: () => Promise<T> | T): Promise<T> {
  if (signal?.aborted) throw aborted();
  clearAbort();
  signal?.addEventListener('abort', requestAbort, { once: true });
  try {
    return await work();
  } finally {
    signal?.removeEventListener('abort', requestAbort);
  }
}

export class Lane {
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly watch: DeviceWatch) {}

  take<T>(work: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    const turn = this.#turn.then(() => interruptible(signal, () => this.guard(work)));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Work inside a turn: nothing begins with a fault set, and a fault names what failed. */
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

  /** A read after everything that was submitted, then room for the fault that it may have been. */
  confirm(read: () => Promise<void>): Promise<void> {
    return this.guard(async () => {
      await read();
      await macrotask();
    });
  }
}
