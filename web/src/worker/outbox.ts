import type { TrainerEvent } from '../protocol/events.js';

/** Events on their way to the page: collected per `logEvery`, at most ten messages per second. */
export class Outbox {
  #waiting: TrainerEvent[] = [];
  #lastPost = 0;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly post: (events: TrainerEvent[]) => void,
    private readonly logEvery: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  push(event: TrainerEvent): void {
    if (this.#closed) return;
    this.#waiting.push(event);
    const steps =
      event.type === 'step' ? this.#waiting.filter((e) => e.type === 'step').length : this.logEvery;
    const since = this.now() - this.#lastPost;
    // The page is at most a quarter of a second behind when steps are slow.
    if (since >= (steps >= this.logEvery ? 100 : 250)) this.flush();
    else
      this.#timer ??= setTimeout(
        () => this.flush(),
        Math.max(0, (steps >= this.logEvery ? 100 : 250) - since),
      );
  }

  /** Sends the collected events, and none after them. */
  close(): void {
    this.flush();
    this.#closed = true;
  }

  /** Sends everything immediately. Called before a reply, so that the page never learns of a result before its events. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    const events = this.#waiting;
    this.#waiting = [];
    this.#lastPost = this.now();
    this.post(events);
  }
}
