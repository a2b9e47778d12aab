/** What was set by hand in a run, with the moment it was set: a run that is put together again needs it at the same steps. */
import type { Moment } from './protocol.js';

type Change = { set: 'rate'; rate: number | undefined } | { set: 'decay' };
export type Entry = Change & Moment;

export class Journal {
  #entries: Entry[] = [];

  add(change: Change, { step, generation }: Moment): void {
    this.#entries.push({ ...change, step, generation });
  }

  /** What the state of this generation lacks, oldest first; of no generation: all of it. */
  since(generation: number | undefined): Entry[] {
    // An entry made after generation g was saved is in g + 1, whichever step that is.
    return this.#entries.filter((entry) => (entry.generation ?? 0) >= (generation ?? 0));
  }

  /** The trainer went back to this generation: what came later did not happen. */
  cut(generation: number): void {
    this.#entries = this.#entries.filter((entry) => (entry.generation ?? 0) < generation);
  }
}
