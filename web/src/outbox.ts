import type { TrainerEvent } from './protocol.js';

/** Events on their way to the page: gathered per `logEvery`, never more than ten messages a second. */
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
    const steps = event.type === 'step' ? this.#waiting.filter((e) => e.type === 'step').length : this.logEvery;
    const since = this.now() - this.#lastPost;
    // A quarter of a second bounds how stale the page can be when steps are slow.
    if (since >= (steps >= this.logEvery ? 100 : 250)) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), Math.max(0, (steps >= this.logEvery ? 100 : 250) - since));
  }

  /** Sends what happened so far, and nothing after it. */
  close(): void {
    this.flush();
    this.#closed = true;
  }

  /** Sends everything now: before a reply, so that the page never hears of a result before its events. */
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
