/** The model that answers in the step "Try": one request at a time, which can be stopped. */
import type { Trainer } from 'tabtune';

import type { Subject, TryHost } from '../trying.js';

export class Desk {
  #work: AbortController | undefined;

  /** `changed` is called when anything that is shown has changed. */
  constructor(
    readonly subject: Subject,
    readonly host: TryHost,
    readonly changed: () => void,
  ) {}

  get trainer(): Trainer {
    return this.subject.trainer;
  }

  get busy(): boolean {
    return this.#work !== undefined;
  }

  /**
   * Does work with the weights of one step: a run that is in progress waits. Returns the failure, if there is one; a stop is none.
   */
  async ask(work: (signal: AbortSignal) => Promise<void>): Promise<unknown> {
    if (this.#work) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    this.#work = controller;
    this.changed();
    try {
      await this.host.alone(() => work(signal));
    } catch (thrown) {
      return signal.aborted ? undefined : thrown;
    } finally {
      this.#work = undefined;
      this.changed();
    }
    return undefined;
  }

  stop(): void {
    this.#work?.abort();
  }
}
