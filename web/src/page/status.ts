/** State of a run as its trainer knows it, and its listeners. */
import type { Finding, TrainerEvent, TrainerState } from '../protocol/reports.js';

/** Event that a trainer dispatches; `detail` is the event that `run` yields. */
export class TrainerMessage extends Event {
  private constructor(readonly detail: TrainerEvent) {
    super(detail.type);
  }

  /** @internal Wraps an event of the trainer. */
  static of(event: TrainerEvent): TrainerMessage {
    return new TrainerMessage(event);
  }
}

/** @internal State, last step and listeners of a run. */
export class RunStatus {
  state: TrainerState = 'ready';
  /** The loop that is iterating over the events. */
  #loop: ((event: TrainerEvent) => void) | undefined;
  /** Events from before anyone could listen. */
  #early: TrainerEvent[] | undefined = [];
  /** Warnings that no loop has received. */
  #unseen: TrainerEvent[] = [];

  constructor(
    /** The last step that was reported. */
    public step: number,
    private readonly target: EventTarget,
  ) {
    // Runs after the creator of the trainer had time to add listeners.
    setTimeout(() => {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const event of early) this.#dispatch(event);
    }, 0);
  }

  receive(event: TrainerEvent): void {
    if (event.type === 'step') this.step = event.step;
    if (event.type === 'state') this.state = event.state;
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
  }

  become(state: TrainerState): void {
    this.receive({ type: 'state', state, step: this.step });
  }

  warn({ code, message }: Finding): void {
    this.receive({ type: 'warning', step: this.step, code, message });
  }
}
