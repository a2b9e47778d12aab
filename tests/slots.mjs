// Jobs that share the cores of the machine.

/** So many jobs at a time; those that wait start in the order in which they came. */
export class Slots {
  #free;
  #waiting = [];

  constructor(count) {
    this.#free = count;
  }

  /** Does `work` as soon as a slot is free. */
  async run(work) {
    if (this.#free > 0) this.#free--;
    else await new Promise((start) => this.#waiting.push(start));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
