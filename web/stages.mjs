// Stages of long work, displayed so that no one wonders: the number of the stage, the time so far, how far it is, and advice after a failure. No
// duration is promised: that of a compiler depends on what it finds compiled.

/** How often the time is shown: on a terminal in a line that is rewritten, in a log as a new line. */
const [TERMINAL_MILLIS, LOG_MILLIS] = [1000, 30_000];
/** Number of lines shown after a failure: a compiler reports the error at the end. */
const SHOWN_LINES = 200;
/** Cargo's own progress, which `toolchain.mjs` asks for: `Building [==>   ] 3/10: tabtune`. */
const CRATES = /^ *Building \[.*\] (\d+)\/(\d+)/;

/** @param {number} millis */
const clock = (millis) =>
  `${Math.floor(millis / 60_000)}:${String(Math.floor(millis / 1000) % 60).padStart(2, '0')}`;
/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** A stage that failed, after its output and its advice were shown. */
export class StageError extends Error {}

/** Work in these stages, which may overlap. With `alone` nothing else writes while they run, so that a terminal's line can be rewritten. */
export class Stages {
  #names;
  #rewrites;
  /** The line of each running stage. @type {Map<string, () => string>} */
  #running = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {readonly string[]} names @param {{ alone?: boolean }} [options] */
  constructor(names, { alone = true } = {}) {
    this.#names = names;
    this.#rewrites = alone && process.stdout.isTTY === true;
  }

  /** @param {string} name */
  #label(name) {
    const index = this.#names.indexOf(name);
    if (index < 0)
      throw new Error(`stage: expected one of ${this.#names.join(', ')}, found ${name}`);
    return `[${index + 1}/${this.#names.length}] ${name}`;
  }

  /** @param {string} line */
  #print(line) {
    process.stdout.write(`${this.#rewrites ? '\r\x1b[K' : ''}${line}\n`);
  }

  #show() {
    const lines = [...this.#running.values()].map((line) => line());
    if (this.#rewrites)
      process.stdout.write(
        `\r\x1b[K${lines.join(' | ').slice(0, (process.stdout.columns || 80) - 1)}`,
      );
    else lines.forEach((line) => this.#print(line));
  }

  /** Marks a stage that has nothing left to do. @param {string} name @param {string} why */
  done(name, why) {
    this.#print(`${this.#label(name)}: ${why}`);
  }

  /**
   * Runs `work`, which receives a function that takes lines of output. The last line is shown with the time, and the last lines after a failure, with
   * `advice`.
   * @template T
   * @param {string} name @param {string} advice @param {(onLine: (line: string) => void) => Promise<T>} work @returns {Promise<T>}
   */
  async run(name, advice, work) {
    const label = this.#label(name);
    const started = Date.now();
    const time = () => clock(Date.now() - started);
    /** @type {string[]} */
    const output = [];
    let [crates, last] = ['', ''];
    this.#running.set(name, () => [`${label}: ${time()}`, crates, last].filter(Boolean).join(', '));
    this.#timer ??= setInterval(() => this.#show(), this.#rewrites ? TERMINAL_MILLIS : LOG_MILLIS);
    if (!this.#rewrites) this.#print(label);
    try {
      const result = await work((line) => {
        const [, done, all] = CRATES.exec(line) ?? [];
        if (all) return void (crates = `${done} of ${all} crates`);
        output.push(line);
        last = line.trim();
      });
      this.#print(`${label}: done in ${time()}`);
      return result;
    } catch (error) {
      if (error instanceof StageError) {
        this.#print(`${label}: ended, since ${error.message}`);
        throw error;
      }
      output.slice(-SHOWN_LINES).forEach((line) => this.#print(line));
      this.#print(`${label}: FAILED after ${time()}: ${messageOf(error)}\n  What to do: ${advice}`);
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

/**
 * Runs a script's work, whose result is the exit code; an error that no stage has shown is printed.
 * @param {string} name @param {() => Promise<number | void>} work
 */
export async function script(name, work) {
  try {
    process.exitCode = (await work()) ?? 0;
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`${name}: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}
