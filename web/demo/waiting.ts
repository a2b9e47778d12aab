/** Shows the work of a run between its events: steps, evaluations, samples and saves send nothing until they are done, which may take minutes. */
import type { TrainerEvent } from 'tabtune';

import { duration, grouped } from './format.js';
import type { Entry } from './log.js';

/** Number of steps from one evaluation, sample, or save by steps, to the next; 0 for none. */
export interface Intervals {
  evalEvery: number;
  sampleEvery: number;
  saveEvery: number;
}

/** The intervals of a resumed run, which the page did not choose: the steps of its first evaluation and sample. */
export function intervalsOf(history: readonly Entry[]): Intervals {
  const first = (type: Entry['type']): number =>
    history.find((entry) => entry.type === type)?.step ?? 0;
  return { evalEvery: first('eval'), sampleEvery: first('sample'), saveEvery: 0 };
}

/** Returns whether something that is done every so many steps is done after this one. */
export const isDue = (every: number, step: number): boolean => every > 0 && step % every === 0;

export type Work = 'first' | 'step' | 'save' | 'eval' | 'sample' | 'end';

/** Time before work is shown, because on a GPU most of it is over by then. */
const SHOWN_AFTER_MILLIS = 500;
const STEP_SHOWN_AFTER_MILLIS = 2000;

/** `show` gets the current work, its words and how long it has taken, or nothing when it has ended. */
export type Show = (words: string, elapsed: string, work: Work | undefined) => void;

export class Waiting {
  /** Set when the run is opened. */
  intervals: Intervals = { evalEvery: 0, sampleEvery: 0, saveEvery: 0 };
  /** Number of steps of the whole run; 0 while unknown. */
  total = 0;
  #step = 0;
  /** True once this worker has made a step, and thereby has its kernels. */
  #compiled = false;
  /** True once the run is saved, as it is before its first step. */
  #saved = false;
  #stopping = false;
  #queue: Work[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly show: Show) {}

  /** Notes that the run has a checkpoint, so that none is made before its next step. */
  set saved(saved: boolean) {
    this.#saved = saved;
  }

  /** Current work. */
  get work(): Work | undefined {
    return this.#queue[0];
  }

  /** Follows the run: after a step a save comes first, then its evaluation, then its sample. */
  follow(event: TrainerEvent): void {
    switch (event.type) {
      case 'step':
        this.#after(event.step);
        return;
      case 'eval':
        this.#done('eval');
        return;
      case 'sample':
        this.#done('sample');
        return;
      case 'checkpoint':
        this.#saved = true;
        if (this.work === 'first') this.#begin();
        else if (this.work === 'save') this.#done('save');
        return;
      case 'warning':
        if (event.code === 'run.evaluation') this.#done('eval');
        else if (event.code === 'run.sample') this.#done('sample');
        else if (event.code.startsWith('storage.') && this.work === 'save') this.#done('save');
        return;
      case 'state':
        if (event.state === 'recovering') this.#compiled = false;
        if (event.state !== 'running') this.end();
        else {
          this.#step = event.step;
          this.#next([]);
        }
        return;
      default:
        event satisfies never;
    }
  }

  #after(step: number): void {
    const { evalEvery, sampleEvery, saveEvery } = this.intervals;
    this.#step = step;
    this.#compiled = true;
    const [evaluates, samples] = [isDue(evalEvery, step), isDue(sampleEvery, step)];
    const saves = isDue(saveEvery, step) || (this.#isLast && (evaluates || samples));
    this.#next([
      ...(saves ? ['save' as const] : []),
      ...(evaluates ? ['eval' as const] : []),
      ...(samples ? ['sample' as const] : []),
    ]);
  }

  get #isLast(): boolean {
    return this.total > 0 && this.#step >= this.total;
  }

  /** Ends this work, and what came before it. */
  #done(work: Work): void {
    const at = this.#queue.indexOf(work);
    if (at >= 0) this.#next(this.#queue.slice(at + 1));
  }

  /** Begins the work between two steps, and after it the next step or the end. */
  #next(between: Work[]): void {
    const rest = between.filter((work) => work !== 'step' && work !== 'end' && work !== 'first');
    const then = this.#isLast || (this.#stopping && this.#compiled) ? 'end' : 'step';
    this.#queue = [...rest, then === 'step' && !this.#compiled ? 'first' : then];
    this.#begin();
  }

  /** Says from now on that the run stops. */
  stop(): void {
    this.#stopping = true;
    if (this.work !== undefined) this.#begin();
  }

  #words(work: Work): string {
    const step = grouped(this.#step);
    switch (work) {
      case 'first':
        return this.#saved
          ? 'The first step: its kernels are compiled now'
          : 'The first step: the run is saved, then its kernels are compiled';
      case 'step':
        return `Step ${grouped(this.#step + 1)}`;
      case 'save':
        return `Saving step ${step}`;
      case 'eval':
        return `Evaluating the model after step ${step}`;
      case 'sample':
        return `Writing a sample after step ${step}`;
      case 'end':
        return this.#isLast ? 'Saving the end of the run' : 'Saving, then the run stops';
    }
  }

  #begin(): void {
    clearTimeout(this.#timer);
    const { work } = this;
    if (work === undefined) return;
    const made = this.#isLast ? `All ${grouped(this.total)} steps are made. ` : '';
    const then =
      this.#stopping && work !== 'end'
        ? work === 'step' || work === 'first'
          ? '; the run stops after it'
          : '; then the run stops'
        : '';
    const words = `${made}${this.#words(work)}${then} …`;
    const since = performance.now();
    const tick = (): void => {
      const secs = (performance.now() - since) / 1000;
      this.show(words, secs < 1 ? '' : duration(secs), work);
      this.#timer = setTimeout(tick, 1000);
    };
    this.show('', '', undefined);
    const delay = work === 'step' && !this.#stopping ? STEP_SHOWN_AFTER_MILLIS : SHOWN_AFTER_MILLIS;
    this.#timer = setTimeout(tick, delay);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue = [];
    this.#stopping = false;
    this.show('', '', undefined);
  }
}
