// Stages of long work, so that nobody wonders: which of how many, the time so far, the time expected, and what to do when one fails.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from './toolchain.mjs';

/** Seconds on two quiet cores and a fast line, until this machine has figures of its own. `first` compiles all dependencies. */
const EXPECTED = {
  'npm packages': 15,
  'wasm-bindgen': 40,
  'browser and driver': 60,
  'browser core, quick, first': 300,
  'browser core, quick': 40,
  'browser core, release, first': 720,
  'browser core, release': 400,
  'demo server': 2,
  'test lint, first': 1200,
  'test lint': 40,
  'test rust, first': 300,
  'test rust': 240,
  'test web': 20,
  'test browser': 300,
};
const LAST_RUNS = join(cacheDir, 'stages.json');
/** How often the time is shown: on a terminal in a line that is written again, in a log by a line each. */
const [TERMINAL_MILLIS, LOG_MILLIS] = [1000, 30_000];

/** A compiler says what is wrong at the end. */
const SHOWN_LINES = 200;

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

function lastRuns() {
  try {
    return JSON.parse(readFileSync(LAST_RUNS, 'utf8'));
  } catch {
    // Figures to show, nothing else: without them the table serves.
    return {};
  }
}

function remember(key, seconds) {
  mkdirSync(cacheDir, { recursive: true });
  writeFileSync(LAST_RUNS, `${JSON.stringify({ ...lastRuns(), [key]: Math.round(seconds) }, null, 2)}\n`);
}

/** A stage that failed, after its output and its advice were shown. */
export class StageError extends Error {}

/** What is done in these stages; they may overlap. `alone`: nothing else writes while they run, so that a terminal's line can be rewritten. */
export class Stages {
  #names;
  #rewrites;
  #running = new Map();
  #timer;

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
    const lines = [...this.#running.values()].map(({ label, started, expected, detail }) => {
      const expectation = expected === undefined ? '' : ` of about ${clock(expected)}`;
      return `${label}: ${clock((Date.now() - started) / 1000)}${expectation}${detail ? `, ${detail}` : ''}`;
    });
    if (this.#rewrites) process.stdout.write(`\r\x1b[K${lines.join(' | ').slice(0, (process.stdout.columns || 80) - 1)}`);
    else lines.forEach((line) => this.#print(line));
  }

  /** Nothing is left to do for this stage. */
  done(name, why) {
    this.#print(`${this.#label(name)}: ${why}`);
  }

  /**
   * Runs `work`, which gets a function that takes lines of output: the last one is shown beside the time, the end of
   * them after a failure. `key` tells apart how the same stage can go (`first`); `advice` says what to do when it fails.
   */
  async run(name, { key = name, advice }, work) {
    const label = this.#label(name);
    const output = [];
    const stage = { label, started: Date.now(), expected: lastRuns()[key] ?? EXPECTED[key], detail: '' };
    this.#running.set(name, stage);
    this.#timer ??= setInterval(() => this.#show(), this.#rewrites ? TERMINAL_MILLIS : LOG_MILLIS);
    if (!this.#rewrites) this.#print(`${label}${stage.expected === undefined ? '' : `: about ${clock(stage.expected)}`}`);
    const seconds = () => (Date.now() - stage.started) / 1000;
    try {
      const result = await work((line) => {
        output.push(line);
        stage.detail = line.trim();
      });
      this.#print(`${label}: done in ${clock(seconds())}`);
      remember(key, seconds());
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
