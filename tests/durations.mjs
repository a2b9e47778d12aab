// Durations of groups of tests on this machine: the slowest start first, and progress is estimated from them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../web/toolchain.mjs';

const FILE = join(cacheDir, 'test-times.json');

function lastRuns() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'));
  } catch {
    // Durations only affect order and progress; without them the lists of the callers are used.
    return {};
  }
}

/** Returns the seconds that a job took in its last run on this machine, if there was one. */
export const secondsOf = (key) => lastRuns()[key];

/** Sorts jobs with a `key`, the slowest of the last run first; jobs without a duration are sorted by their position in `slowest`. */
export function slowestFirst(jobs, slowest) {
  const known = lastRuns();
  const guess = ({ key }) => (slowest.includes(key) ? (slowest.length - slowest.indexOf(key)) * 1000 : 0);
  const seconds = (job) => known[job.key] ?? guess(job);
  return [...jobs].sort((a, b) => seconds(b) - seconds(a));
}

/**
 * The completed share of the work of `jobs`, by the seconds that are expected of each, or by their durations in the last run; undefined if there was
 * none.
 */
export class Progress {
  #seconds;
  #done = 0;
  #count = 0;
  #total;

  constructor(jobs) {
    const known = lastRuns();
    this.#seconds = new Map(jobs.map(({ key, expected }) => [key, expected ?? known[key] ?? 0]));
    this.#total = [...this.#seconds.values()].reduce((sum, seconds) => sum + seconds, 0);
  }

  /** Counts a job as ended; returns the new state. */
  ended({ key }) {
    this.#done += this.#seconds.get(key);
    this.#count++;
    return this.state();
  }

  /** Returns the number of ended jobs, in words, and the completed share of the work. */
  state() {
    return [`${this.#count} of ${this.#seconds.size} groups of tests done`, this.#total > 0 ? this.#done / this.#total : undefined];
  }
}

/** Stores the durations of jobs, given in `seconds` of each. */
export function remember(jobs) {
  mkdirSync(cacheDir, { recursive: true });
  const took = jobs.filter(({ seconds }) => seconds !== undefined).map(({ key, seconds }) => [key, seconds]);
  writeFileSync(FILE, `${JSON.stringify({ ...lastRuns(), ...Object.fromEntries(took) }, null, 2)}\n`);
}
