// Stages of long work, displayed so that no one wonders: the number of the stage, the time so far, the time expected, and advice after a failure.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from './toolchain.mjs';

/**
 * Seconds on two quiet cores and a fast line, used until this machine has its own figures, and numbers of output lines, which show the progress of a
 * stage. `first` compiles all dependencies.
 */
const EXPECTED = {
  'npm packages': { seconds: 15 },
  'wasm-bindgen': { seconds: 40, lines: 60 },
  'browser and driver': { seconds: 60 },
  'browser core, quick, first': { seconds: 270, lines: 420 },
  'browser core, quick': { seconds: 40 },
  'browser core, release, first': { seconds: 720, lines: 330 },
  'browser core, release': { seconds: 400 },
  'compile Rust, first': { seconds: 900, lines: 520 },
  'compile Rust': { seconds: 40 },
  'compile the CUDA witness, first': { seconds: 420, lines: 400 },
  'compile the CUDA witness': { seconds: 60 },
  'demo server': { seconds: 2 },
  'test lint, first': { seconds: 900 },
  'test lint': { seconds: 40 },
  'test rust, first': { seconds: 1500 },
  'test rust': { seconds: 400 },
  'test web, first': { seconds: 600 },
  'test web': { seconds: 60 },
  'test browser, first': { seconds: 1700 },
  'test browser': { seconds: 600 },
};
const LAST_RUNS = join(cacheDir, 'stage-times.json');
/** How often the time is shown: on a terminal in a line that is rewritten, in a log as a new line. */
const [TERMINAL_MILLIS, LOG_MILLIS] = [1000, 30_000];

/** Minimum progress from which the duration of a stage can be estimated. */
const TELLING_PROGRESS = 0.1;

/** Number of lines shown after a failure: a compiler reports the error at the end. */
const SHOWN_LINES = 200;

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

function lastRuns() {
  try {
    return JSON.parse(readFileSync(LAST_RUNS, 'utf8'));
  } catch {
    // Timings only improve the display; without them the table is used.
    return {};
  }
}

function remember(key, seconds, lines) {
  mkdirSync(cacheDir, { recursive: true });
  writeFileSync(LAST_RUNS, `${JSON.stringify({ ...lastRuns(), [key]: { seconds: Math.round(seconds), lines } }, null, 2)}\n`);
}

/**
 * Returns the expected duration of a stage, in words: the last duration, corrected by the progress. `progress` is from 0 to 1 or undefined; an
 * estimate that has passed is not repeated.
 * @param {{ seconds: number, last?: number, usual?: number, progress?: number }} stage
 */
export function outlook({ seconds, last, usual, progress }) {
  const before = last ?? usual;
  if (before === undefined) return '';
  const byProgress = progress !== undefined && progress >= TELLING_PROGRESS ? seconds / progress : 0;
  const total = Math.max(byProgress, seconds < before ? before : seconds * 1.1);
  const corrected = total > before * 1.1 ? ` (${clock(before)} ${last === undefined ? 'on a quiet machine' : 'last time'})` : '';
  return ` of about ${clock(total)}${corrected}`;
}

/** A stage that failed, after its output and its advice were shown. */
export class StageError extends Error {}

/** Work in these stages, which may overlap. With `alone` nothing else writes while they run, so that a terminal's line can be rewritten. */
export class Stages {
  #names;
  #rewrites;
  #running = new Map();
  #timer;

  /** @param {string[]} names @param {{ alone?: boolean }} options */
  constructor(names, { alone = true } = {}) {
    this.#names = names;
    this.#rewrites = alone && process.stdout.isTTY === true;
  }

  #label(name) {
    const index = this.#names.indexOf(name);
    if (index < 0) throw new Error(`stage: expected one of ${this.#names.join(', ')}, found ${name}`);
    return `[${index + 1}/${this.#names.length}] ${name}`;
  }

  #print(line) {
    process.stdout.write(`${this.#rewrites ? '\r\x1b[K' : ''}${line}\n`);
  }

  #show() {
    const lines = [...this.#running.values()].map(({ label, started, last, usual, output, progress, detail }) => {
      const seconds = (Date.now() - started) / 1000;
      const count = last?.lines ?? usual?.lines;
      const known = progress ?? (count > 0 ? Math.min(output.length / count, 1) : undefined);
      const expectation = outlook({ seconds, last: last?.seconds, usual: usual?.seconds, progress: known });
      return `${label}: ${clock(seconds)}${expectation}${detail ? `, ${detail}` : ''}`;
    });
    if (this.#rewrites) process.stdout.write(`\r\x1b[K${lines.join(' | ').slice(0, (process.stdout.columns || 80) - 1)}`);
    else lines.forEach((line) => this.#print(line));
  }

  /** Marks a stage that has nothing left to do. @param {string} name @param {string} why */
  done(name, why) {
    this.#print(`${this.#label(name)}: ${why}`);
  }

  /**
   * Runs `work`, which receives a function that takes lines of output and the progress of the stage, from 0 to 1, if it is known. The last line is
   * shown with the time, and the last lines after a failure. `key` distinguishes variants of a stage (`first`); `advice` says what to do when it
   * fails.
   * @template T
   * @param {string} name @param {{ key?: string, advice: string }} options
   * @param {(onLine: (line: string, progress?: number) => void) => Promise<T>} work @returns {Promise<T>}
   */
  async run(name, { key = name, advice }, work) {
    const label = this.#label(name);
    const output = [];
    const progress = /** @type {number | undefined} */ (undefined);
    const stage = { label, started: Date.now(), last: lastRuns()[key], usual: EXPECTED[key], output, progress, detail: '' };
    const expected = stage.last?.seconds ?? stage.usual?.seconds;
    this.#running.set(name, stage);
    this.#timer ??= setInterval(() => this.#show(), this.#rewrites ? TERMINAL_MILLIS : LOG_MILLIS);
    if (!this.#rewrites)
      this.#print(`${label}${expected === undefined ? '' : `: about ${clock(expected)}${stage.last ? ', as last time' : ''}`}`);
    const seconds = () => (Date.now() - stage.started) / 1000;
    try {
      const result = await work((line, progress) => {
        output.push(line);
        stage.detail = line.trim();
        stage.progress = progress;
      });
      this.#print(`${label}: done in ${clock(seconds())}`);
      remember(key, seconds(), output.length);
      return result;
    } catch (error) {
      if (error instanceof StageError) {
        this.#print(`${label}: ended, since ${error.message}`);
        throw error;
      }
      output.slice(-SHOWN_LINES).forEach((line) => this.#print(line));
      this.#print(`${label}: FAILED after ${clock(seconds())}: ${error.message}\n  What to do: ${advice}`);
      throw new StageError(`${name} failed`, { cause: error });
    } finally {
      this.#running.delete(name);
      if (this.#running.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
    }
  }
}
