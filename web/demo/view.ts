/** The display of one run: curves, figures, samples and the log, always up to the same step. */
import type { Charts } from './charts.js';
import { byId, download } from './dom.js';
import { Log } from './log.js';
import type { Entry } from './log.js';
import type { Figures } from './panels/figures.js';
import { KEPT } from './panels/samples.js';
import type { Samples } from './panels/samples.js';

/** The run that is shown, in its log and in the legend of its chart. */
export interface About {
  run: string;
  label: string;
}

export class View {
  readonly #log = new Log();
  #about: object = {};

  constructor(
    private readonly charts: Charts,
    private readonly figures: Figures,
    private readonly samples: Samples,
  ) {
    byId('log', HTMLButtonElement).addEventListener('click', () =>
      download('tabtune-log.csv', this.#log.csv()),
    );
    byId('log-json', HTMLButtonElement).addEventListener('click', () =>
      download('tabtune-log.json', this.#log.json(this.#about)),
    );
  }

  clear(totalSteps: number, about: object = {}): void {
    this.#about = about;
    byId('results', HTMLElement).classList.toggle('idle', totalSteps === 0);
    this.#log.clear();
    this.charts.clear();
    this.figures.clear(totalSteps);
    this.samples.clear();
    byId('loss-summary', HTMLElement).textContent = '';
  }

  /** Shows the history of a run, from its first step. */
  restore(entries: readonly Entry[], totalSteps: number, about: About): void {
    this.clear(totalSteps, about);
    this.charts.open(about.run, about.label, totalSteps);
    const samples = entries.filter((entry) => entry.type === 'sample').slice(-KEPT);
    for (const entry of entries) if (entry.type !== 'sample') this.#take(entry, false);
    for (const sample of samples) this.samples.add(sample.step, sample.prompt, sample.text);
    for (const entry of entries) this.#log.add(entry);
    this.summarise();
  }

  add(entry: Entry): void {
    this.#log.add(entry);
    this.#take(entry, true);
  }

  memory(step: number, reserved: number): void {
    this.charts.memory(step, reserved);
  }

  #take(entry: Entry, live: boolean): void {
    switch (entry.type) {
      case 'step':
        this.charts.step(entry);
        this.figures.step(entry, live);
        return;
      case 'eval':
        this.charts.validation(entry.step, entry.loss);
        this.figures.evaluation(entry, entry.step);
        return;
      case 'sample':
        this.samples.add(entry.step, entry.prompt, entry.text);
        return;
      default:
        entry satisfies never;
    }
  }

  /** Removes later steps, because the run continues after `step` and repeats them. */
  cut(step: number): void {
    this.#log.cut(step);
    this.charts.cut(step);
    this.figures.cut(step);
    this.samples.cut(step);
  }

  summarise(): void {
    byId('loss-summary', HTMLElement).textContent = this.charts.summary();
  }
}
