/** Decides when an automatic save is due. */
import type { Driver } from '../protocol/protocol.js';

/** Minimum interval between saves, in durations of the last one: saving costs at most a tenth of the time. */
const TIMES_LAST_SAVE = 10;
/** Minimum interval for a hidden page or a paused run, unless a save is so quick that it costs at most a tenth of the time. */
const HIDDEN_MILLIS = 30_000;
/** Bounds of the interval that is chosen: what a crash may cost, and what saving may keep a disk busy with. */
const [SHORTEST_MILLIS, LONGEST_MILLIS] = [10_000, 120_000];
/** Bytes per millisecond that saves at the chosen interval write, at most: 4 MiB per second, so that 40 MiB, as of an adapter, are saved every 10 s. */
const BYTES_PER_MILLI = (4 << 20) / 1000;

export class SaveClock {
  /** Step of the newest generation. */
  savedStep: number | undefined;
  /** Number of bytes of a generation; until it is known, it counts as large. */
  bytes = Infinity;
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

  #since(millis: number): boolean {
    return this.now() - this.#triedAt >= millis;
  }

  due(step: number): boolean {
    if (!this.needed(step)) return false;
    const { saveEvery, saveEverySecs } = this.driver;
    if (saveEvery > 0 && step % saveEvery === 0) return true;
    const chosen = Math.max(SHORTEST_MILLIS, this.bytes / BYTES_PER_MILLI);
    const millis =
      saveEverySecs === undefined ? Math.min(LONGEST_MILLIS, chosen) : saveEverySecs * 1000;
    return millis > 0 && this.#since(Math.max(millis, TIMES_LAST_SAVE * this.#tookMillis));
  }

  /** Returns whether to save while no steps may follow, because the page is hidden or the run paused. */
  dueHidden(step: number): boolean {
    const quick = this.savedStep === undefined ? Infinity : TIMES_LAST_SAVE * this.#tookMillis;
    return this.needed(step) && this.#since(Math.min(HIDDEN_MILLIS, quick));
  }
}
