/** Where a run stands, as its trainer knows it, and who hears of it. */
import type { TrainerEvent, TrainerState } from './protocol.js';

/** An event of a trainer; `detail` is what `run` yields. */
export class TrainerMessage extends Event {
  constructor(readonly detail: TrainerEvent) {
    super(detail.type);
  }
}

export class Standing {
  state: TrainerState = 'ready';
  /** A loop that iterates. */
  #loop: ((event: TrainerEvent) => void) | undefined;
  /** Told before anybody could listen. */
  #early: TrainerEvent[] | undefined = [];
  /** Warnings that no loop has heard. */
  #unseen: TrainerEvent[] = [];

  constructor(
    /** The last step that was reported. */
    public step: number,
    private readonly target: EventTarget,
  ) {
    // Once whoever made the trainer has had time to listen.
    setTimeout(() => {
      const early = this.#early ?? [];
      this.#early = undefined;
      for (const event of early) this.#tell(event);
    }, 0);
  }

  receive(event: TrainerEvent): void {
    if (event.type === 'step') this.step = event.step;
    if (event.type === 'state') this.state = event.state;
    if (this.#early) this.#early.push(event);
    else this.#tell(event);
  }

  /** A loop hears of everything, and first of what was warned of while there was none. */
  follow(loop: ((event: TrainerEvent) => void) | undefined): void {
    this.#loop = loop;
    if (loop) this.#unseen.splice(0).forEach(loop);
  }

  #tell(event: TrainerEvent): void {
    if (this.#loop) this.#loop(event);
    else if (event.type === 'warning') this.#unseen.push(event);
    this.target.dispatchEvent(new TrainerMessage(event));
  }

  become(state: TrainerState): void {
    this.receive({ type: 'state', state, step: this.step });
  }

  warn(code: string, message: string): void {
    this.receive({ type: 'warning', step: this.step, code, message });
  }
}
