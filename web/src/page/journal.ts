/** Changes made by hand during a run, with the step at which they were made: a recovered run needs them at the same steps. */
import type { Moment } from '../protocol/protocol.js';

type Change = { set: 'rate'; rate: number | undefined } | { set: 'decay' };
export type Entry = Change & Moment;

export class Journal {
  #entries: Entry[] = [];

  add(change: Change, { step, generation }: Moment): void {
    this.#entries.push({ ...change, step, generation });
  }

  /** The changes that the state of this generation lacks, oldest first; without a generation, all changes. */
  since(generation: number | undefined): Entry[] {
    // An entry made after generation g was saved is in g + 1, whichever step that is.
    return this.#entries.filter((entry) => (entry.generation ?? 0) >= (generation ?? 0));
  }

  /** The trainer went back to this generation: later changes are dropped. */
  cut(generation: number): void {
    this.#entries = this.#entries.filter((entry) => (entry.generation ?? 0) < generation);
  }
}
