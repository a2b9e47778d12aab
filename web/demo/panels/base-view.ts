/** The base of a run, to compare with: if it is a second model, it is opened on a click. */
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { bytes } from '../format.js';
import { progressOf } from '../words.js';
import type { Desk } from './desk.js';
import { faultLine } from './fault-line.js';

export class BaseView {
  #fault: unknown;
  #progress = '';

  constructor(private readonly desk: Desk) {}

  view(): TemplateResult | typeof nothing {
    const { base, busy } = this.desk;
    if (base.kind === 'none')
      return html`<p class="facts" id="base-facts">
        This model began from random weights, so there is no base to compare it with.
      </p>`;
    if (base.isReady) return nothing;
    return html`<section class="talk" aria-labelledby="base-title">
      <h3 id="base-title">Compare with the base</h3>
      <p class="facts" id="base-facts">
        This run trains the weights of the model themselves. The model that it started from can be
        opened again for a comparison; its weights then take ${bytes(base.bytes)} of GPU memory in
        addition.
      </p>
      ${faultLine('base-fault', this.#fault)}
      <div class="acts">
        <button type="button" id="base-open" ?disabled=${busy} @click=${() => void this.#open()}>
          Open the base
        </button>
        <button type="button" ?hidden=${this.#progress === ''} @click=${() => this.desk.stop()}>
          Stop
        </button>
        <span class="facts">${this.#progress}</span>
      </div>
    </section>`;
  }

  async #open(): Promise<void> {
    this.#progress = 'Opening …';
    this.#fault = await this.desk.ask((signal) =>
      this.desk.base.open(signal, (progress) => {
        this.#progress = progressOf(progress);
        this.desk.changed();
      }),
    );
    this.#progress = '';
    this.desk.changed();
  }
}
