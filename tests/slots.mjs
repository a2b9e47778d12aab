// Jobs that share the cores of the machine.

/** A limited number of simultaneous jobs; waiting ones start in their order of arrival, urgent ones before the others. */
export class Slots {
  #free;
  #urgent = [];
  #waiting = [];

  constructor(count) {
    this.#free = count;
  }

  /** Runs `work` as soon as a slot is free. */
  async run(work, { urgent = false } = {}) {
    if (this.#free > 0) this.#free--;
    else await new Promise((start) => (urgent ? this.#urgent : this.#waiting).push(start));
    try {
      return await work();
    } finally {
      const next = this.#urgent.shift() ?? this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
