/** Loss and learning rate over the steps, drawn at most once a frame and not while the page is hidden. */
import uPlot from 'uplot';

import { byId } from './dom.js';
import { rate } from './format.js';

type Column = (number | null)[];

const PLANNED_POINTS = 1500;

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** One uPlot that follows its box and the theme. */
class Plot {
  #plot: uPlot | undefined;
  #due = false;

  constructor(
    private readonly box: HTMLElement,
    private readonly height: () => number,
    private readonly series: () => uPlot.Series[],
    private readonly format: (value: number) => string,
    private readonly data: () => [number[], ...Column[]],
  ) {
    new ResizeObserver(() => this.#plot?.setSize({ width: box.clientWidth, height: height() })).observe(box);
  }

  /** Asks for a new drawing in the next frame. */
  draw(): void {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      if (document.hidden) return;
      if (this.#plot) this.#plot.setData(this.data());
      else this.#build();
    });
  }

  /** Drops the drawing: for another theme, or another run. */
  reset(): void {
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  #build(): void {
    this.box.querySelector('.empty')?.remove();
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 }, font: '12px system-ui, sans-serif' };
    const options: uPlot.Options = {
      width: this.box.clientWidth,
      height: this.height(),
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, space: 60, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')) },
        { ...axis, size: 64, space: 34, values: (_, ticks) => ticks.map(this.format) },
      ],
      series: [{ label: 'step' }, ...this.series()],
    };
    this.#plot = new uPlot(options, this.data(), this.box);
  }
}

export class Charts {
  #steps: number[] = [];
  #raw: Column = [];
  #smooth: Column = [];
  #validation: Column = [];
  #planned: number[] = [];
  #used = new Map<number, number>();
  #average = 0;
  #weight = 0;
  readonly #loss: Plot;
  readonly #rate: Plot;
  readonly #lossBox = byId('plot-loss', HTMLElement);
  readonly #rateBox = byId('plot-rate', HTMLElement);

  constructor() {
    const thin = { spanGaps: true, points: { show: false } };
    const small = (): boolean => matchMedia('(max-width: 34rem)').matches;
    this.#loss = new Plot(
      this.#lossBox,
      () => (small() ? 230 : 300),
      () => [
        { ...thin, label: 'loss', stroke: `color-mix(in srgb, ${colour('accent')} 32%, transparent)`, width: 1 },
        { ...thin, label: 'smoothed', stroke: colour('accent'), width: 2.2 },
        { spanGaps: true, label: 'validation', stroke: colour('second'), width: 2, dash: [7, 5], points: { show: true, size: 6, fill: colour('paper') } },
      ],
      (value) => value.toFixed(1),
      () => [this.#steps, this.#raw, this.#smooth, this.#validation],
    );
    this.#rate = new Plot(
      this.#rateBox,
      () => 130,
      () => [
        { ...thin, label: 'planned', stroke: colour('plan'), width: 1.6, dash: [2, 4] },
        { ...thin, label: 'used', stroke: colour('accent'), width: 2.2 },
      ],
      (value) => rate(value),
      () => {
        const length = Math.max(this.#planned.length, ...this.#used.keys());
        // More points than the chart has pixels would only cost time.
        const stride = Math.max(1, Math.ceil(length / PLANNED_POINTS));
        const steps = Array.from({ length: Math.ceil(length / stride) }, (_, index) => index * stride + 1);
        return [steps, steps.map((step) => this.#planned[step - 1] ?? null), steps.map((step) => this.#used.get(step) ?? null)];
      },
    );
  }

  /** Forgets the run; the plan stays. */
  clear(): void {
    this.#steps = [];
    this.#raw = [];
    this.#smooth = [];
    this.#validation = [];
    this.#used.clear();
    this.#average = 0;
    this.#weight = 0;
    this.#loss.reset();
    this.#rate.draw();
  }

  plan(curve: number[]): void {
    this.#planned = curve;
    this.#rate.draw();
  }

  step(step: number, loss: number, learningRate: number): void {
    // Bias-corrected exponential mean over about ten steps.
    this.#weight = 0.9 * this.#weight + 0.1;
    this.#average = 0.9 * this.#average + 0.1 * loss;
    this.#steps.push(step);
    this.#raw.push(loss);
    this.#smooth.push(this.#average / this.#weight);
    this.#validation.push(null);
    this.#used.set(step, learningRate);
    this.#loss.draw();
    this.#rate.draw();
  }

  validation(step: number, loss: number): void {
    const index = this.#steps.lastIndexOf(step);
    if (index >= 0) this.#validation[index] = loss;
    this.#loss.draw();
  }

  /** The curve in one sentence, for those who do not see it. */
  summary(): string {
    const losses = this.#raw.filter((value) => value !== null);
    const [first] = losses;
    const last = this.#smooth.at(-1);
    if (first === undefined || last === undefined || last === null) return '';
    return `From ${first.toFixed(2)} at step ${this.#steps[0] ?? 1} to ${last.toFixed(2)} (smoothed) at step ${this.#steps.at(-1) ?? 1}.`;
  }

  /** Draws again in the colours of the present theme. */
  repaint(): void {
    this.#loss.reset();
    this.#rate.reset();
    if (this.#steps.length > 0) this.#loss.draw();
    if (this.#planned.length > 0) this.#rate.draw();
  }
}
