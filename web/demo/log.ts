/** Everything that the run has reported, for people who want the numbers. */
import type { TrainerEvent } from 'tabtune';

/** Entries that are saved with a run and restored with it. */
export type Entry = Extract<TrainerEvent, { type: 'step' | 'eval' | 'sample' }>;
export type Step = Extract<TrainerEvent, { type: 'step' }>;

export class Log {
  #entries: Entry[] = [];

  clear(): void {
    this.#entries = [];
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  /** Forgets everything after `step`. */
  cut(step: number): void {
    this.#entries = this.#entries.filter((entry) => entry.step <= step);
  }

  csv(): Blob {
    const evaluations = new Map(
      this.#entries.flatMap((entry) =>
        entry.type === 'eval' ? [[entry.step, entry] as const] : [],
      ),
    );
    const rows = this.#entries.flatMap((entry) => {
      if (entry.type !== 'step') return [];
      const { step, epoch, loss, gradNorm, learningRate, tokens, secs } = entry;
      const evaluation = evaluations.get(step);
      return [
        [
          step,
          epoch,
          loss,
          gradNorm,
          learningRate,
          tokens,
          secs,
          evaluation?.loss ?? '',
          evaluation?.perplexity ?? '',
          evaluation?.accuracy ?? '',
        ].join(','),
      ];
    });
    return new Blob(
      [
        [
          'step,epoch,loss,grad_norm,learning_rate,tokens,secs,validation_loss,validation_perplexity,validation_accuracy',
          ...rows,
          '',
        ].join('\n'),
      ],
      { type: 'text/csv' },
    );
  }

  /** Returns the same with the samples; `about` identifies the run. */
  json(about: object): Blob {
    return new Blob([JSON.stringify({ ...about, entries: this.#entries }, undefined, 1)], {
      type: 'application/json',
    });
  }
}
