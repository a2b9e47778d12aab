/**
 * A measured value over the steps, in a bounded number of buckets, each with its lowest and its highest value, so that a chart of a million steps
 * shows every spike and costs no more than one of a thousand. A bucket covers a fixed range of steps, so that drawn points do not move while the run
 * grows.
 */

/** Maximum number of buckets: more than the chart has pixels would only cost time. */
export const LIMIT = 1024;
/** The mean around a point reaches over a quarter of the steps before it, at first over at most 25, and in long runs over a fiftieth of them. */
const [EARLY, NEAR, LATE] = [1 / 4, 25, 1 / 50];

interface Bucket {
  /** Number of the bucket, which holds the steps `key·stride + 1` to `(key + 1)·stride`. */
  key: number;
  /** Indices of its first, its lowest and its highest value. */
  first: number;
  low: number;
  high: number;
}

export class Line {
  readonly #steps: number[] = [];
  readonly #values: number[] = [];
  /** The sum of all values before each one, and of all. */
  readonly #sums: number[] = [0];
  #buckets: Bucket[] = [];
  #stride = 1;

  get length(): number {
    return this.#steps.length;
  }

  get firstStep(): number {
    return this.#steps[0] ?? 0;
  }

  get lastStep(): number {
    return this.#steps.at(-1) ?? 0;
  }

  /** Number of steps in a bucket. */
  get stride(): number {
    return this.#stride;
  }

  /** Adds a value. A step that already exists is where the run continued: it and all later ones are replaced. */
  push(step: number, value: number): void {
    if (step <= this.lastStep) this.cut(step - 1);
    this.#steps.push(step);
    this.#values.push(value);
    this.#sums.push((this.#sums.at(-1) ?? 0) + value);
    this.#place(this.#steps.length - 1);
  }

  /** Forgets everything after `step`. */
  cut(step: number): void {
    let kept = this.#steps.length;
    while (kept > 0 && this.#step(kept - 1) > step) kept--;
    this.#steps.length = kept;
    this.#values.length = kept;
    this.#sums.length = kept + 1;
    this.#buckets = [];
    this.#stride = 1;
    for (let index = 0; index < kept; index++) this.#place(index);
  }

  #step(index: number): number {
    return this.#steps[index] ?? 0;
  }

  #value(index: number): number {
    return this.#values[index] ?? 0;
  }

  #key(step: number): number {
    return Math.floor((step - 1) / this.#stride);
  }

  #place(index: number): void {
    const key = this.#key(this.#step(index));
    const last = this.#buckets.at(-1);
    if (last?.key === key) {
      if (this.#value(index) < this.#value(last.low)) last.low = index;
      if (this.#value(index) > this.#value(last.high)) last.high = index;
      return;
    }
    this.#buckets.push({ key, first: index, low: index, high: index });
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
        if (this.#value(bucket.low) < this.#value(last.low)) last.low = bucket.low;
        if (this.#value(bucket.high) > this.#value(last.high)) last.high = bucket.high;
      }
    }
    this.#buckets = merged;
  }

  /** Returns the mean of the values around one, as many before it as after it, unless the run ends there. */
  #around(index: number): number {
    const reach = Math.floor(Math.min(index * EARLY, Math.max(NEAR, index * LATE)));
    const [from, to] = [index - reach, Math.min(this.length, index + reach + 1)];
    return ((this.#sums[to] ?? 0) - (this.#sums[from] ?? 0)) / (to - from);
  }

  /** Returns the first value and the last mean. */
  get ends(): [number, number] | undefined {
    return this.length === 0 ? undefined : [this.#value(0), this.#around(this.length - 1)];
  }

  /** Returns steps, values and means: the lowest and the highest value of each bucket, in the order of the steps. */
  columns(): [number[], number[], number[]] {
    const columns: [number[], number[], number[]] = [[], [], []];
    for (const { low, high } of this.#buckets)
      for (const index of low === high ? [low] : low < high ? [low, high] : [high, low]) {
        columns[0].push(this.#step(index));
        columns[1].push(this.#value(index));
        columns[2].push(this.#around(index));
      }
    return columns;
  }

  /** Returns the first value of the bucket of each of these steps, which rise, or null where there is none. */
  firsts(steps: readonly number[]): (number | null)[] {
    let at = 0;
    return steps.map((step) => {
      while (at < this.#buckets.length && (this.#buckets[at]?.key ?? 0) < this.#key(step)) at++;
      const bucket = this.#buckets[at];
      return bucket?.key === this.#key(step) ? this.#value(bucket.first) : null;
    });
  }
}
