/** The first rows of the data: what is expected, and what the base and the tuned model answer. */
import type { DataPreview } from 'tabtune';
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { grouped } from '../format.js';
import { continued } from './continued.js';
import type { Scorer } from './continued.js';
import { placeOf } from './data.js';
import { faultLine } from './fault-line.js';
import { Part } from './part.js';

const ROWS = 5;
/** Maximum number of tokens of an answer, and of the beginning of a text that has no prompt. */
const ANSWER = 64;
const BEGINNING = 16;
/** Number of characters shown of the end of a prompt. */
const SHOWN = 400;

interface Row {
  place: string;
  prompt: string;
  expected: string;
  base: string | undefined;
  tuned: string;
}

/** Splits an example into what is read first and what is then expected; the beginning of a text is the prompt of its rest. */
export function split({ segments }: DataPreview[number]): { prompt: number[]; expected: number[] } {
  const at = segments.findIndex(({ learned }) => learned);
  const ids = (from: number, to: number): number[] =>
    segments.slice(from, to).flatMap(({ tokens }) => tokens.map(({ id }) => id));
  const [prompt, expected] = [ids(0, Math.max(0, at)), ids(at, at + 1)];
  // Nothing predicts a first token, so that it alone is no prompt.
  const more = prompt.length > 1 ? 0 : Math.min(BEGINNING, Math.ceil(expected.length / 4));
  return { prompt: [...prompt, ...expected.slice(0, more)], expected: expected.slice(more) };
}

export class DataRows extends Part {
  #rows: Row[] = [];
  #step = 0;

  view(): TemplateResult {
    return html`<section class="part" aria-labelledby="learn-rows-title">
      <h4 id="learn-rows-title">The first rows of the data</h4>
      <p class="facts">
        Greedy answers (temperature 0) to the first ${ROWS} rows that the run trains on, at most
        twice as long as expected and at most ${ANSWER} tokens. A row without a prompt is continued
        from its beginning.
      </p>
      ${faultLine('learn-rows-fault', this.fault)}
      <div class="acts">
        <button
          type="button"
          id="learn-rows"
          ?disabled=${this.desk.busy}
          @click=${() => void this.#answer()}
        >
          Answer the rows
        </button>
        <span class="facts">${this.work}</span>
      </div>
      ${
        this.#rows.length === 0
          ? nothing
          : html`<ol class="turns" aria-label="Rows">
              ${this.#rows.map(rowView)}
            </ol>`
      }
    </section>`;
  }

  async #answer(): Promise<void> {
    const { base, trainer } = this.desk;
    await this.compute('Reading the data …', async (signal) => {
      const examples = await trainer.previewData({ show: ROWS });
      const ends = await this.desk.ends(signal);
      this.#rows = [];
      this.#step = trainer.completedSteps;
      for (const [at, example] of examples.entries()) {
        this.say(`Row ${at + 1} of ${examples.length} …`);
        const { prompt, expected } = split(example);
        if (expected.length === 0) continue;
        const whole = expected.filter((id) => !ends.includes(id)).slice(0, ANSWER);
        const maxTokens = Math.min(ANSWER, 2 * expected.length);
        const choice = { temperature: 0, maxTokens, seed: 0 };
        const answer = async (model: Scorer): Promise<string> => {
          let made: readonly number[] = [];
          for await (const ids of continued(model, prompt, choice, { ends, signal })) made = ids;
          return trainer.detokenize(made);
        };
        this.#rows.push({
          place: example.row ? placeOf(example.row, trainer.data) : 'The beginning',
          prompt: await trainer.detokenize(prompt),
          expected: await trainer.detokenize(whole),
          base: base.isReady ? await answer(base) : undefined,
          tuned: await answer(trainer),
        });
      }
    });
  }

  lines(): string[] {
    if (this.#rows.length === 0) return [];
    return [
      `ROWS OF THE DATA, WITH GREEDY ANSWERS AFTER STEP ${grouped(this.#step)}`,
      ...this.#rows.flatMap(({ place, prompt, expected, base, tuned }) => [
        `-- ${place}`,
        `Prompt: ${prompt}`,
        `Expected: ${expected}`,
        ...(base === undefined ? [] : [`Before: ${base}`]),
        `${base === undefined ? 'Answer' : 'After'}: ${tuned}`,
      ]),
    ];
  }
}

function rowView({ place, prompt, expected, base, tuned }: Row): TemplateResult {
  const shown = prompt.length > SHOWN ? `… ${prompt.slice(-SHOWN)}` : prompt;
  const cell = (name: string, text: string): TemplateResult =>
    html`<div class="answer">
      <p class="written"><b>${name}</b>${text}</p>
    </div>`;
  return html`<li>
    <p class="meta">${place}</p>
    <p class="said">${shown}</p>
    <div class="pair-of">
      ${cell('Expected', expected)}${base === undefined ? nothing : cell('Base', base)}${cell(
        base === undefined ? 'Model' : 'Tuned',
        tuned,
      )}
    </div>
  </li>`;
}
