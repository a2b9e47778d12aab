/** The page's half of the loop: one iterator over a run that may be paused and resumed in between. */
import { aborted, TabtuneError } from './errors.js';
import type { Profile, TrainerEvent } from './protocol.js';
import { EventQueue } from './queue.js';
import type { Line } from './rpc.js';

export interface RunOptions {
  signal?: AbortSignal;
  /** Stop after so many steps; the run goes on with the next call. */
  maxSteps?: number;
}

/** A pause that lasts until it is resumed (true) or given up (false). */
interface Pause {
  over: Promise<boolean>;
  end(resumed: boolean): void;
}

function newPause(): Pause {
  let end: (resumed: boolean) => void = () => undefined;
  const over = new Promise<boolean>((resolve) => (end = resolve));
  return { over, end: (resumed) => end(resumed) };
}

const busy = (): TabtuneError => new TabtuneError('BUSY', 'this trainer is already running: pause it first', { code: 'loop.running' });

export class RunLoop {
  #queue: EventQueue<TrainerEvent> | undefined;
  #pause: Pause | undefined;
  #inWorker = false;

  constructor(
    private readonly line: Line,
    private readonly completedSteps: () => number,
    /** Puts another worker in place of one whose GPU is gone; throws what cannot be helped. */
    private readonly recover: (error: TabtuneError, signal: AbortSignal | undefined) => Promise<void>,
  ) {}

  receive(event: TrainerEvent): void {
    this.#queue?.push(event);
  }

  /** Yields every event until the run is done, stopped or aborted. Leaving the loop early pauses. */
  async *run({ signal, maxSteps }: RunOptions): AsyncGenerator<TrainerEvent, void> {
    if (this.#queue) throw busy();
    const queue = new EventQueue<TrainerEvent>();
    this.#queue = queue;
    const driven = this.#drive(maxSteps, signal).then(
      () => queue.end(),
      (thrown: unknown) => queue.end(thrown),
    );
    try {
      yield* queue;
    } finally {
      this.#queue = undefined;
      this.#endPause(false);
      if (this.#inWorker) await this.line.connection.call('loop.pause', undefined).catch(() => undefined);
      await driven;
    }
  }

  async #drive(maxSteps: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    const target = maxSteps === undefined ? undefined : this.completedSteps() + maxSteps;
    for (;;) {
      const left = target === undefined ? undefined : target - this.completedSteps();
      if (left !== undefined && left <= 0) return;
      const state = await this.#oneRun(left, signal);
      if (state === 'recovered') continue;
      if (state !== 'paused' || !this.#pause) return;
      const abort = (): void => this.#endPause(false);
      signal?.addEventListener('abort', abort, { once: true });
      if (signal?.aborted) abort();
      const resumed = await this.#pause.over;
      signal?.removeEventListener('abort', abort);
      if (signal?.aborted) throw aborted('the run');
      if (!resumed) return;
    }
  }

  async #oneRun(maxSteps: number | undefined, signal: AbortSignal | undefined): Promise<'paused' | 'stopped' | 'done' | 'recovered'> {
    try {
      return (await this.#inTheWorker(maxSteps, signal)).state;
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError) || thrown.code !== 'DEVICE_LOST') throw thrown;
      await this.recover(thrown, signal);
      return 'recovered';
    }
  }

  #inTheWorker(maxSteps: number | undefined, signal: AbortSignal | undefined) {
    return this.#alone(() => this.line.connection.call('loop.run', { maxSteps }, { signal }));
  }

  /** One loop at a time. */
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

  /** Settles when the present step is over; the iterator stays open. */
  async pause(): Promise<void> {
    if (!this.#inWorker) return;
    this.#pause ??= newPause();
    await this.line.connection.call('loop.pause', undefined);
  }

  resume(): void {
    this.#endPause(true);
  }

  async stop(): Promise<void> {
    await this.line.connection.call('loop.stop', undefined);
    this.#endPause(false);
  }

  /** Exactly `count` steps, while no run is going on or it is paused. */
  async step(count: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#inTheWorker(count, signal);
  }

  /** As `step`, with the time of each kernel. */
  profile(steps: number, signal: AbortSignal | undefined): Promise<Profile> {
    return this.#alone(() => this.line.connection.call('trainer.profile', { steps }, { signal }));
  }
}
