/** Restores a run in another worker: from the newest whole checkpoint or its inputs, and then repeats the steps that were lost. */
import { TabtuneError } from '../protocol/errors.js';
import { Journal } from './journal.js';
import type { Ask } from '../protocol/protocol.js';
import type { SessionInfo } from '../protocol/reports.js';
import type { Connection } from './rpc.js';

/** How a run was started; without a checkpoint it is started again. */
export interface Beginning {
  open(connection: Connection): Promise<unknown>;
  ask: Ask<'trainer.create'>;
}

/** Codes of an unusable checkpoint, which does not matter if the run can be started again. */
const UNUSABLE = /^(CHECKPOINT|STORAGE)_/;

export class Recovery {
  readonly journal = new Journal();
  /** The generation of the live state, if it is not the newest. */
  #base: number | undefined;
  /** Whether the run has a checkpoint, as far as is known. */
  #kept: boolean;

  constructor(
    private readonly ask: Ask<'trainer.resume'>,
    private readonly beginning: Beginning | undefined,
  ) {
    this.#base = ask.generation;
    this.#kept = beginning === undefined;
  }

  /** From now on the newest generation is the live one. */
  saved(): void {
    this.#base = undefined;
    this.#kept = true;
  }

  /** Whether the run can be resumed from storage. */
  get kept(): boolean {
    return this.#kept;
  }

  /** The trainer went back to a generation. */
  loaded(generation: number): void {
    this.#base = generation;
    this.journal.cut(generation);
  }

  /** Opens the run as it was last saved. */
  async reopen(connection: Connection): Promise<SessionInfo> {
    try {
      return await connection.call('trainer.resume', { ...this.ask, generation: this.#base });
    } catch (thrown) {
      if (!this.beginning || !(thrown instanceof TabtuneError) || !UNUSABLE.test(thrown.code)) throw thrown;
      await this.beginning.open(connection);
      return connection.call('trainer.create', this.beginning.ask);
    }
  }

  /** Repeats the steps up to `target`, and the changes made by hand between them. */
  async repeat(connection: Connection, { completedSteps, generation }: SessionInfo, target: number): Promise<void> {
    let at = completedSteps;
    const until = async (step: number): Promise<void> => {
      if (step <= at) return;
      await connection.call('loop.run', { maxSteps: step - at, again: true });
      at = step;
    };
    for (const entry of this.journal.since(generation)) {
      await until(entry.step);
      const made = entry.set === 'rate' ? connection.call('rate.set', { rate: entry.rate }) : connection.call('schedule.decay', undefined);
      // Generations that were saved meanwhile lack it too.
      entry.generation = (await made).generation;
    }
    await until(target);
  }
}
