// Reproducible random numbers.

/** Numbers of mulberry32 from a seed. */
export class Chance {
  /** @param {number} seed */
  constructor(seed) {
    this.seed = seed;
  }

  /** Returns a number in [0, 1). */
  next() {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let t = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @param {number} n */
  below(n) {
    return Math.floor(this.next() * n);
  }
}
