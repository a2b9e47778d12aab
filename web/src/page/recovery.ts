/** Restores a run in another worker, from the newest complete checkpoint or from its inputs, and then repeats the lost steps. */
import { TabtuneError } from '../protocol/errors.js';
import { Journal } from './journal.js';
import type { Ask } from '../protocol/protocol.js';
import type { SessionInfo } from '../protocol/reports.js';
import type { Connection } from './rpc.js';

/** How a run was started, so that it can be started again if it has no checkpoint. */
export interface Beginning {
  open(connection: Connection): Promise<unknown>;
  ask: Ask<'trainer.create'>;
}

/** Codes of an unusable checkpoint, which does not matter if the run can be started again. */
const UNUSABLE = /^(CHECKPOINT|STORAGE)_/;

export class Recovery {
  readonly journal = new Journal();
  /** Generation of the live state, if it is not the newest one. */
  #base: number | undefined;
  /** True if the run is known to have a checkpoint. */
  #kept: boolean;

  constructor(
    private readonly ask: Ask<'trainer.resume'>,
    private readonly beginning: Beginning | undefined,
  ) {
    this.#base = ask.generation;
    this.#kept = beginning === undefined;
  }

  /** Notes that a checkpoint was saved, so that the newest generation is the live one. */
  saved(): void {
    this.#base = undefined;
    this.#kept = true;
  }

  /** Returns whether the run can be resumed from storage. */
  get kept(): boolean {
    return this.#kept;
  }

  /** Notes that the trainer went back to a generation. */
  loaded(generation: number): void {
    this.#base = generation;
    this.journal.cut(generation);
  }

  /** Opens the run in its last saved state. */
  async reopen(connection: Connection): Promise<SessionInfo> {
    try {
      return await connection.call('trainer.resume', { ...this.ask, generation: this.#base });
    } catch (thrown) {
      if (!this.beginning || !(thrown instanceof TabtuneError) || !UNUSABLE.test(thrown.code))
        throw thrown;
      await this.beginning.open(connection);
      return connection.call('trainer.create', this.beginning.ask);
    }
  }

  /** Repeats the steps up to `target`, with the manual changes made between them. */
  async repeat(
    connection: Connection,
    { completedSteps, generation }: SessionInfo,
    target: number,
  ): Promise<void> {
    let at = completedSteps;
    const until = async (step: number): Promise<void> => {
      if (step <= at) return;
      await connection.call('loop.run', { maxSteps: step - at, again: true });
      at = step;
    };
    for (const entry of this.journal.since(generation)) {
      await until(entry.step);
      const made =
        entry.set === 'rate'
          ? connection.call('rate.set', { rate: entry.rate })
          : connection.call('schedule.decay', undefined);
      // Generations saved in the meantime lack the change too.
      entry.generation = (await made).generation;
    }
    await until(target);
  }
}
