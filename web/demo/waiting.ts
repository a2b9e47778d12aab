/** Shows the work of a run between two steps: evaluations and samples send nothing until they are done, which in software may take minutes. */
import type { TrainerEvent } from 'tabtune';

import { duration, grouped } from './format.js';
import type { Entry } from './log.js';

/** Number of steps from one evaluation, or sample, to the next; 0 for none. */
export interface Intervals {
  evalEvery: number;
  sampleEvery: number;
}

/** The intervals of a resumed run, which the page did not choose: the steps of its first evaluation and sample. */
export function intervalsOf(history: readonly Entry[]): Intervals {
  const first = (type: Entry['type']): number =>
    history.find((entry) => entry.type === type)?.step ?? 0;
  return { evalEvery: first('eval'), sampleEvery: first('sample') };
}

/** Time before anything is shown, because on a GPU most of this work is over by then. */
const SHOWN_AFTER_MILLIS = 500;

export class Waiting {
  /** Set when the run is opened. */
  intervals: Intervals = { evalEvery: 0, sampleEvery: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `show` gets the current work and how long it has taken, or nothing when it has ended. */
  constructor(private readonly show: (work: string, elapsed: string) => void) {}

  /** Follows the run: a step's evaluation comes before its sample. */
  follow(event: TrainerEvent): void {
    const { type, step } = event;
    const failed = type === 'warning' ? event.code : '';
    if (type === 'checkpoint' || (type === 'warning' && !/^run\.(evaluation|sample)$/.test(failed)))
      return;
    const isDue = (every: number): boolean => every > 0 && step % every === 0;
    const { evalEvery, sampleEvery } = this.intervals;
    this.end();
    if (type === 'step' && isDue(evalEvery))
      this.#begin(`Evaluating the model after step ${grouped(step)}`);
    else if (
      (type === 'step' || type === 'eval' || failed === 'run.evaluation') &&
      isDue(sampleEvery)
    )
      this.#begin(`Writing a sample after step ${grouped(step)}`);
  }

  #begin(work: string): void {
    const since = performance.now();
    const tick = (): void => {
      const secs = (performance.now() - since) / 1000;
      this.show(`${work} …`, secs < 1 ? '' : duration(secs));
      this.#timer = setTimeout(tick, 1000);
    };
    this.#timer = setTimeout(tick, SHOWN_AFTER_MILLIS);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.show('', '');
  }
}
