/**
 * The losses and rates of a run in a bounded number of buckets, each with its lowest and its highest loss, so that a chart of a million steps shows
 * every spike and costs no more than one of a thousand. A bucket covers a fixed range of steps, so that drawn points do not move while the run grows.
 */

/** Maximum number of buckets: more than the chart has pixels would only cost time. */
const LIMIT = 1024;
/** Weight of the previous value in the exponential mean: about ten steps. */
const MEMORY = 0.9;

interface Point {
  step: number;
  loss: number;
  smooth: number;
}
interface Bucket {
  /** Number of the bucket, which holds the steps `key·stride + 1` to `(key + 1)·stride`. */
  key: number;
  low: Point;
  high: Point;
  /** Learning rate of the bucket's first step. */
  rate: number;
  validation: number | null;
}
type Column = (number | null)[];

/** The planned rates of every `stride`-th step from the first; the stride is a power of two. */
export interface Plan {
  rates: number[];
  stride: number;
}

/** Returns the stride at which this many steps have no more rates than a chart shows. */
export function strideOf(steps: number): number {
  let stride = 1;
  while (steps / stride > LIMIT) stride *= 2;
  return stride;
}

export class Curve {
  readonly #steps: number[] = [];
  readonly #losses: number[] = [];
  readonly #rates: number[] = [];
  #evaluations: { step: number; loss: number }[] = [];
  #buckets: Bucket[] = [];
  #stride = 1;
  #average = 0;
  #weight = 0;

  get length(): number {
    return this.#steps.length;
  }

  get lastStep(): number {
    return this.#steps.at(-1) ?? 0;
  }

  clear(): void {
    this.cut(0);
  }

  /** Adds a step. A step that already exists is where the run continued: it and all later ones are replaced. */
  push(step: number, loss: number, rate: number): void {
    if (step <= this.lastStep) this.cut(step - 1);
    this.#steps.push(step);
    this.#losses.push(loss);
    this.#rates.push(rate);
    this.#place(step, loss, rate);
  }

  evaluation(step: number, loss: number): void {
    this.#evaluations.push({ step, loss });
    const bucket = this.#buckets.at(-1);
    if (bucket) bucket.validation = loss;
  }

  /** Forgets everything after `step`. */
  cut(step: number): void {
    let kept = this.#steps.length;
    while (kept > 0 && (this.#steps[kept - 1] ?? 0) > step) kept--;
    for (const list of [this.#steps, this.#losses, this.#rates]) list.length = kept;
    this.#evaluations = this.#evaluations.filter((evaluation) => evaluation.step <= step);
    this.#rebuild();
  }

  #rebuild(): void {
    this.#buckets = [];
    this.#stride = 1;
    this.#average = 0;
    this.#weight = 0;
    this.#steps.forEach((step, index) =>
      this.#place(step, this.#losses[index] ?? 0, this.#rates[index] ?? 0),
    );
    const byKey = new Map(this.#buckets.map((bucket) => [bucket.key, bucket]));
    for (const { step, loss } of this.#evaluations) {
      const bucket = byKey.get(this.#key(step));
      if (bucket) bucket.validation = loss;
    }
  }

  #key(step: number): number {
    return Math.floor((step - 1) / this.#stride);
  }

  #place(step: number, loss: number, rate: number): void {
    this.#weight = MEMORY * this.#weight + 1 - MEMORY;
    this.#average = MEMORY * this.#average + (1 - MEMORY) * loss;
    const point = { step, loss, smooth: this.#average / this.#weight };
    const last = this.#buckets.at(-1);
    if (last?.key === this.#key(step)) {
      if (loss < last.low.loss) last.low = point;
      if (loss > last.high.loss) last.high = point;
      return;
    }
    this.#buckets.push({ key: this.#key(step), low: point, high: point, rate, validation: null });
    if (this.#buckets.length > LIMIT) this.#halve();
  }

  /** Doubles the number of steps in each bucket. */
  #halve(): void {
    this.#stride *= 2;
    const merged: Bucket[] = [];
    for (const bucket of this.#buckets) {
      const key = Math.floor(bucket.key / 2);
      const last = merged.at(-1);
      if (last?.key !== key) merged.push({ ...bucket, key });
      else {
        if (bucket.low.loss < last.low.loss) last.low = bucket.low;
        if (bucket.high.loss > last.high.loss) last.high = bucket.high;
        last.validation = bucket.validation ?? last.validation;
      }
    }
    this.#buckets = merged;
  }

  /** Returns steps, losses, smoothed losses, validation losses: columns of a chart. */
  losses(): [number[], Column, Column, Column] {
    const columns: [number[], Column, Column, Column] = [[], [], [], []];
    for (const { low, high, validation } of this.#buckets) {
      const points =
        low.step === high.step ? [low] : low.step < high.step ? [low, high] : [high, low];
      points.forEach(({ step, loss, smooth }, index) => {
        const values = [
          step,
          loss,
          smooth,
          index === points.length - 1 ? validation : null,
        ] as const;
        columns[0].push(values[0]);
        columns[1].push(values[1]);
        columns[2].push(values[2]);
        columns[3].push(values[3]);
      });
    }
    return columns;
  }

  /** Returns steps, planned rates, used rates, over the whole plan. */
  rates({ rates, stride }: Plan): [number[], Column, Column] {
    const length = Math.max((rates.length - 1) * stride + 1, this.lastStep);
    let grid = Math.max(this.#stride, stride);
    while (length / grid > LIMIT) grid *= 2;
    const columns: [number[], Column, Column] = [[], [], []];
    let at = 0;
    for (let step = 1; step <= length; step += grid) {
      while (at < this.#buckets.length && (this.#buckets[at]?.key ?? 0) < this.#key(step)) at++;
      const bucket = this.#buckets[at];
      columns[0].push(step);
      columns[1].push(rates[(step - 1) / stride] ?? null);
      columns[2].push(bucket?.key === this.#key(step) ? bucket.rate : null);
    }
    return columns;
  }

  /** Returns the curve in one sentence, for people who cannot see it. */
  summary(): string {
    const [first] = this.#losses;
    if (first === undefined) return '';
    return `From ${first.toFixed(2)} at step ${this.#steps[0] ?? 1} to ${(this.#average / this.#weight).toFixed(2)} (smoothed) at step ${this.lastStep}.`;
  }
}
