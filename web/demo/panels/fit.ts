/** Says that the next run is not planned to fit, or that it ran out of memory, with ways to need less; it does not start before one is chosen. */
import { TabtuneError } from 'tabtune';
import type { Estimate, Model, TrainOptions } from 'tabtune';

import { byId } from '../dom.js';
import { bytes } from '../format.js';
import type { Trained } from '../optimizers.js';

export class FitPanel {
  readonly #place = byId('fit', HTMLElement);
  /** Planned bytes of the next run, and what the browser has for it. */
  #need = 0;
  #have: number | undefined;
  /** Planned bytes of a run that ran out of memory. */
  #failed = Infinity;
  /** Planned bytes of a run whose buffers are larger than the GPU takes. */
  #limited = Infinity;
  /** Planned bytes up to which a run starts although it is not planned to fit. */
  #allowed = 0;

  /** `start` starts the run as it is. */
  constructor(private readonly start: () => void) {}

  /** True if the run is not to start before something is chosen. */
  get #blocks(): boolean {
    return (
      this.#need > this.#allowed &&
      (this.#need > (this.#have ?? Infinity) || this.#need >= this.#failed)
    );
  }

  /** True if there is a reason to show ways. */
  get #shows(): boolean {
    return this.#blocks || this.#need >= this.#limited;
  }

  /** Throws if something is to be chosen first. */
  check(): void {
    if (this.#blocks)
      throw new Error(
        'This run is not planned to fit: choose below how it needs less memory, or train it as it is.',
      );
  }

  /** Notes that a run with the planned bytes failed, if it is for want of memory. */
  failed(thrown: unknown): void {
    if (!(thrown instanceof TabtuneError)) return;
    if (thrown.code === 'OUT_OF_MEMORY') this.ranOut();
    if (thrown.detail.code === 'device.limit') this.#limited = Math.min(this.#limited, this.#need);
  }

  /** Notes that a run with the planned bytes ran out of memory. */
  ranOut(): void {
    this.#failed = Math.min(this.#failed, this.#need);
    this.#allowed = 0;
  }

  /** Shows whether a run with these options fits, and if not, what would. */
  async show(
    model: Model,
    options: TrainOptions,
    trained: Trained,
    { needBytes, haveBytes }: Estimate,
    isCurrent: () => boolean,
  ): Promise<void> {
    [this.#need, this.#have] = [needBytes, haveBytes];
    if (!this.#shows) {
      this.#place.hidden = true;
      return;
    }
    const { drawWays, findWays } = await import('./fit-ways.js');
    const limit = Math.min(haveBytes ?? Infinity, this.#failed - 1, this.#limited - 1);
    const ways = await findWays(model, options, trained, { needBytes, limit });
    if (!isCurrent()) return;
    this.#place.hidden = false;
    const anyway = (): void => {
      this.#allowed = needBytes;
      this.#place.hidden = true;
      this.start();
    };
    drawWays(this.#place, { why: this.#why, ways, anyway: this.#blocks ? anyway : undefined });
  }

  get #why(): string {
    if (this.#need >= this.#failed)
      return 'A run that was planned like this did not get the memory that it needs.';
    return this.#need >= this.#limited
      ? 'A run that was planned like this needs larger buffers than this GPU takes.'
      : `This run is planned to need ${bytes(this.#need)}, and this browser has about ${bytes(this.#have ?? 0)} for it.`;
  }

  /** Moves the focus to what can be chosen. */
  ask(): void {
    this.#place.scrollIntoView({ block: 'center' });
    this.#place.querySelector('button')?.focus({ preventScroll: true });
  }
}
