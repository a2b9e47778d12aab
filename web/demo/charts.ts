/** The charts of a run: a large one of the chosen value, with the curve of the run before it, and a small one of the learning rate. */
import { html, render } from 'lit-html';
import { escaped } from 'tabtune';

import { isValue, keepChoice, LINES, storedChoice, VALUES } from './chart-values.js';
import type { Choice, LineName } from './chart-values.js';
import { Curve, joined } from './curve.js';
import type { Column, Plan } from './curve.js';
import { byId, make } from './dom.js';
import type { Step } from './log.js';
import { Plot } from './plot.js';
import type { Drawing } from './plot.js';
import { Readout } from './readout.js';
import { labelsOfBytes } from './ticks.js';

/** The smoothed losses of a run, under its name. */
interface Before {
  run: string;
  name: string;
  steps: number[];
  losses: Column;
}

export class Charts {
  readonly #curve = new Curve();
  readonly #choice = storedChoice();
  #planned: Plan = { rates: [], stride: 1 };
  #run = { id: '', name: '', total: 0 };
  #before: Before | undefined;
  readonly #main: Plot;
  readonly #readout: Readout;
  readonly #rate: Plot;
  readonly #box = byId('plot-loss', HTMLElement);
  readonly #empty = this.#box.querySelector('.empty')?.textContent ?? '';
  readonly #of = byId('chart-of', HTMLSelectElement);
  readonly #log = byId('chart-log', HTMLInputElement);

  constructor() {
    const small = (): boolean => matchMedia('(max-width: 34rem)').matches;
    const mark = (index: number | undefined): void => this.#main.mark(index);
    this.#readout = new Readout(this.#box, mark, () => ({
      name: VALUES[this.#choice.of].label,
      columns: this.#columns(),
      lines: this.#lines().map((line) => ({ label: this.#label(line), shown: this.#isOn(line) })),
      write: VALUES[this.#choice.of].write,
    }));
    this.#main = new Plot(
      this.#box,
      () => (small() ? 230 : 300),
      () => this.#drawing(),
      (index) => this.#readout.point(index),
    );
    this.#rate = new Plot(
      byId('plot-rate', HTMLElement),
      () => 130,
      () => ({
        data: this.#curve.rates(this.#planned),
        series: [LINES.plan.style(), LINES.used.style()],
      }),
    );
    this.#log.checked = this.#choice.log;
    this.#of.addEventListener('change', () => {
      if (isValue(this.#of.value)) this.#choose({ of: this.#of.value });
    });
    this.#log.addEventListener('change', () => this.#choose({ log: this.#log.checked }));
    this.#offer();
  }

  /** True if no curve of a run is shown. */
  get empty(): boolean {
    return this.#curve.length === 0;
  }

  /** Shows the values that can be drawn, and the lines of the chosen one. */
  #offer(): void {
    const values = Object.entries(VALUES).filter(
      ([value]) => value !== 'memory' || this.#curve.hasMemory,
    );
    if (this.#of.options.length !== values.length)
      this.#of.replaceChildren(...values.map(([value, { label }]) => new Option(label, value)));
    this.#of.value = this.#choice.of;
    const { label, log } = VALUES[this.#choice.of];
    byId('chart-title', HTMLElement).textContent = label;
    byId('chart-log-box', HTMLElement).hidden = !log;
    const lines = this.#lines();
    const toggle = (line: string) => (): void => {
      const { off } = this.#choice;
      this.#choose({
        off: off.includes(line) ? off.filter((each) => each !== line) : [...off, line],
      });
    };
    render(
      lines.map(
        (line) =>
          html`<label class="choice"
            ><input
              type="checkbox"
              ?hidden=${lines.length < 2}
              .checked=${this.#isOn(line)}
              @change=${toggle(line)}
            /><span><i class="k ${line}"></i>${this.#label(line)}</span></label
          >`,
      ),
      byId('chart-lines', HTMLElement),
    );
  }

  #isOn(line: LineName): boolean {
    return this.#lines().length < 2 || !this.#choice.off.includes(line);
  }

  #label(line: LineName): string {
    const { label } = LINES[line];
    return line === 'before' ? `${label}: ${escaped(this.#before?.name ?? '')}` : label;
  }

  #choose(change: Partial<Choice>): void {
    Object.assign(this.#choice, change);
    keepChoice(this.#choice);
    this.#offer();
    this.#main.reset();
    this.#main.draw();
    this.#readout.renew();
  }

  #lines(): LineName[] {
    const { of } = this.#choice;
    return of === 'loss' && this.#before ? [...VALUES.loss.lines, 'before'] : VALUES[of].lines;
  }

  #columns(): [number[], ...Column[]] {
    switch (this.#choice.of) {
      case 'loss': {
        const own = this.#curve.losses();
        if (!this.#before) return own;
        // A longer run is drawn as far as this one will come.
        const { steps, losses } = this.#before;
        const shown = steps.filter(
          (step) => step <= Math.max(this.#run.total, this.#curve.lastStep),
        );
        return own[0].length === 0 ? own : joined(own, [shown, losses.slice(0, shown.length)]);
      }
      case 'perplexity':
        return this.#curve.perplexities();
      case 'norm':
        return this.#curve.norms();
      case 'rate':
        return this.#curve.rates(this.#planned);
      case 'speed':
        return this.#curve.speeds();
      case 'memory':
        return this.#curve.memories();
    }
  }

  #drawing(): Drawing {
    const { of } = this.#choice;
    const log = VALUES[of].log && this.#choice.log;
    const [steps, ...columns] = this.#columns();
    // A logarithmic axis has no place for zero.
    const drawn = log
      ? columns.map((column) => column.map((value) => (value !== null && value > 0 ? value : null)))
      : columns;
    const data: Drawing['data'] = [steps, ...drawn];
    const series = this.#lines().map((line) => ({
      ...LINES[line].style(),
      show: this.#isOn(line),
    }));
    return { data, series, log, ...(of === 'memory' && { labels: labelsOfBytes }) };
  }

  /** Begins with the curve of a run; that of the run before it is drawn behind it. */
  open(id: string, name: string, total: number): void {
    if (this.#before?.run === id) this.#before = undefined;
    this.#run = { id, name, total };
    this.#offer();
    this.#main.reset();
  }

  /** Forgets the run, except for its losses; the plan remains. */
  clear(): void {
    const { id: run, name } = this.#run;
    const [steps, , losses] = this.#curve.losses();
    if (steps.length > 1 && run !== '') this.#before = { run, name, steps, losses };
    this.#run = { id: '', name: '', total: 0 };
    this.#curve.clear();
    if (this.#choice.of === 'memory') this.#choice.of = 'loss';
    this.#offer();
    this.#main.reset();
    this.#box.replaceChildren(make('p', this.#empty, 'empty'));
    this.#readout.renew();
    this.#rate.draw();
  }

  plan(plan: Plan): void {
    this.#planned = plan;
    this.#draw();
  }

  step(step: Step): void {
    this.#curve.push(step);
    this.#draw();
  }

  validation(step: number, loss: number): void {
    this.#curve.evaluation(step, loss);
    this.#draw();
  }

  /** Adds the bytes that the GPU has reserved after `step`. */
  memory(step: number, reserved: number): void {
    this.#curve.memory(step, reserved);
    this.#offer();
  }

  /** Removes later steps, because the run continues after `step` and repeats them. */
  cut(step: number): void {
    this.#curve.cut(step);
    this.#draw();
  }

  summary(): string {
    return this.#curve.summary();
  }

  /** Redraws in the colours of the current theme. */
  repaint(): void {
    this.#main.repaint();
    this.#rate.repaint();
  }

  #draw(): void {
    if (this.#curve.length > 0) this.#main.draw();
    this.#rate.draw();
  }
}
