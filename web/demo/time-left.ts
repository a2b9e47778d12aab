/** Estimates the time that a run still needs, from what its steps, evaluations, samples and saves have taken so far. */
import type { TrainerEvent } from 'tabtune';

import { isDue } from './waiting.js';
import type { Intervals } from './waiting.js';

/** Number of durations of each kind over which the mean is taken. */
const WINDOW = 20;
type Part = 'step' | 'eval' | 'sample' | 'save';

const countOf = (every: number, step: number): number => (every > 0 ? Math.floor(step / every) : 0);

export class TimeLeft {
  #secs: Record<Part, number[]> = { step: [], eval: [], sample: [], save: [] };
  /** Evaluation and sample that are due after the last step. */
  #pending: Part[] = [];
  #step = 0;
  #steps = 0;
  #saves = 0;
  /** Time of the last event. */
  #since: number;

  constructor(
    private readonly total: number,
    private readonly intervals: Intervals,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#since = now();
  }

  /** Follows the run; the time while it rests is not counted. */
  follow(event: TrainerEvent): void {
    const secs = (this.now() - this.#since) / 1000;
    switch (event.type) {
      case 'step':
        this.#stepped(event.step, event.secs);
        break;
      case 'eval':
      case 'sample':
        // One that was made twice after a loss of the GPU is due once.
        if (this.#pending.includes(event.type)) this.#note(event.type, secs);
        this.#ended(event.type);
        break;
      case 'checkpoint':
        if (event.step > 0) this.#saves += 1;
        this.#note('save', event.secs);
        break;
      case 'warning':
        if (event.code === 'run.evaluation') this.#ended('eval');
        if (event.code === 'run.sample') this.#ended('sample');
        return;
      case 'state':
        this.#step = event.step;
        if (event.state !== 'running') this.#pending = [];
        break;
      default:
        event satisfies never;
    }
    this.#since = this.now();
  }

  #stepped(step: number, secs: number): void {
    this.#step = step;
    this.#steps += 1;
    // The first step compiles its kernels.
    if (this.#steps > 1) this.#note('step', secs);
    const { evalEvery, sampleEvery } = this.intervals;
    this.#pending = [];
    if (isDue(evalEvery, step)) this.#pending.push('eval');
    if (isDue(sampleEvery, step)) this.#pending.push('sample');
  }

  #note(part: Part, secs: number): void {
    const list = this.#secs[part];
    list.push(secs);
    if (list.length > WINDOW) list.shift();
  }

  #ended(part: Part): void {
    this.#pending = this.#pending.filter((each) => each !== part);
  }

  #mean(part: Part): number | undefined {
    const list = this.#secs[part];
    return list.length === 0 ? undefined : list.reduce((sum, each) => sum + each, 0) / list.length;
  }

  /** Returns the seconds that remain, and whether all parts of them are known; nothing before two steps were made. */
  left(): { secs: number; whole: boolean } | undefined {
    const steps = Math.max(0, this.total - this.#step);
    if (steps > 0 && this.#mean('step') === undefined) return undefined;
    const still = (every: number, part: Part): number =>
      countOf(every, this.total) -
      countOf(every, this.#step) +
      (this.#pending.includes(part) ? 1 : 0);
    const parts: [Part, number][] = [
      ['step', steps],
      ['eval', still(this.intervals.evalEvery, 'eval')],
      ['sample', still(this.intervals.sampleEvery, 'sample')],
      // Saves come during the steps, as often as so far, and at the end.
      ['save', 1 + (steps * this.#saves) / Math.max(1, this.#steps)],
    ];
    let [secs, whole] = [0, true];
    for (const [part, count] of parts) {
      const mean = this.#mean(part);
      if (count > 0 && mean === undefined) whole = false;
      secs += count * (mean ?? 0);
    }
    // The time that the current part has taken already.
    const current = this.#pending[0] ?? (steps > 0 ? 'step' : 'save');
    const taken = (this.now() - this.#since) / 1000;
    return { secs: secs - Math.min(taken, this.#mean(current) ?? 0), whole };
  }
}
