/** Manual changes during a run, with the steps at which they were made: a recovered run must repeat them at the same steps. */
import type { Moment } from '../protocol/protocol.js';

type Change = { set: 'rate'; rate: number | undefined } | { set: 'decay' };
export type Entry = Change & Moment;

export class Journal {
  #entries: Entry[] = [];

  add(change: Change, { step, generation }: Moment): void {
    this.#entries.push({ ...change, step, generation });
  }

  /** Returns the changes that the state of this generation lacks, oldest first; all changes if no generation is given. */
  since(generation: number | undefined): Entry[] {
    // An entry made after generation g was saved is contained in g + 1, whichever step that is.
    return this.#entries.filter((entry) => (entry.generation ?? 0) >= (generation ?? 0));
  }

  /** Drops the changes made after this generation, because the trainer went back to it. */
  cut(generation: number): void {
    this.#entries = this.#entries.filter((entry) => (entry.generation ?? 0) < generation);
  }
}
