/** Shortens the waits for the GPU in Firefox, which looks for ended work every 100 ms and at each submission alone. */

/** Time between two submissions: a part of the newest wait so far, within these bounds. */
const PART = 1 / 8;
const [LEAST_MILLIS, MOST_MILLIS] = [1, 16];

/** Returns whether a browser looks for ended work by the clock (bugzilla.mozilla.org, bug 1870699). */
export const polls = (agent: string | undefined): boolean => /\bFirefox\//.test(agent ?? '');

/** Submits nothing, again and again, while something waits for the GPU. */
export class Nudges {
  #waits = 0;
  #since = 0;
  #queue: Pick<GPUQueue, 'submit'>;

  constructor(queue: Pick<GPUQueue, 'submit'>) {
    this.#queue = queue;
  }

  /** Returns `wait` itself, and submits until it settles. */
  during<T>(wait: Promise<T>): Promise<T> {
    const ended = (): void => {
      this.#waits--;
    };
    wait.then(ended, ended);
    this.#since = performance.now();
    if (this.#waits++ === 0) this.#later();
    return wait;
  }

  #later(): void {
    const elapsed = performance.now() - this.#since;
    setTimeout(
      () => {
        if (this.#waits === 0) return;
        this.#queue.submit([]);
        this.#later();
      },
      Math.min(MOST_MILLIS, Math.max(LEAST_MILLIS, elapsed * PART)),
    );
  }
}
