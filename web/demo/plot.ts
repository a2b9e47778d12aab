/** A chart that is drawn at most once per frame and not while the page is hidden. */
import uPlot from 'uplot';

import { labelsOf } from './ticks.js';

export const colour = (name: string): string =>
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

const LOGARITHMIC = { distr: 3 } as const;

/** The content of a chart: columns of steps and values, and how. */
export interface Drawing {
  data: [number[], ...(number | null)[][]];
  series: uPlot.Series[];
  /** True for a logarithmic axis. */
  log?: boolean;
  /** Writes the labels of the axis. */
  labels?: (ticks: (number | null)[]) => string[];
}

/** A uPlot chart that follows the size of its box, the pixel ratio and the theme. */
export class Plot {
  #plot: uPlot | undefined;
  #due = false;
  /** The step of a mark that does not follow the pointer. */
  #marked: number | undefined;

  /** `moved` gets the index of the point under the pointer, if there is one. */
  constructor(
    private readonly box: HTMLElement,
    private readonly height: () => number,
    private readonly drawing: () => Drawing,
    private readonly moved?: (index: number | undefined) => void,
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
    const drawing = this.drawing();
    if (drawing.data[0].length === 0) this.reset();
    else if (this.#plot) this.#plot.setData(drawing.data);
    else this.#build(drawing);
    this.#place();
  }

  /** Discards the chart, for another run or another drawing. */
  reset(): void {
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  /** Moves the mark to a point, with which it stays while the chart grows; without one the mark follows the pointer. */
  mark(index: number | undefined): void {
    this.#marked = index === undefined ? undefined : this.#plot?.data[0][index];
    this.#place();
  }

  #place(): void {
    if (this.#plot && this.#marked !== undefined)
      this.#plot.setCursor({ left: this.#plot.valToPos(this.#marked, 'x'), top: 0 }, false);
  }

  #build({ data, series, log = false, labels = labelsOf }: Drawing): void {
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
      scales: { x: { time: false }, y: { ...(log && LOGARITHMIC) } },
      axes: [
        {
          ...axis,
          space: 60,
          values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : '')),
        },
        { ...axis, size: 64, space: 34, values: (_, ticks: (number | null)[]) => labels(ticks) },
      ],
      series: [{ label: 'step' }, ...series],
      hooks: { setCursor: [({ cursor }) => this.moved?.(cursor.idx ?? undefined)] },
    };
    this.#plot = new uPlot(options, data, this.box);
  }
}
