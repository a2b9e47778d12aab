/** The page's half of the training loop: one iterator over a run, which may be paused and resumed in between. */
import { aborted, fault, TabtuneError } from '../protocol/errors.js';
import { optionsOf } from './given.js';
import type { Link } from './link.js';
import type { Profile, TrainerEvent } from '../protocol/reports.js';
import { EventQueue } from './queue.js';
import type { RunStatus } from './status.js';

/** Options of `Trainer.run`. */
export interface RunOptions {
  signal?: AbortSignal | undefined;
  /** Stops after this many steps; the next call continues the run. */
  maxSteps?: number | undefined;
}

/** A pause that lasts until the run is resumed (true) or ended (false). */
interface Pause {
  over: Promise<boolean>;
  end(resumed: boolean): void;
}

function newPause(): Pause {
  let end: (resumed: boolean) => void = () => undefined;
  const over = new Promise<boolean>((resolve) => (end = resolve));
  return { over, end: (resumed) => end(resumed) };
}

const busy = (): TabtuneError => fault('loop.running');
type End = 'paused' | 'stopped' | 'done' | 'recovered';

/** @internal Drives the run in the worker and hands its events to the iterator. */
export class RunLoop {
  #queue: EventQueue<TrainerEvent> | undefined;
  #pause: Pause | undefined;
  #stopping: Promise<void> | undefined;
  #inWorker = false;

  constructor(
    private readonly link: Link,
    private readonly status: RunStatus,
  ) {}

  /** Returns whether steps are in progress, or will be after a recovery. */
  get running(): boolean {
    return this.#inWorker;
  }

  /** Yields every event until the run is done, stopped or aborted. Leaving the `for await` loop early pauses the run. */
  async *run(options: RunOptions): AsyncGenerator<TrainerEvent, void> {
    const { signal, maxSteps } = optionsOf(options, 'the run', ['signal', 'maxSteps']);
    if (this.#queue) throw busy();
    const queue = new EventQueue<TrainerEvent>();
    this.#queue = queue;
    this.status.follow((event) => queue.push(event));
    const driven = this.#drive(maxSteps, signal).then(
      () => queue.end(),
      (thrown: unknown) => queue.end(thrown),
    );
    try {
      yield* queue;
    } finally {
      this.#queue = undefined;
      this.status.follow(undefined);
      if (this.#inWorker) await this.pause().catch(() => undefined);
      this.#endPause(false);
      await driven;
    }
  }

  async #drive(maxSteps: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    const target = maxSteps === undefined ? undefined : this.status.step + maxSteps;
    for (;;) {
      if (target !== undefined && target <= this.status.step) return;
      const end = await this.#untilNext(target, signal);
      if (end === 'done' || end === 'stopped' || !this.#pause) return;
      const abort = (): void => this.#endPause(false);
      signal?.addEventListener('abort', abort, { once: true });
      if (signal?.aborted) abort();
      const resumed = await this.#pause?.over;
      signal?.removeEventListener('abort', abort);
      if (signal?.aborted) throw aborted('the run');
      if (!resumed) return;
    }
  }

  /** Continues through losses of the worker until something else ends the run. */
  async #untilNext(target: number | undefined, signal: AbortSignal | undefined): Promise<End> {
    return this.#alone(async () => {
      for (;;) {
        const left = target === undefined ? undefined : target - this.status.step;
        if (left !== undefined && left <= 0) return 'paused';
        const end = await this.#once(left, signal, true);
        if (end !== 'recovered') return end;
        if (this.#stopping) {
          await this.#stopping.catch(() => undefined);
          return 'stopped';
        }
        if (this.#pause) {
          this.status.become('paused');
          return 'paused';
        }
      }
    });
  }

  /** Runs once in one worker. If memory does not suffice, a run may pause (`may`); a single step cannot. */
  async #once(maxSteps: number | undefined, signal: AbortSignal | undefined, may: boolean): Promise<End> {
    try {
      return (await this.link.call('loop.run', { maxSteps }, { signal, again: () => false })).state;
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError)) throw thrown;
      if (thrown.detail.recovered === true) {
        if (thrown.code !== 'OUT_OF_MEMORY') return 'recovered';
        if (!may) throw thrown;
        this.#pause ??= newPause();
        return 'recovered';
      }
      if (thrown.code !== 'ABORTED' && thrown.code !== 'BUSY') this.status.become('failed');
      throw thrown;
    }
  }

  /** Makes sure that only one loop runs at a time. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inWorker) throw busy();
    this.#inWorker = true;
    try {
      return await work();
    } finally {
      this.#inWorker = false;
    }
  }

  #endPause(resumed: boolean): void {
    this.#pause?.end(resumed);
    this.#pause = undefined;
  }

  /** Resolves after the current step; the iterator stays open. */
  async pause(): Promise<void> {
    if (!this.#inWorker) return;
    this.#pause ??= newPause();
    await this.link.call('loop.pause', undefined);
  }

  resume(): void {
    this.#endPause(true);
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.link.call('loop.stop', undefined).finally(() => (this.#stopping = undefined));
    await this.#stopping;
    this.#endPause(false);
  }

  /** Makes exactly `count` steps; allowed while no run is in progress or it is paused. */
  async step(count: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#alone(async () => {
      const target = this.status.step + count;
      for (let left = count; left > 0; left = target - this.status.step) {
        if ((await this.#once(left, signal, false)) !== 'recovered') return;
      }
    });
  }

  /** Makes steps as `step` does, and measures the time of each kernel. */
  profile(steps: number, signal: AbortSignal | undefined): Promise<Profile> {
    return this.#alone(async () => {
      const target = this.status.step + steps;
      const left = (): number => Math.max(1, target - this.status.step);
      for (;;) {
        try {
          return await this.link.call('trainer.profile', { steps: left() }, { signal, again: () => false });
        } catch (thrown) {
          if (!(thrown instanceof TabtuneError) || thrown.detail.recovered !== true || thrown.code === 'OUT_OF_MEMORY') throw thrown;
        }
      }
    });
  }
}
