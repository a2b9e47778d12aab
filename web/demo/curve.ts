/** The measured values of a run as columns of charts. */
import { LIMIT, Line } from './line.js';
import type { Step } from './log.js';

export type Column = (number | null)[];

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

/** Returns the columns of two curves over the steps of both; `first` has its own columns first. */
export function joined(
  first: readonly [number[], ...Column[]],
  second: readonly [number[], ...Column[]],
): [number[], ...Column[]] {
  const [a, ...as] = first;
  const [b, ...bs] = second;
  const steps: number[] = [];
  const columns = [...as, ...bs].map((): Column => []);
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const step = Math.min(a[i] ?? Infinity, b[j] ?? Infinity);
    const [inFirst, inSecond] = [a[i] === step, b[j] === step];
    steps.push(step);
    as.forEach((column, at) => columns[at]?.push(inFirst ? (column[i] ?? null) : null));
    bs.forEach((column, at) =>
      columns[as.length + at]?.push(inSecond ? (column[j] ?? null) : null),
    );
    if (inFirst) i++;
    if (inSecond) j++;
  }
  return [steps, ...columns];
}

export class Curve {
  readonly #loss = new Line();
  readonly #rate = new Line();
  readonly #norm = new Line();
  readonly #speed = new Line();
  readonly #memory = new Line();
  #evaluations: { step: number; loss: number }[] = [];

  get length(): number {
    return this.#loss.length;
  }

  get lastStep(): number {
    return this.#loss.lastStep;
  }

  /** True once the size of the GPU's memory was reported. */
  get hasMemory(): boolean {
    return this.#memory.length > 0;
  }

  clear(): void {
    this.cut(0);
  }

  /** Adds a step. A step that already exists is where the run continued: it and all later ones are replaced. */
  push({ step, loss, learningRate, gradNorm, tokens, secs }: Step): void {
    if (step <= this.lastStep) this.cut(step - 1);
    this.#loss.push(step, loss);
    this.#rate.push(step, learningRate);
    this.#norm.push(step, gradNorm);
    if (secs > 0) this.#speed.push(step, tokens / secs);
  }

  evaluation(step: number, loss: number): void {
    this.#evaluations.push({ step, loss });
  }

  /** Notes the bytes that the GPU has reserved after `step`. */
  memory(step: number, bytes: number): void {
    this.#memory.push(step, bytes);
  }

  /** Forgets everything after `step`. */
  cut(step: number): void {
    for (const line of [this.#loss, this.#rate, this.#norm, this.#speed, this.#memory])
      line.cut(step);
    this.#evaluations = this.#evaluations.filter((evaluation) => evaluation.step <= step);
  }

  /** Returns steps, losses, means of the losses around each, and validation losses. */
  losses(): [number[], Column, Column, Column] {
    const [steps, losses, means] = this.#loss.columns();
    const validation: Column = steps.map(() => null);
    let at = 0;
    for (const { step, loss } of this.#evaluations) {
      while (at + 1 < steps.length && (steps[at + 1] ?? 0) <= step) at++;
      if (steps.length > 0) validation[at] = loss;
    }
    return [steps, losses, means, validation];
  }

  /** Returns the same as perplexities: a mean is that of the loss. */
  perplexities(): [number[], Column, Column, Column] {
    const [steps, ...columns] = this.losses();
    const of = (column: Column): Column =>
      column.map((loss) => (loss === null ? null : Math.exp(loss)));
    return [steps, of(columns[0]), of(columns[1]), of(columns[2])];
  }

  /** Returns steps, gradient norms and their means. */
  norms(): [number[], Column, Column] {
    return this.#norm.columns();
  }

  /** Returns steps, tokens per second in each, and their means. */
  speeds(): [number[], Column, Column] {
    return this.#speed.columns();
  }

  /** Returns steps and the bytes that the GPU had reserved. */
  memories(): [number[], Column] {
    const [steps, bytes] = this.#memory.columns();
    return [steps, bytes];
  }

  /** Returns steps, planned rates, used rates, over the whole plan. */
  rates({ rates, stride }: Plan): [number[], Column, Column] {
    const length = Math.max((rates.length - 1) * stride + 1, this.lastStep);
    let grid = Math.max(this.#rate.stride, stride);
    while (length / grid > LIMIT) grid *= 2;
    const steps: number[] = [];
    for (let step = 1; step <= length; step += grid) steps.push(step);
    const planned = steps.map((step) => rates[(step - 1) / stride] ?? null);
    return [steps, planned, this.#rate.firsts(steps)];
  }

  /** Returns the curve in one sentence, for people who cannot see it. */
  summary(): string {
    const { ends } = this.#loss;
    if (ends === undefined) return '';
    return `From ${ends[0].toFixed(2)} at step ${this.#loss.firstStep} to ${ends[1].toFixed(2)} (smoothed) at step ${this.lastStep}.`;
  }
}
