/** Decides when an automatic save is due. */
import type { Driver } from '../protocol/protocol.js';

/** Minimum interval between saves, in durations of the last one: saving costs at most a tenth of the time. */
const TIMES_LAST_SAVE = 10;
/** Minimum interval for a hidden page, so that switching tabs back and forth does not save each time. */
const HIDDEN_MILLIS = 30_000;

export class SaveClock {
  /** Step of the newest generation. */
  savedStep: number | undefined;
  #triedAt: number;
  #tookMillis = 0;

  constructor(
    private readonly driver: Pick<Driver, 'autosave' | 'saveEvery' | 'saveEverySecs'>,
    savedStep: number | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.savedStep = savedStep;
    this.#triedAt = this.now();
  }

  /** Records an attempt to save, so that a failed one is not repeated at every step. */
  tried(millis: number): void {
    this.#triedAt = this.now();
    this.#tookMillis = millis;
  }

  /** Returns whether there are unsaved steps. */
  needed(step: number): boolean {
    return this.driver.autosave && this.savedStep !== step;
  }

  due(step: number): boolean {
    if (!this.needed(step)) return false;
    const { saveEvery, saveEverySecs } = this.driver;
    if (saveEvery > 0 && step % saveEvery === 0) return true;
    return (
      saveEverySecs > 0 &&
      this.now() - this.#triedAt >=
        Math.max(saveEverySecs * 1000, TIMES_LAST_SAVE * this.#tookMillis)
    );
  }

  dueHidden(step: number): boolean {
    return this.needed(step) && this.now() - this.#triedAt >= HIDDEN_MILLIS;
  }
}
