/** The fold of the advanced settings: their form is loaded when it is first opened. */
import type { TrainOptions } from 'tabtune';

import { advancedCount, noteFaults, restoreAdvanced } from '../advanced.js';
import { byId, nextRun } from '../dom.js';

/** Fields of the page by the settings that they are for. */
export const FIELDS: Readonly<Record<string, string>> = {
  steps: 's-steps',
  learningRate: 's-rate',
  batchSize: 's-batch',
  seqLen: 's-length',
  seed: 's-seed',
  'adapter.r': 's-rank',
  'adapter.alpha': 's-alpha',
};

export class AdvancedFold {
  readonly #fold = byId('advanced', HTMLDetailsElement);

  /** `base` returns the options of the next run without advanced settings. */
  constructor(
    private readonly base: () => TrainOptions,
    private readonly fail: (thrown: unknown) => void,
  ) {
    restoreAdvanced();
    this.draw();
    this.#fold.addEventListener('toggle', () => this.draw());
    for (const part of nextRun()) part.addEventListener('input', () => this.draw());
  }

  /** Shows the settings as they are now. */
  draw(): void {
    const count = advancedCount();
    byId('advanced-title', HTMLElement).textContent =
      count === 0 ? 'Advanced settings' : `Advanced settings, ${count} changed`;
    if (!this.#fold.open) return;
    import('./advanced.js')
      .then(({ drawAdvanced }) => drawAdvanced(byId('advanced-form', HTMLElement), this.base()))
      .catch(this.fail);
  }

  /** Marks the fields that a failure is about, or none. */
  mark(thrown?: unknown): void {
    const names = noteFaults(thrown);
    for (const [name, id] of Object.entries(FIELDS))
      byId(id, HTMLInputElement).setAttribute('aria-invalid', String(names.includes(name)));
    this.draw();
  }
}
