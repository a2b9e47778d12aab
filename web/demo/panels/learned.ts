/** The comparison of the model before and after training, and its text file. */
import { html } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { byId, download } from '../dom.js';
import { DataRows } from './data-rows.js';
import type { Desk } from './desk.js';
import { HeldOut } from './held-out.js';
import type { Part } from './part.js';
import { TokenLosses } from './token-losses.js';

export class Learned {
  readonly #parts: readonly Part[];

  constructor(private readonly desk: Desk) {
    this.#parts = [new TokenLosses(desk), new HeldOut(desk), new DataRows(desk)];
  }

  view(): TemplateResult {
    const { busy } = this.desk;
    return html`<section class="talk" id="learn" aria-labelledby="learn-title">
      <h3 id="learn-title">Did it learn?</h3>
      ${this.#parts.map((part) => part.view())}
      <div class="acts">
        <button
          type="button"
          id="learn-save"
          ?disabled=${busy || this.#lines().length === 0}
          @click=${() => this.#save()}
        >
          Save as text
        </button>
        <button type="button" ?hidden=${!busy} @click=${() => this.desk.stop()}>Stop</button>
      </div>
    </section>`;
  }

  #lines(): string[] {
    return this.#parts.flatMap((part) => {
      const lines = part.lines();
      return lines.length === 0 ? [] : ['', ...lines];
    });
  }

  #save(): void {
    const title = byId('run-title', HTMLElement).textContent;
    const text = [`${title}, before and after training`, ...this.#lines(), ''].join('\n');
    download('before-and-after.txt', new Blob([text], { type: 'text/plain' }));
  }
}
