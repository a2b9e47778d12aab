/** Says the values of a chart at one step: under the pointer, or where the arrow keys have moved. */
import type { Column } from './curve.js';
import { byId } from './dom.js';
import { grouped } from './format.js';

export interface Read {
  /** Name of the values. */
  name: string;
  columns: readonly [number[], ...Column[]];
  /** The line of each column. */
  lines: readonly { label: string; shown: boolean }[];
  write: (value: number) => string;
}

/** Number of points that the keys of pages move by. */
const FAR = 10;

const KEYS: Record<string, ((at: number, last: number) => number) | undefined> = {
  ArrowLeft: (at) => at - 1,
  ArrowDown: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  ArrowUp: (at) => at + 1,
  PageDown: (at) => at - FAR,
  PageUp: (at) => at + FAR,
  Home: () => 0,
  End: (_, last) => last,
};

/** Returns the values at a point, each from the last step that has one. */
export function wordsAt(
  { columns: [steps, ...columns], lines, write }: Read,
  index: number,
): string {
  const step = steps[index];
  if (step === undefined) return '';
  const values = lines.flatMap(({ label, shown }, line) => {
    let at = shown ? index : -1;
    while (at >= 0 && (columns[line]?.[at] ?? null) === null) at--;
    const value = columns[line]?.[at] ?? null;
    if (value === null) return [];
    const where = at === index ? '' : ` at step ${grouped(steps[at] ?? 0)}`;
    return [`${label} ${write(value)}${where}`];
  });
  return `Step ${grouped(step)}: ${values.join(', ') || 'no line is shown'}.`;
}

/** Makes a chart's box a slider over its points, which arrow keys move: a screen reader then says the values. */
export class Readout {
  readonly #line = byId('chart-said', HTMLElement);
  readonly #hint = this.#line.textContent;
  /** The step that the keys have moved to. */
  #marked: number | undefined;

  /** `mark` moves the mark of the chart to a point, or lets it follow the pointer. */
  constructor(
    private readonly box: HTMLElement,
    private readonly mark: (index: number | undefined) => void,
    private readonly read: () => Read,
  ) {
    box.addEventListener('keydown', (event) => {
      const to = KEYS[event.key];
      if (!to) return;
      event.preventDefault();
      this.#move(to);
    });
    box.addEventListener('focus', () => this.#move((at) => at));
    box.addEventListener('pointermove', () => {
      if (this.#marked === undefined) return;
      this.#marked = undefined;
      mark(undefined);
    });
  }

  /** Shows the values under the pointer, if it is over a point, unless keys have moved to another one. */
  point(index: number | undefined): void {
    if (this.#marked === undefined)
      this.#line.textContent = index === undefined ? this.#hint : wordsAt(this.read(), index);
  }

  /** Shows the values again, since other ones are drawn. */
  renew(): void {
    if (this.#marked !== undefined) this.#move((at) => at);
    else this.point(undefined);
  }

  #move(to: (at: number, last: number) => number): void {
    const now = this.read();
    const [steps] = now.columns;
    const last = steps.length - 1;
    const from =
      this.#marked === undefined
        ? last
        : steps.filter((step) => step <= (this.#marked ?? 0)).length - 1;
    const index = Math.min(last, Math.max(0, to(from, last)));
    this.#marked = steps[index];
    this.mark(index);
    this.#line.textContent = this.#marked === undefined ? this.#hint : wordsAt(now, index);
    const aria = {
      label: `${now.name} over the steps`,
      valuemin: steps[0] ?? 0,
      valuemax: steps[last] ?? 0,
      valuenow: this.#marked ?? 0,
      valuetext: this.#marked === undefined ? 'No steps yet' : this.#line.textContent,
    };
    for (const [name, value] of Object.entries(aria))
      this.box.setAttribute(`aria-${name}`, String(value));
  }
}
