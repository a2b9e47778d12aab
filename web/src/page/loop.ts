/** The page's half of the training loop: one iterator over a run, which may be paused and resumed in between. */
import { aborted, fault, TabtuneError, toTabtuneError } from '../protocol/errors.js';
import { unlessAborted } from '../protocol/abort.js';
import { optionsOf } from './given.js';
import type { Link } from './link.js';
import { after } from './loop-state.js';
import type { LoopEvent, LoopState } from './loop-state.js';
import type { Profile } from '../protocol/reports.js';
import type { StepEvent, TrainerEvent } from '../protocol/events.js';
import { EventQueue } from './queue.js';
import type { RunEnd, RunStatus } from './status.js';

/** Options of `Trainer.run`. */
export interface RunOptions {
  /** Pauses the run after its last whole step; the loop over it then throws an `AbortError`. */
  signal?: AbortSignal | undefined;
  /** Stops after this many steps; the next call continues the run. */
  maxSteps?: number | undefined;
}

type End = 'paused' | 'stopped' | 'done' | 'recovered';

/** @internal Drives the run in the worker and hands its events to the iterator. */
export class RunLoop {
  #state: LoopState = 'idle';
  /** Wakes a run that waits for another state. */
  #wake: (() => void) | undefined;
  /** The work that has the worker's loop, and the end of all work that was asked for so far. */
  #turn: 'run' | 'other' | undefined;
  #turns: Promise<unknown> = Promise.resolve();
  /** True from the call of a step, a profile or a load until its end. */
  #reserved = false;
  #stopping: Promise<void> | undefined;
  /** True once the trainer is to end, which saves by itself. */
  #ending = false;

  constructor(
    private readonly link: Link,
    private readonly status: RunStatus,
  ) {}

  /** Returns whether steps are in progress, or will be after a recovery. */
  get running(): boolean {
    return this.#turn !== undefined;
  }

  /**
   * Yields every event until the run is done, stopped or aborted, and then calls `settled`. Leaving the `for await` loop early pauses the run.
   */
  async *run(options: RunOptions, settled: () => void): AsyncGenerator<TrainerEvent, void> {
    const { signal, maxSteps } = optionsOf(options, 'the run', ['signal', 'maxSteps']);
    this.#checkOpen();
    if (this.#state !== 'idle' || this.#reserved) throw fault('loop.running');
    this.#become('run');
    this.status.begin();
    const queue = new EventQueue<TrainerEvent>();
    this.status.follow((event) => queue.push(event));
    const driven = this.#drive(maxSteps, signal)
      .finally(() => this.#become('ended'))
      .then(
        (reason) => (this.status.end(reason), queue.end()),
        (thrown: unknown) => (this.#failed(thrown), queue.end(thrown)),
      );
    try {
      yield* queue;
    } finally {
      this.status.follow(undefined);
      this.#become('leave');
      await this.#halt().catch(() => undefined);
      await driven;
    }
    settled();
  }

  /** Notes why a run has ended with an error. */
  #failed(thrown: unknown): void {
    const error = toTabtuneError(thrown);
    const gaveUp = this.#is('closed') ? 'disposed' : 'aborted';
    this.status.end(error.code === 'ABORTED' ? gaveUp : 'failed', error);
  }

  #checkOpen(): void {
    if (this.#state === 'closed') throw aborted('the trainer');
  }

  #become(event: LoopEvent): void {
    this.#state = after(this.#state, event);
    this.#wake?.();
  }

  /** Makes steps until the run ends, and returns the reason. */
  async #drive(
    maxSteps: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<RunEnd['reason']> {
    const target = maxSteps === undefined ? undefined : this.status.step + maxSteps;
    for (;;) {
      const end = await this.#inTurn('run', () => this.#advance(target, signal));
      if (end === 'reached') this.#saveSoon(false);
      else if (end === 'paused' && this.#state !== 'running') this.#saveSoon(true);
      if (end === 'done' || end === 'stopped') return end;
      if (end === 'reached') return 'maxSteps';
      this.#become('halted');
      // The worker announces a pause by itself, unless it was lost or had not begun.
      if (this.#is('paused') && this.status.state !== 'paused') this.status.become('paused');
      while (this.#state === 'paused')
        await unlessAborted(
          new Promise<void>((resolve) => (this.#wake = resolve)),
          signal,
          'the run',
        );
      this.#checkOpen();
      // The worker reports the end of the run before it answers.
      if (this.#state === 'stopping') {
        await this.#stopping?.catch(() => undefined);
        return 'stopped';
      }
      if (this.#state === 'leaving') return 'left';
    }
  }

  /** Saves the unsaved steps of a run that makes none now, in the background; a failure is reported as that of any automatic save. */
  #saveSoon(always: boolean): void {
    if (this.#ending) return;
    void this.link.call('checkpoint.autosave', { always }).catch(() => undefined);
  }

  /** Makes steps until the worker ends them or is lost, if the run is to continue and nothing waits for its turn. */
  async #advance(
    target: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<End | 'reached'> {
    if (this.#state !== 'running' || this.#reserved) return 'paused';
    const left = target === undefined ? undefined : target - this.status.step;
    return left !== undefined && left <= 0 ? 'reached' : this.#once(left, signal, true);
  }

  /** The state, which other calls change while a call waits. */
  #is(state: LoopState): boolean {
    return this.#state === state;
  }

  /** Runs once in one worker. If memory does not suffice, a run may pause (`may`); a single step cannot. */
  async #once(
    maxSteps: number | undefined,
    signal: AbortSignal | undefined,
    may: boolean,
  ): Promise<End> {
    try {
      return (await this.link.call('loop.run', { maxSteps }, { signal, again: () => false })).state;
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError)) throw thrown;
      if (thrown.detail.recovered === true) {
        if (thrown.code !== 'OUT_OF_MEMORY') return 'recovered';
        if (!may) throw thrown;
        this.#become('pause');
        return 'recovered';
      }
      if (thrown.code !== 'ABORTED' && thrown.code !== 'BUSY') {
        this.status.become('failed');
        this.status.end('failed', thrown);
      }
      throw thrown;
    }
  }

  /** Does work once the worker's loop is free, in the order of the calls. */
  #inTurn<T>(turn: 'run' | 'other', work: () => Promise<T>): Promise<T> {
    const mine = this.#turns.then(async () => {
      this.#turn = turn;
      try {
        return await work();
      } finally {
        this.#turn = undefined;
      }
    });
    this.#turns = mine.catch(() => undefined);
    return mine;
  }

  /** Does work between the steps of the run: at once if none is in progress, after its current step if it is being paused or stopped. */
  async alone<T>(work: () => Promise<T>, hint?: string): Promise<T> {
    this.#checkOpen();
    if (this.#state === 'running' || this.#reserved)
      throw fault('loop.running', hint === undefined ? {} : { hint });
    this.#reserved = true;
    try {
      return await this.#inTurn('other', work);
    } finally {
      this.#reserved = false;
    }
  }

  /** Ends the steps of the run in the worker, if it makes any. */
  async #halt(): Promise<void> {
    if (this.#turn === 'run') await this.link.call('loop.pause', undefined);
  }

  /** Resolves after the current step; the iterator stays open. */
  async pause(): Promise<void> {
    this.#become('pause');
    await this.#halt();
  }

  resume(): void {
    this.#become('resume');
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.link
      .call('loop.stop', undefined)
      .finally(() => (this.#stopping = undefined));
    this.#become('stop');
    await this.#stopping;
  }

  /** Ends all steps and does the last work of the trainer; nothing if it has ended. */
  async last(work: () => unknown): Promise<void> {
    if (this.#state === 'closed') return;
    this.#ending = true;
    this.#become('pause');
    if (this.#turn !== undefined) await this.link.call('loop.pause', undefined);
    await this.#inTurn('other', async () => work());
  }

  /** Ends a run that is paused, when its trainer ends; one that makes steps ends with the worker. */
  close(): void {
    this.#become('close');
  }

  /** Makes exactly `count` steps, fewer only if the run is stopped, and returns their reports. */
  step(count: number, signal: AbortSignal | undefined): Promise<StepEvent[]> {
    return this.alone(async () => {
      const from = this.status.step;
      const reports = await this.status.reportsOf(async () => {
        for (let left = count; left > 0; left = from + count - this.status.step) {
          if ((await this.#once(left, signal, false)) !== 'recovered') break;
        }
      });
      return reports.filter(({ step }) => step > from);
    });
  }

  /** Makes steps as `step` does, and measures the time of each kernel. */
  profile(steps: number, signal: AbortSignal | undefined): Promise<Profile> {
    return this.alone(async () => {
      const target = this.status.step + steps;
      const left = (): number => Math.max(1, target - this.status.step);
      for (;;) {
        try {
          return await this.link.call(
            'trainer.profile',
            { steps: left() },
            { signal, again: () => false },
          );
        } catch (thrown) {
          if (
            !(thrown instanceof TabtuneError) ||
            thrown.detail.recovered !== true ||
            thrown.code === 'OUT_OF_MEMORY'
          )
            throw thrown;
        }
      }
    });
  }
}
