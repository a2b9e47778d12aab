import { toTabtuneError } from '../protocol/errors.js';

/** A queue: values are pushed at one side and iterated at the other; the end or the error follows the last value. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  #values: T[] = [];
  #ended: { error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  push(value: T): void {
    if (this.#ended) return;
    this.#values.push(value);
    this.#wake?.();
  }

  /** Ends the queue, normally if no `error` is given. */
  end(error?: unknown): void {
    this.#ended ??= {
      error: error === undefined || error instanceof Error ? error : toTabtuneError(error),
    };
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<T>> {
    for (;;) {
      const value = this.#values.shift();
      if (value !== undefined) return { done: false, value };
      if (this.#ended) {
        const { error } = this.#ended;
        this.#ended = { error: undefined };
        if (error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async return(): Promise<IteratorResult<T>> {
    this.#values = [];
    this.#ended = { error: undefined };
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
