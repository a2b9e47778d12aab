/** Says that the next run is not planned to fit, or that it ran out of memory, with ways to need less; it does not start before one is chosen. */
import { html, nothing, render } from 'lit-html';
import { TabtuneError, Trainer } from 'tabtune';
import type { Estimate, Model, TrainOptions } from 'tabtune';

import { setAdvanced } from '../advanced.js';
import { byId, check } from '../dom.js';
import { bytes } from '../format.js';
import { waysOf } from '../lighter.js';
import type { Way } from '../lighter.js';
import { isNumber, setNumber } from '../numbers.js';
import type { Trained } from '../optimizers.js';
import { trainOptions } from '../settings.js';

interface Planned extends Way {
  need: number;
}

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
    const ways: Planned[] = [];
    if (this.#shows) {
      const limit = Math.min(haveBytes ?? Infinity, this.#failed - 1, this.#limited - 1);
      for (const kind of waysOf(options, trained, trainOptions('adapter'))) {
        const found = await leastChange(model, kind, limit);
        if (found && found.need < needBytes) ways.push(found);
      }
    }
    if (isCurrent()) this.#draw(ways);
  }

  #draw(ways: readonly Planned[]): void {
    this.#place.hidden = !this.#shows;
    const why =
      this.#need >= this.#failed
        ? 'A run that was planned like this did not get the memory that it needs.'
        : this.#need >= this.#limited
          ? 'A run that was planned like this needs larger buffers than this GPU takes.'
          : `This run is planned to need ${bytes(this.#need)}, and this browser has about ${bytes(this.#have ?? 0)} for it.`;
    const anyway = (): void => {
      this.#allowed = this.#need;
      this.#draw([]);
      this.start();
    };
    render(
      this.#shows
        ? html`<p class="fault" id="fit-said" role="alert">
              ${why} ${ways.length > 0 ? 'These ways need less:' : 'A smaller model needs less.'}
            </p>
            <div class="acts">
              ${ways.map(
                (way) =>
                  html`<button type="button" @click=${() => this.#apply(way)}>
                    ${way.text}: about ${bytes(way.need)}
                  </button>`,
              )}
              ${
                this.#blocks
                  ? html`<button type="button" id="fit-anyway" @click=${anyway}>
                      Train as it is
                    </button>`
                  : nothing
              }
            </div>`
        : nothing,
      this.#place,
    );
  }

  #apply({ numbers = {}, advanced = {}, rule, trained }: Way): void {
    for (const [id, value] of Object.entries(numbers))
      if (isNumber(id)) setNumber(id, String(value));
    for (const [path, value] of Object.entries(advanced)) setAdvanced(path, value);
    if (rule !== undefined) byId('s-optimizer', HTMLSelectElement).value = rule;
    if (trained) check('trained', trained);
    byId('numbers', HTMLElement).dispatchEvent(new Event('input'));
  }

  /** Moves the focus to what can be chosen. */
  ask(): void {
    this.#place.scrollIntoView({ block: 'center' });
    this.#place.querySelector('button')?.focus({ preventScroll: true });
  }
}

/** Returns the first of several ways that fits, or else the last; undefined if none can be planned. */
async function leastChange(
  model: Model,
  ways: readonly Way[],
  limit: number,
): Promise<Planned | undefined> {
  let found: Planned | undefined;
  for (const way of ways) {
    const need = await Trainer.estimate(model, way.options).then(
      ({ needBytes }) => needBytes,
      () => undefined,
    );
    if (need === undefined) continue;
    found = { ...way, need };
    if (need <= limit) break;
  }
  return found;
}
