/** Every step of the run, for those who want the numbers. */
import type { StepEvent } from 'tabtune';

export class Log {
  #steps: StepEvent[] = [];

  clear(): void {
    this.#steps = [];
  }

  add(event: StepEvent): void {
    this.#steps.push(event);
  }

  csv(): Blob {
    const rows = this.#steps.map(({ step, loss, gradNorm, learningRate, tokens, secs }) => [step, loss, gradNorm, learningRate, tokens, secs].join(','));
    return new Blob([['step,loss,grad_norm,learning_rate,tokens,secs', ...rows, ''].join('\n')], { type: 'text/csv' });
  }
}
