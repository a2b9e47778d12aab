/**
 * Steps whose reports are read together, as in the core: a refused one returns the run to its previous state, and the next call throws the refusal.
 */
import { unlessLost } from './fake-calls.js';

interface Advanced {
  completedSteps: number;
  reports: unknown[];
}

export class FakeWindow<Progress extends { step: number }> {
  #waiting = 0;
  #reports: unknown[] = [];
  #refused: { error: unknown; before: Progress } | undefined;
  #failed: unknown;

  constructor(
    private readonly progress: () => Progress,
    private readonly set: (progress: Progress) => void,
  ) {}

  async submit(every: number, taken: () => Promise<unknown>): Promise<Advanced> {
    this.#tell();
    const before = this.progress();
    if (!this.#refused) {
      try {
        this.#reports.push(await taken());
      } catch (error) {
        if ((error as { kind?: string }).kind !== 'NON_FINITE') throw error;
        this.#refused = { error, before };
      }
    }
    // Steps after a refused one change nothing but the count.
    if (this.#refused) this.set({ ...before, step: before.step + 1 });
    this.#waiting += 1;
    const advanced =
      this.#waiting < every + (every > 1 ? 2 : 0)
        ? { completedSteps: this.progress().step, reports: [] }
        : this.#read();
    if (advanced.reports.length === 0) this.#tell();
    return advanced;
  }

  async settle(): Promise<Advanced> {
    unlessLost();
    return this.#read();
  }

  #tell(): void {
    const failed = this.#failed;
    this.#failed = undefined;
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- the core throws plain objects
    if (failed) throw failed;
  }

  #read(): Advanced {
    const reports = this.#reports.splice(0);
    if (this.#refused) {
      this.set(this.#refused.before);
      this.#failed = this.#refused.error;
    }
    [this.#waiting, this.#refused] = [0, undefined];
    return { completedSteps: this.progress().step, reports };
  }
}
