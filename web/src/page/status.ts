/** State of a run as its trainer knows it, and its listeners. */
import { notify } from './given.js';
import type { TabtuneError } from '../protocol/errors.js';
import type { Finding } from '../protocol/reports.js';
import type { EvalEvent, StepEvent, TrainerEvent, TrainerState } from '../protocol/events.js';

/** Type of an event of a trainer. */
export type EventType = TrainerEvent['type'];

/** Event that a trainer dispatches; `detail` is the event that `run` yields. */
export class TrainerMessage<T extends EventType = EventType> extends Event {
  private constructor(readonly detail: Extract<TrainerEvent, { type: T }>) {
    super(detail.type);
  }

  /** @internal Wraps an event of the trainer. */
  static of(event: TrainerEvent): TrainerMessage {
    return new TrainerMessage(event);
  }
}

/** Listener to one type of a trainer's events. */
export type TrainerListener<T extends EventType> =
  ((event: TrainerMessage<T>) => void) | { handleEvent(event: TrainerMessage<T>): void };

/** The end of a `run`: why its iterator gave its last event. */
export interface RunEnd {
  /**
   * `done`: all steps are made; `stopped`: by `stop`; `maxSteps`: as many as were asked for; `left`: the loop over the events was left; `aborted`: by
   * its signal; `disposed`: with the trainer; `failed`: by `error`.
   */
  readonly reason: 'done' | 'stopped' | 'maxSteps' | 'left' | 'aborted' | 'disposed' | 'failed';
  /** Number of steps that were complete. */
  readonly step: number;
  /** Error with which `run` rejected, if it did. */
  readonly error?: TabtuneError;
}

/** State of a run at one moment; another object as soon as anything changes. */
export interface TrainerSnapshot {
  /** State of the run. */
  readonly state: TrainerState;
  /** Number of steps that are complete. */
  readonly step: number;
  /** Number of steps of the whole run. */
  readonly totalSteps: number;
  /** Report of the last step that was made here. */
  readonly lastStep?: StepEvent;
  /** Result of the last evaluation that was made here. */
  readonly lastEvaluation?: EvalEvent;
  /** How the last `run` ended, until the next one begins; `failed` also after a failed `step`, or after a failure while nothing runs. */
  readonly ended?: RunEnd;
}

/** Target of a trainer's events, with typed listeners. */
export abstract class TrainerTarget extends EventTarget {
  /** Ends the trainer. */
  abstract dispose(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /** Adds a listener, whose event has the report as `detail`. */
  override addEventListener<T extends EventType>(
    type: T,
    listener: TrainerListener<T> | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    super.addEventListener(type, listener as EventListener | null, options);
  }

  /** Removes a listener. */
  override removeEventListener<T extends EventType>(
    type: T,
    listener: TrainerListener<T> | null,
    options?: boolean | EventListenerOptions,
  ): void {
    super.removeEventListener(type, listener as EventListener | null, options);
  }
}

/** @internal State, last step and listeners of a run. */
export class RunStatus {
  snapshot: TrainerSnapshot;
  readonly #subscribers = new Set<() => void>();
  /** The loop that is iterating over the events. */
  #loop: ((event: TrainerEvent) => void) | undefined;
  /** Events from before anyone could listen. */
  #early: TrainerEvent[] | undefined = [];
  /** Reports of a call that collects them, by step: one that is repeated after a loss has the same bits, and counts once. */
  #reports: Map<number, StepEvent> | undefined;
  /** Warnings that no loop has received. */
  #unseen: TrainerEvent[] = [];

  constructor(
    step: number,
    totalSteps: number,
    private readonly target: EventTarget,
  ) {
    this.snapshot = { state: 'ready', step, totalSteps };
    // Runs after the creator of the trainer had time to add listeners.
    setTimeout(() => {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const event of early) this.#dispatch(event);
    }, 0);
  }

  /** Calls a listener after each change of the snapshot. Returns the function that ends this. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#subscribers.add(listener);
    return () => void this.#subscribers.delete(listener);
  };

  get state(): TrainerState {
    return this.snapshot.state;
  }

  /** The last step that was reported. */
  get step(): number {
    return this.snapshot.step;
  }

  /** Forgets the end of the last run, since another one begins. */
  begin(): void {
    const { ended: _, ...rest } = this.snapshot;
    this.snapshot = rest;
  }

  /** Notes how a run has ended. */
  end(reason: RunEnd['reason'], error?: TabtuneError): void {
    const { step } = this.snapshot;
    const ended: RunEnd = error === undefined ? { reason, step } : { reason, step, error };
    this.snapshot = { ...this.snapshot, ended };
    this.#notify();
  }

  /** Sets the last step, of a state that was loaded. */
  loaded(step: number): void {
    this.snapshot = { ...this.snapshot, step };
  }

  /** Returns the reports of the steps that `work` makes. */
  async reportsOf(work: () => Promise<void>): Promise<StepEvent[]> {
    const reports = new Map<number, StepEvent>();
    this.#reports = reports;
    try {
      await work();
    } finally {
      this.#reports = undefined;
    }
    return [...reports.values()];
  }

  receive(event: TrainerEvent): void {
    const { step } = event;
    if (event.type === 'step') this.#reports?.set(step, event);
    if (event.type === 'step') this.snapshot = { ...this.snapshot, step, lastStep: event };
    if (event.type === 'state') this.snapshot = { ...this.snapshot, state: event.state };
    if (event.type === 'eval') this.snapshot = { ...this.snapshot, lastEvaluation: event };
    if (this.#early) this.#early.push(event);
    else this.#dispatch(event);
  }

  /** Lets a loop receive every event, beginning with the warnings from before it started. */
  follow(loop: ((event: TrainerEvent) => void) | undefined): void {
    this.#loop = loop;
    if (loop) this.#unseen.splice(0).forEach(loop);
  }

  #dispatch(event: TrainerEvent): void {
    if (this.#loop) this.#loop(event);
    else if (event.type === 'warning') this.#unseen.push(event);
    this.target.dispatchEvent(TrainerMessage.of(event));
    this.#notify();
  }

  #notify(): void {
    for (const subscriber of this.#subscribers) notify(subscriber, undefined);
  }

  become(state: TrainerState): void {
    this.receive({ type: 'state', state, step: this.step });
  }

  warn({ code, message }: Finding): void {
    this.receive({ type: 'warning', step: this.step, code, message });
  }
}
