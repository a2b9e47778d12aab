/** The loss on the held-out part of the data: as the run measured it first and last, and as it is now. */
import type { EvalReport } from 'tabtune';
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { grouped } from '../format.js';
import { faultLine } from './fault-line.js';
import { Part } from './part.js';

interface Measured extends Pick<EvalReport, 'loss' | 'accuracy' | 'tokens'> {
  name: string;
}

const HEADS = ['Measured', 'Loss', 'Likeliest token right', 'Tokens'];
const cellsOf = ({ name, loss, accuracy, tokens }: Measured): string[] => [
  name,
  loss.toFixed(3),
  `${(100 * accuracy).toFixed(1)} %`,
  grouped(tokens),
];

export class HeldOut extends Part {
  #measured: Measured[] = [];

  view(): TemplateResult {
    return html`<section class="part" aria-labelledby="learn-held-title">
      <h4 id="learn-held-title">Text that it did not train on</h4>
      <p class="facts">
        The run holds a part of its data out of the training. A loss that falls there was learned,
        not memorised.
      </p>
      ${faultLine('learn-held-fault', this.fault)}
      <div class="acts">
        <button
          type="button"
          id="learn-held"
          ?disabled=${this.desk.busy}
          @click=${() => void this.#measure()}
        >
          Evaluate all of it
        </button>
        <span class="facts">${this.work}</span>
      </div>
      ${
        this.#measured.length === 0
          ? nothing
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Held-out loss">
                <table class="named">
                  <thead>
                    <tr>
                      ${HEADS.map((head) => html`<th scope="col">${head}</th>`)}
                    </tr>
                  </thead>
                  <tbody>
                    ${this.#measured.map((each) => {
                      const [name, ...cells] = cellsOf(each);
                      return html`<tr>
                        <th scope="row">${name}</th>
                        ${cells.map((cell) => html`<td>${cell}</td>`)}
                      </tr>`;
                    })}
                  </tbody>
                </table>
              </div>
              ${
                this.#partial
                  ? html`<p class="facts">
                      During the run only a part of the held-out tokens was evaluated: compare rows
                      with the same number of tokens.
                    </p>`
                  : nothing
              }`
      }
    </section>`;
  }

  /** True if not all evaluations were of the same tokens. */
  get #partial(): boolean {
    return new Set(this.#measured.map(({ tokens }) => tokens)).size > 1;
  }

  async #measure(): Promise<void> {
    const { trainer } = this.desk;
    await this.compute('Evaluating …', async (signal) => {
      const evals = (await trainer.history()).filter((entry) => entry.type === 'eval');
      const now = await trainer.evaluate({ signal });
      const [first, last] = [evals[0], evals.at(-1)];
      const nameOf = (word: string, step: number): string =>
        step === 0 ? 'Before the training' : `${word}, after step ${grouped(step)}`;
      this.#measured = [
        ...(first ? [{ ...first, name: nameOf('First in the run', first.step) }] : []),
        ...(last && last !== first
          ? [{ ...last, name: nameOf('Last in the run', last.step) }]
          : []),
        { ...now, name: nameOf('Now', trainer.completedSteps) },
      ];
    });
  }

  lines(): string[] {
    if (this.#measured.length === 0) return [];
    const rows = [HEADS, ...this.#measured.map(cellsOf)].map((cells) => cells.join('\t'));
    return ['LOSS ON THE HELD-OUT DATA, IN NATS PER TOKEN', ...rows];
  }
}
