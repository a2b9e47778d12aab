// How long groups of tests took on this machine: the longest begin first, and progress is told by them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../web/toolchain.mjs';

const FILE = join(cacheDir, 'test-times.json');

function lastRuns() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'));
  } catch {
    // Figures for order and progress, nothing else: without them the lists of the callers serve.
    return {};
  }
}

/** Jobs with a `key`, those first that took longest in the last run; of those without a figure, those that stand first in `slowest`. */
export function slowestFirst(jobs, slowest) {
  const known = lastRuns();
  const guess = ({ key }) => (slowest.includes(key) ? (slowest.length - slowest.indexOf(key)) * 1000 : 0);
  const seconds = (job) => known[job.key] ?? guess(job);
  return [...jobs].sort((a, b) => seconds(b) - seconds(a));
}

/** What part of the work of `jobs` is done, by how long each took in the last run: undefined where there was none. */
export class Progress {
  #seconds;
  #done = 0;
  #count = 0;
  #total;

  constructor(jobs) {
    const known = lastRuns();
    this.#seconds = new Map(jobs.map(({ key }) => [key, known[key] ?? 0]));
    this.#total = [...this.#seconds.values()].reduce((sum, seconds) => sum + seconds, 0);
  }

  /** Counts a job; gives the new state. */
  ended({ key }) {
    this.#done += this.#seconds.get(key);
    this.#count++;
    return this.state();
  }

  /** How many jobs have ended, in words, and the part of the work. */
  state() {
    return [`${this.#count} of ${this.#seconds.size} groups of tests done`, this.#total > 0 ? this.#done / this.#total : undefined];
  }
}

/** Records how long jobs took, in `seconds` of each. */
export function remember(jobs) {
  mkdirSync(cacheDir, { recursive: true });
  const took = jobs.filter(({ seconds }) => seconds !== undefined).map(({ key, seconds }) => [key, seconds]);
  writeFileSync(FILE, `${JSON.stringify({ ...lastRuns(), ...Object.fromEntries(took) }, null, 2)}\n`);
}
