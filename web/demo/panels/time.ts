/** How long the next run takes on this computer: from measured steps, or not known yet. */
import { html, nothing, render } from 'lit-html';
import type { DriveOptions, TrainOptions } from 'tabtune';

import { byId } from '../dom.js';
import { counted, secs } from '../format.js';
import { isNumber, setNumber } from '../numbers.js';
import { lightened, LONG, roughly, secondsOf, speedOf } from '../speeds.js';

export class TimePanel {
  readonly #place = byId('time', HTMLElement);

  /** `measure` measures steps of the next run. */
  constructor(private readonly measure: () => void) {}

  /** Shows the duration of the next run; `canMeasure` is false if measuring would download the model once more. */
  show(
    key: string,
    { steps, seqLen, batchSize = 4 }: TrainOptions & { steps: number; seqLen: number },
    { evalEvery = 0, evalBatches = 0 }: DriveOptions,
    canMeasure: boolean,
  ): void {
    const evaluations = evalEvery > 0 ? Math.floor(steps / evalEvery) : 0;
    const speed = speedOf(key);
    const total = speed && secondsOf(speed, { steps, evaluations, batches: evalBatches });
    const lighter = (): void => {
      if (!speed) return;
      for (const [id, value] of Object.entries(lightened(speed, { steps, seqLen, batchSize })))
        if (isNumber(id)) setNumber(id, String(value));
      byId('numbers', HTMLElement).dispatchEvent(new Event('input'));
    };
    const others =
      speed?.batch === undefined
        ? 'Evaluations and samples come on top.'
        : `${evaluations > 0 ? `With ${counted(evaluations, 'evaluation')}; s` : 'S'}amples come on top.`;
    render(
      speed && total !== undefined
        ? html`<p>
              <strong>${roughly(total).replace(/^a/, 'A')} on this computer.</strong>
              ${counted(steps, 'step')} of ${secs(speed.step)} each, as measured here. ${others}
            </p>
            ${
              total > LONG
                ? html`<button type="button" id="lighter" @click=${lighter}>
                    Make it lighter
                  </button>`
                : nothing
            }`
        : html`<p>How long this run takes is known after its first steps.</p>
            ${
              canMeasure
                ? html`<button type="button" id="how-long" @click=${this.measure}>
                    How long will it take?
                  </button>`
                : nothing
            }`,
      this.#place,
    );
    this.#place.hidden = false;
  }
}
