/** A part of the comparison before and after training, which is computed on a click. */
import type { TemplateResult } from 'lit-html';

import type { Desk } from './desk.js';

export abstract class Part {
  protected fault: unknown;
  /** The work that is in progress; empty if there is none. */
  protected work = '';

  constructor(protected readonly desk: Desk) {}

  abstract view(): TemplateResult;
  /** Returns the result as lines of a text file; none before it is computed. */
  abstract lines(): string[];

  /** Computes with the weights of one step; the failure is shown by the view. */
  protected async compute(
    words: string,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    this.say(words);
    this.fault = await this.desk.ask(work);
    this.say('');
  }

  protected say(words: string): void {
    this.work = words;
    this.desk.changed();
  }
}
