// A browser with a profile, a site, and pages with a trainer under test; failures are counted, not thrown.
import { test } from '@playwright/test';
import { Browser, inModule } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';
import { built } from '../../web/core-kind.mjs';

/**
 * The setting that all parts train: small enough for tens of steps per second on a software adapter, and for a quick start, most of which is the
 * compilation of kernels: short sequences use attention's kernels by rows, 28 characters no product of odd widths.
 */
const OLD = process.env.TABTUNE_OLD === '1';
export const TINY = {
  shape: {
    hiddenSize: 16,
    numHiddenLayers: 1,
    numAttentionHeads: 2,
    numKeyValueHeads: 1,
    maxPositionEmbeddings: 16,
  },
  text: 'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. Why not? '.repeat(
    20,
  ),
  options: {
    steps: 4000,
    batchSize: 2,
    seqLen: 3,
    gradientAccumulationSteps: 2,
    learningRate: 3e-3,
    seed: 7,
    validationFraction: 0.1,
    logEvery: 1,
    ...(OLD ? {} : { autosave: false }),
  },
};

/** Counts for each fault: number of times it was caused, number of times that the requirements held, the worst time. */
export class Tally {
  rows = new Map();
  failures = [];

  /** Adds an outcome. `wrong` lists the violated requirements; an empty list is a success. */
  add(fault, wrong, ms, bound) {
    const row = this.rows.get(fault) ?? { fault, times: 0, held: 0, worst: 0, bound };
    const late =
      bound !== undefined && ms > bound ? [`${Math.round(ms)} ms, bound ${bound} ms`] : [];
    const all = [...wrong, ...late];
    row.times++;
    if (all.length === 0) row.held++;
    else this.failures.push(`${fault} (${row.times}): ${all.join('; ')}`);
    row.worst = Math.max(row.worst, ms ?? 0);
    this.rows.set(fault, row);
    if (process.env.TORTURE_LOUD)
      console.log(
        `${fault}: ${all.length === 0 ? 'held' : all.join('; ')} (${Math.round(ms ?? 0)} ms)`,
      );
  }

  /** Returns a row for each fault. */
  results() {
    return [...this.rows.values()].map(({ fault, times, held, worst, note }) => [
      fault,
      times,
      held,
      worst ? Math.round(worst) : null,
      note ?? '',
    ]);
  }

  /** Prints a line for each fault. */
  print() {
    for (const { fault, times, held, worst, note } of this.rows.values()) {
      const figures = `${held} of ${times}${worst ? `, worst ${Math.round(worst)} ms` : ''}${note ? `; ${note}` : ''}`;
      console.log(`${held === times ? 'ok    ' : 'FAILED'} ${fault}: ${figures}`);
    }
  }

  /** Adds a figure to the row. */
  note(fault, words) {
    const row = this.rows.get(fault);
    if (row) row.note = words;
  }
}

/** Returns the differences in words; nothing if all is equal. */
export function differences(what, found, expected) {
  const [f, e] = [JSON.stringify(found), JSON.stringify(expected)];
  return f === e ? [] : [`${what}: expected ${e?.slice(0, 300)}, found ${f?.slice(0, 300)}`];
}

/** A page with the module `subject.mjs`; `saved` lists the saves that it acknowledged outside of the browser. */
export class Subject {
  saved = [];

  constructor(page, record) {
    this.page = page;
    this.record = record;
    page.on('console', (message) => {
      const words = message.text();
      if (words.startsWith('saved ')) this.saved.push(JSON.parse(words.slice('saved '.length)));
    });
  }

  /**
   * Runs `work(subject, argument)` in the page.
   * @template [A=null] @template [R=any]
   * @param {string | ((s: typeof import('./in-browser/subject.mjs'), argument: A) => R)} work @param {A} [argument]
   * @returns {Promise<Awaited<R>>}
   */
  do(work, argument) {
    return inModule(this.page, '/torture/subject.mjs', /** @type {any} */ (work), argument);
  }

  /** Waits in the page until `test(timeline, argument)` is true for the recorded events. */
  async until(test, argument, millis = 60_000) {
    const wait = `async (s, argument) => {
      const test = ${test};
      for (const end = performance.now() + ${millis}; !test(s.timeline, argument); ) {
        if (performance.now() > end) throw new Error('waited in vain for ' + test + ': ' + JSON.stringify(s.timeline.slice(-12)));
        await new Promise((done) => setTimeout(done, 10));
      }
    }`;
    await this.do(wait, argument);
  }

  close() {
    return this.page.close();
  }
}

/** Unbroken runs by their setting, and the steps and digests of the smallest one that nearly every part needs. */
const truths = new Map();
const TINY_STEPS = 40;
const TINY_DIGESTS = [5, 6];

/** The package, and the modules that run in the page and in its worker. */
export const FOLDERS = {
  '/dist/': process.env.TABTUNE_DIST || built.package,
  '/torture/': 'tests/torture/in-browser',
};

/** @typedef {{ flags?: string[], profile?: string, folders?: Record<string, string> }} ArenaOptions */

export class Arena {
  site = /** @type {Awaited<ReturnType<typeof serve>>} */ (/** @type {unknown} */ (undefined));
  browser = /** @type {Browser} */ (/** @type {unknown} */ (undefined));

  /**
   * Starts an arena; `folders` are served in addition to the package and the page's module.
   * @param {ArenaOptions} [options]
   */
  static async start(options) {
    const arena = new Arena();
    await arena.open(options);
    return arena;
  }

  /**
   * Returns an arena that is open while the tests of a file run; `options` may prepare what they name.
   * @param {ArenaOptions | (() => ArenaOptions | Promise<ArenaOptions>)} options
   */
  static ofTests(options = {}) {
    const arena = new Arena();
    test.beforeAll(async () =>
      arena.open(typeof options === 'function' ? await options() : options),
    );
    test.afterAll(() => arena.end());
    return arena;
  }

  /** @param {ArenaOptions} options */
  async open({ flags, profile, folders = {} } = {}) {
    this.site = await serve({ ...FOLDERS, ...folders });
    this.browser = await Browser.launch(flags, { profile });
  }

  async subject() {
    const { page, record } = await this.browser.open(`${this.site.url}/`);
    return new Subject(page, record);
  }

  /** Opens a page for `work`, and closes it in any case. @template R @param {(subject: Subject) => Promise<R>} work */
  async with(work) {
    const subject = await this.subject();
    try {
      return await work(subject);
    } finally {
      await subject.close().catch(() => undefined);
    }
  }

  /**
   * Runs `work(subject, argument)` in a new page.
   * @template [A=null] @template [R=any]
   * @param {(s: typeof import('./in-browser/subject.mjs'), argument: A) => R} work @param {A} [argument]
   */
  inPage(work, argument) {
    return this.with((subject) => subject.do(work, argument));
  }

  /**
   * Returns the losses of the first steps of an unbroken run, and digests of its exported weights after each step in `at`. Made once for all parts.
   */
  async truth(setting, count, at = []) {
    const key = JSON.stringify(setting);
    const known = truths.get(key);
    if (known && known.losses.length > count && at.every((step) => step in known.digests))
      return known;
    const made = await this.with((subject) =>
      subject.do(
        async (s, { setting, count, at }) => {
          await s.create(setting);
          const losses = [0];
          const digests = {};
          for (const stop of [...new Set([...at, count])].sort((a, b) => a - b)) {
            if (stop > losses.length - 1)
              losses.push(...(await s.step(stop - (losses.length - 1))));
            if (at.includes(stop)) digests[stop] = await s.digests();
          }
          await s.current().dispose();
          return { losses, digests };
        },
        setting === TINY
          ? {
              setting,
              count: Math.max(count, TINY_STEPS),
              at: [...new Set([...at, ...TINY_DIGESTS])],
            }
          : { setting, count, at },
      ),
    );
    truths.set(key, made);
    return made;
  }

  /** Returns browser and adapter, for the table. */
  async machine() {
    const adapter = await this.with((subject) =>
      subject.do(async (s) => (await s.tabtune.support()).adapter),
    );
    return {
      browser: this.browser.version,
      adapter:
        adapter?.description || [adapter?.vendor, adapter?.architecture].filter(Boolean).join(' '),
    };
  }

  async end() {
    await this.browser?.close().catch(() => undefined);
    await this.site?.close();
  }
}

/** Returns the faults in the losses that a page reported, compared with those of the unbroken run. */
export async function lossFaults(subject, truth, last) {
  const { found, changed } = await subject.do((s) => s.losses());
  const wrong = changed.map((step) => `step ${step} was reported with two losses`);
  for (const [step, loss] of Object.entries(found)) {
    if (truth.losses[step] !== loss)
      wrong.push(`loss of step ${step} is ${loss}, unbroken ${truth.losses[step]}`);
  }
  if (last !== undefined && !(last in found)) wrong.push(`step ${last} was not reported`);
  return wrong;
}

/** Returns the requirements that are violated by a run as a new page found it (`takenUp` of the page), in words. */
export function violations(found, acknowledged, truth) {
  if (!found.resumed.ok) return [`resume: ${found.resumed.code} ${found.resumed.word}`];
  const wrong = found.torn.map((generation) => `generation ${generation} is torn`);
  const step = found.resumed.value;
  if (step < acknowledged) wrong.push(`step ${acknowledged} was acknowledged, found ${step}`);
  return [
    ...wrong,
    ...differences('next losses', found.losses, truth.losses.slice(step + 1, step + 3)),
  ];
}
