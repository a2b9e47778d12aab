/** Loss and learning rate over the steps, drawn at most once per frame and not while the page is hidden. */
import uPlot from 'uplot';

import { Curve } from './curve.js';
import type { Plan } from './curve.js';
import { byId, make } from './dom.js';
import { rate } from './format.js';

const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Returns a length in CSS pixels that is a whole number of the screen's: the browser would blur a canvas of any other size. */
const whole = (length: number): number => Math.floor(length * devicePixelRatio) / devicePixelRatio;

/** Calls `act` whenever the pixel ratio changes, because of zoom or another screen. */
function onRatio(act: () => void): void {
  const changed = (): void => {
    act();
    onRatio(act);
  };
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', changed, {
    once: true,
  });
}

/** A uPlot chart that follows the size of its box, the pixel ratio and the theme. */
class Plot {
  #plot: uPlot | undefined;
  #due = false;

  constructor(
    private readonly box: HTMLElement,
    private readonly height: () => number,
    private readonly series: () => uPlot.Series[],
    private readonly format: (value: number) => string,
    private readonly data: () => [number[], ...(number | null)[][]],
  ) {
    const fit = (): void => this.#plot?.setSize(this.#size);
    new ResizeObserver(fit).observe(box);
    onRatio(fit);
  }

  get #size(): { width: number; height: number } {
    return { width: whole(this.box.clientWidth), height: whole(this.height()) };
  }

  /** Requests a redraw in the next frame; a hidden page has no frames, so it is redrawn when it is shown again. */
  draw(): void {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#show();
    });
  }

  /** Redraws the chart at once, in the colours of the current theme: a page that is printed has no further frame. */
  repaint(): void {
    this.reset();
    this.#show();
  }

  #show(): void {
    const data = this.data();
    if (data[0].length === 0) this.reset();
    else if (this.#plot) this.#plot.setData(data);
    else this.#build(data);
  }

  /** Discards the chart, for another run. */
  reset(): void {
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  #build(data: [number[], ...(number | null)[][]]): void {
    this.box.querySelector('.empty')?.remove();
    const axis = {
      stroke: colour('soft'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { stroke: colour('line'), width: 1 },
      font: '12px system-ui, sans-serif',
    };
    const options: uPlot.Options = {
      ...this.#size,
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: false } },
      axes: [
        {
          ...axis,
          space: 60,
          values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')),
        },
        { ...axis, size: 64, space: 34, values: (_, ticks) => ticks.map(this.format) },
      ],
      series: [{ label: 'step' }, ...this.series()],
    };
    this.#plot = new uPlot(options, data, this.box);
  }
}

export class Charts {
  readonly #curve = new Curve();
  #planned: Plan = { rates: [], stride: 1 };
  readonly #loss: Plot;
  readonly #rate: Plot;
  readonly #lossBox = byId('plot-loss', HTMLElement);
  readonly #empty = this.#lossBox.querySelector('.empty')?.textContent ?? '';

  constructor() {
    const thin = { spanGaps: true, points: { show: false } };
    const small = (): boolean => matchMedia('(max-width: 34rem)').matches;
    this.#loss = new Plot(
      this.#lossBox,
      () => (small() ? 230 : 300),
      () => [
        {
          ...thin,
          label: 'loss',
          stroke: `color-mix(in srgb, ${colour('accent')} 32%, transparent)`,
          width: 1,
        },
        { ...thin, label: 'smoothed', stroke: colour('accent'), width: 2.2 },
        {
          spanGaps: true,
          label: 'validation',
          stroke: colour('second'),
          width: 2,
          dash: [7, 5],
          points: { show: true, size: 6, fill: colour('paper') },
        },
      ],
      (value) => value.toFixed(1),
      () => this.#curve.losses(),
    );
    this.#rate = new Plot(
      byId('plot-rate', HTMLElement),
      () => 130,
      () => [
        { ...thin, label: 'planned', stroke: colour('plan'), width: 1.6, dash: [2, 4] },
        { ...thin, label: 'used', stroke: colour('accent'), width: 2.2 },
      ],
      (value) => rate(value),
      () => this.#curve.rates(this.#planned),
    );
  }

  /** True if no curve of a run is shown. */
  get empty(): boolean {
    return this.#curve.length === 0;
  }

  /** Forgets the run; the plan remains. */
  clear(): void {
    this.#curve.clear();
    this.#loss.reset();
    this.#lossBox.replaceChildren(make('p', this.#empty, 'empty'));
    this.#rate.draw();
  }

  plan(plan: Plan): void {
    this.#planned = plan;
    this.#rate.draw();
  }

  step(step: number, loss: number, learningRate: number): void {
    this.#curve.push(step, loss, learningRate);
    this.#draw();
  }

  validation(step: number, loss: number): void {
    this.#curve.evaluation(step, loss);
    this.#draw();
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
    this.#loss.repaint();
    this.#rate.repaint();
  }

  #draw(): void {
    this.#loss.draw();
    this.#rate.draw();
  }
}
