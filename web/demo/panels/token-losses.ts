/** A text coloured by the loss of each token, before and after training. */
import { escaped } from 'tabtune';
import type { Score } from 'tabtune';
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { grouped } from '../format.js';
import { begun } from '../words.js';
import { faultLine } from './fault-line.js';
import { Part } from './part.js';

/** Losses in nats from which a token has the next stronger mark. */
const MARKS = [0.5, 1, 2, 4, 6];
/** Number of characters of a suggested text. */
const SUGGESTED = 200;

interface Scored {
  before: Score | undefined;
  after: Score;
  step: number;
}

/** One token with its losses; undefined where nothing predicts it, or without a base. */
interface Lost {
  text: string;
  before: number | undefined;
  after: number | undefined;
}

const lossOf = (token: Score['tokens'][number] | undefined): number | undefined =>
  token?.logprob === undefined ? undefined : -token.logprob;
const figureOf = (loss: number | undefined): string => (loss === undefined ? '–' : loss.toFixed(2));
const visible = (text: string): string => escaped(text.replaceAll('\n', '⏎'));

/** Returns the losses of all tokens in words. */
function tokensOf({ before, after }: Scored): Lost[] {
  return after.tokens.map((token, at) => ({
    text: visible(token.text),
    before: lossOf(before?.tokens[at]),
    after: lossOf(token),
  }));
}

export class TokenLosses extends Part {
  #scored: Scored | undefined;

  view(): TemplateResult {
    const { busy } = this.desk;
    return html`<section class="part" aria-labelledby="learn-loss-title">
      <h4 id="learn-loss-title">The loss of each token of a text</h4>
      <label for="learn-text">Text</label>
      <textarea id="learn-text" rows="2" aria-describedby="learn-loss-fault"></textarea>
      ${faultLine('learn-loss-fault', this.fault)}
      <div class="acts">
        <button
          type="button"
          id="learn-loss"
          ?disabled=${busy}
          @click=${() => void this.#measure()}
        >
          Measure the loss
        </button>
        <button type="button" ?disabled=${busy} id="learn-take" @click=${() => void this.#take()}>
          Take a text of the data
        </button>
        <span class="facts">${this.work}</span>
      </div>
      ${this.#scored ? this.#result(this.#scored) : nothing}
    </section>`;
  }

  #result(scored: Scored): TemplateResult {
    const tokens = tokensOf(scored);
    return html`<p class="facts" id="learn-mean">${meanOf(scored)}</p>
      ${scored.after.warnings.map(
        ({ code, message }) =>
          html`<p class="meta">${begun(escaped(message))} · ${escaped(code)}</p>`,
      )}
      <p class="facts">
        A thicker line and a stronger colour mean a larger loss. Point at a token, or go through
        them with the arrow keys, to read its numbers.
      </p>
      ${scored.before ? line('Before', tokens, 'before') : nothing}
      ${line(scored.before ? 'After' : 'Now', tokens, 'after')}
      <p class="meta" id="learn-read"></p>
      <details class="table">
        <summary>The same as a table</summary>
        <div class="scroll" tabindex="0" role="region" aria-label="Loss of each token">
          <table class="named">
            <thead>
              <tr>
                <th scope="col">Token</th>
                ${scored.before ? html`<th scope="col">Before</th>` : nothing}
                <th scope="col">${scored.before ? 'After' : 'Now'}</th>
              </tr>
            </thead>
            <tbody>
              ${tokens.map(
                ({ text, before, after }) =>
                  html`<tr>
                    <th scope="row">${text}</th>
                    ${scored.before ? html`<td>${figureOf(before)}</td>` : nothing}
                    <td>${figureOf(after)}</td>
                  </tr>`,
              )}
            </tbody>
          </table>
        </div>
      </details>`;
  }

  #field(): HTMLTextAreaElement | null {
    return document.querySelector<HTMLTextAreaElement>('#learn-text');
  }

  /** Writes the beginning of the first text that the run learns into the field. */
  async #suggest(): Promise<void> {
    const [first] = await this.desk.trainer.previewData({ show: 1 });
    const at = first?.segments.findIndex(({ learned }) => learned) ?? -1;
    const [before, learned] = [first?.segments[at - 1], first?.segments[at]];
    // The first token of a text, which nothing predicts, belongs to it.
    const opening = at === 1 && before?.tokens.length === 1 ? before.text : '';
    const text = this.desk.trainer.data.end.reduce(
      (rest, end) => rest.split(end).find((each) => each.trim() !== '') ?? '',
      `${opening}${learned?.text ?? ''}`,
    );
    const field = this.#field();
    if (field) field.value = Array.from(text.trim()).slice(0, SUGGESTED).join('');
  }

  async #take(): Promise<void> {
    await this.compute('Reading the data …', () => this.#suggest());
  }

  /** Measures the text that is typed, or else one of the data. */
  async #measure(): Promise<void> {
    const { base, trainer } = this.desk;
    await this.compute('Measuring …', async (signal) => {
      if (this.#field()?.value.trim() === '') await this.#suggest();
      const text = this.#field()?.value ?? '';
      const before = base.isReady ? await base.score(text, { signal }) : undefined;
      const after = await trainer.score(text, { signal });
      this.#scored = { before, after, step: trainer.completedSteps };
    });
  }

  lines(): string[] {
    if (!this.#scored) return [];
    const { before, after } = this.#scored;
    return [
      'THE LOSS OF EACH TOKEN OF A TEXT, IN NATS',
      meanOf(this.#scored),
      ['token', ...(before ? ['before'] : []), 'after'].join('\t'),
      ...tokensOf({ before, after, step: 0 }).map((token) =>
        [
          JSON.stringify(token.text),
          ...(before ? [figureOf(token.before)] : []),
          figureOf(token.after),
        ].join('\t'),
      ),
    ];
  }
}

function meanOf({ before, after, step }: Scored): string {
  const now = `${figureOf(after.loss)} after step ${grouped(step)}`;
  return `Mean loss in nats per token: ${before ? `${figureOf(before.loss)} before, ` : ''}${now}.`;
}

/** Shows the tokens as boxes, each marked by its loss on one side of the training. */
function line(title: string, tokens: readonly Lost[], side: 'before' | 'after'): TemplateResult {
  return html`<div>
    <p class="meta">${title}</p>
    <div
      class="tokens-of"
      role="listbox"
      aria-label="Tokens and their losses: ${title.toLowerCase()}"
      aria-orientation="horizontal"
      @keydown=${move}
      @focusin=${read}
      @pointerover=${read}
    >
      ${tokens.map((token, at) => {
        const { text, before, after } = token;
        const loss = token[side];
        const words = [
          ...(before === undefined ? [] : [`before ${figureOf(before)}`]),
          after === undefined ? 'nothing predicts it' : `after ${figureOf(after)}`,
        ];
        const mark = loss === undefined ? 0 : 1 + MARKS.filter((from) => loss >= from).length;
        // On one line, because white space inside is shown.
        return html`<span
          role="option"
          aria-selected="false"
          tabindex=${at === 0 ? 0 : -1}
          class="mark${mark}"
          aria-label="${text}: ${words.join(', ')}"
          >${text}</span
        >`;
      })}
    </div>
  </div>`;
}

/** Shows the numbers of the token that has the focus or the pointer. */
function read({ target }: Event): void {
  if (!(target instanceof HTMLElement) || target.role !== 'option') return;
  const shown = document.getElementById('learn-read');
  if (shown) shown.textContent = target.ariaLabel;
}

/** Moves the focus along the tokens, of which one can be reached with Tab. */
function move(event: KeyboardEvent): void {
  const { target, currentTarget, key } = event;
  if (!(target instanceof HTMLElement) || !(currentTarget instanceof HTMLElement)) return;
  const options = [...currentTarget.querySelectorAll<HTMLElement>('[role="option"]')];
  const at = options.indexOf(target);
  const to =
    { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0 }[key] ??
    (key === 'End' ? options.length - 1 : undefined);
  const next = to === undefined ? undefined : options[to];
  if (!next) return;
  event.preventDefault();
  target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
