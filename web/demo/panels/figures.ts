/** The figures of the run: measured, or a dash. */
import type { EvalReport, StepEvent } from 'tabtune';

import { byId, download, make } from '../dom.js';
import { duration, grouped, rate, secs } from '../format.js';
import { Log } from '../log.js';

/** Steps over which speed is averaged. */
const WINDOW = 20;
const TABLE_ROWS = 12;

export class Figures {
  #recent: { at: number; tokens: number }[] = [];
  #total = 0;
  readonly #log = new Log();

  constructor() {
    byId('log', HTMLButtonElement).addEventListener('click', () => download('tabtune-log.csv', this.#log.csv()));
  }

  clear(total: number): void {
    this.#recent = [];
    this.#total = total;
    this.#log.clear();
    for (const id of ['f-step', 'f-loss', 'f-eval', 'f-rate', 'f-time', 'f-eta']) byId(id, HTMLElement).textContent = '–';
    byId('rows', HTMLElement).replaceChildren();
  }

  /** A pause must not count as a slow step. */
  interrupt(): void {
    this.#recent = [];
  }

  step(event: StepEvent): void {
    this.#log.add(event);
    const bar = byId('progress', HTMLElement);
    const share = this.#total > 0 ? event.step / this.#total : 0;
    bar.setAttribute('aria-valuenow', String(Math.round(share * 100)));
    bar.querySelector('span')?.style.setProperty('transform', `scaleX(${Math.min(1, share)})`);
    byId('f-step', HTMLElement).replaceChildren(grouped(event.step), ' ', make('small', `of ${grouped(this.#total)}`));
    byId('f-loss', HTMLElement).textContent = event.loss.toFixed(3);
    byId('f-time', HTMLElement).textContent = secs(event.secs);
    this.#speed(event);
    this.#row(event);
  }

  #speed({ step, tokens }: StepEvent): void {
    this.#recent.push({ at: performance.now(), tokens });
    if (this.#recent.length > WINDOW) this.#recent.shift();
    const [first] = this.#recent;
    const last = this.#recent.at(-1);
    if (!first || !last || last.at - first.at < 200) return;
    const elapsed = (last.at - first.at) / 1000;
    const counted = this.#recent.slice(1);
    byId('f-rate', HTMLElement).textContent = grouped(counted.reduce((sum, item) => sum + item.tokens, 0) / elapsed);
    const left = this.#total - step;
    byId('f-eta', HTMLElement).textContent = left > 0 ? duration((left * elapsed) / counted.length) : '–';
  }

  #row(event: StepEvent): void {
    const row = make('tr');
    for (const text of [grouped(event.step), event.loss.toFixed(4), event.gradNorm.toFixed(3), rate(event.learningRate), event.secs.toFixed(3)]) row.append(make('td', text));
    const rows = byId('rows', HTMLElement);
    rows.prepend(row);
    while (rows.childElementCount > TABLE_ROWS) rows.lastElementChild?.remove();
  }

  evaluation({ loss }: EvalReport): void {
    byId('f-eval', HTMLElement).textContent = loss.toFixed(3);
  }

  /** The end: nothing is left to wait for. */
  finish(): void {
    byId('f-eta', HTMLElement).textContent = '–';
  }
}
