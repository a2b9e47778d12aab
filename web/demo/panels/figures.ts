/** The figures of the run: measured, or a dash. */
import type { EvalReport } from 'tabtune';

import { byId, make } from '../dom.js';
import { duration, grouped, rate, secs } from '../format.js';
import type { Step } from '../log.js';

/** Number of steps over which speed is averaged. */
const WINDOW = 20;
const TABLE_ROWS = 12;

export class Figures {
  #recent: { at: number; tokens: number }[] = [];
  #last: Step[] = [];
  #evaluations: { step: number; loss: number }[] = [];
  #total = 0;
  #due = false;

  clear(total: number): void {
    this.#recent = [];
    this.#last = [];
    this.#evaluations = [];
    this.#total = total;
    for (const id of ['f-rate', 'f-eta']) byId(id, HTMLElement).textContent = '–';
    this.#draw();
  }

  /** Notes an interruption, so that a pause does not count as a slow step. */
  interrupt(): void {
    this.#recent = [];
  }

  /** Forgets everything after `step`. */
  cut(step: number): void {
    this.interrupt();
    this.#last = this.#last.filter((each) => each.step <= step);
    this.#evaluations = this.#evaluations.filter((each) => each.step <= step);
    this.#draw();
  }

  /** Adds a step; one that is restored from the run's history does not count for the speed. */
  step(event: Step, live: boolean): void {
    this.#last.push(event);
    if (this.#last.length > TABLE_ROWS) this.#last.shift();
    if (live) this.#recent.push({ at: performance.now(), tokens: event.tokens });
    if (this.#recent.length > WINDOW) this.#recent.shift();
    this.#draw();
  }

  evaluation({ loss }: Pick<EvalReport, 'loss'>, step: number): void {
    this.#evaluations.push({ step, loss });
    this.#draw();
  }

  /** Draws once per frame, however many steps were made. */
  #draw(): void {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      const last = this.#last.at(-1);
      this.#progress(last?.step ?? 0);
      if (last)
        byId('f-step', HTMLElement).replaceChildren(
          grouped(last.step),
          ' ',
          make(
            'small',
            `of\u00a0${grouped(this.#total)}\u00a0· epoch\u00a0${last.epoch.toFixed(2)}`,
          ),
        );
      else byId('f-step', HTMLElement).textContent = '–';
      byId('f-loss', HTMLElement).textContent = last?.loss.toFixed(3) ?? '–';
      byId('f-time', HTMLElement).textContent = last ? secs(last.secs) : '–';
      byId('f-eval', HTMLElement).textContent = this.#evaluations.at(-1)?.loss.toFixed(3) ?? '–';
      this.#speed();
      byId('rows', HTMLElement).replaceChildren(...[...this.#last].reverse().map(row));
    });
  }

  #progress(step: number): void {
    const share = this.#total > 0 ? Math.min(1, step / this.#total) : 0;
    const bar = byId('progress', HTMLElement);
    bar.setAttribute('aria-valuenow', String(Math.round(share * 100)));
    bar.querySelector('span')?.style.setProperty('transform', `scaleX(${share})`);
  }

  #speed(): void {
    const [first] = this.#recent;
    const last = this.#recent.at(-1);
    if (!first || !last || last.at - first.at < 200) return;
    const elapsed = (last.at - first.at) / 1000;
    const counted = this.#recent.slice(1);
    byId('f-rate', HTMLElement).textContent = grouped(
      counted.reduce((sum, item) => sum + item.tokens, 0) / elapsed,
    );
  }

  /** Shows the time that the run still needs, or at least needs if parts of it were not measured yet. */
  left(time: { secs: number; whole: boolean } | undefined): void {
    const shown = byId('f-eta', HTMLElement);
    if (time === undefined) shown.textContent = '–';
    else if (time.whole) shown.textContent = duration(time.secs);
    else shown.replaceChildren(make('small', 'at least'), ` ${duration(time.secs)}`);
  }

  /** Shows the end of the run: no time remains. */
  finish(): void {
    byId('f-eta', HTMLElement).textContent = '–';
    this.interrupt();
  }
}

function row(event: Step): HTMLTableRowElement {
  const made = make('tr');
  for (const text of [
    grouped(event.step),
    event.loss.toFixed(4),
    event.gradNorm.toFixed(3),
    rate(event.learningRate),
    event.secs.toFixed(3),
  ])
    made.append(make('td', text));
  return made;
}
