/** The model that answers in the step "Try": one request at a time, which can be stopped. */
import type { Trainer } from 'tabtune';

import type { Subject, TryHost } from '../subject.js';
import { BaseAgain } from './base-again.js';

export class Desk {
  readonly base: BaseAgain;
  #work: AbortController | undefined;
  #ends: number[] | undefined;

  /** `changed` is called when anything that is shown has changed. */
  constructor(
    readonly subject: Subject,
    readonly host: TryHost,
    readonly changed: () => void,
  ) {
    this.base = new BaseAgain(subject);
  }

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

  /** Returns the ids of the tokens that end a text or an answer. */
  async ends(signal: AbortSignal): Promise<readonly number[]> {
    if (this.#ends) return this.#ends;
    const ids = [...(this.subject.info.model.tokenizer?.eos ?? [])];
    for (const end of this.trainer.data.end) {
      const last = (await this.trainer.score(end, { signal })).tokens.at(-1)?.id;
      if (last !== undefined) ids.push(last);
    }
    return (this.#ends = ids);
  }

  /** Ends the work and closes the second model. */
  close(): void {
    this.stop();
    this.base.close();
  }
}
