// npm test: sets up missing prerequisites, then runs lint, Rust tests, TypeScript tests and tests in a real browser.
//   node tests/run.mjs [lint|rust|web|browser|release ...]
// By default the first four, and `release` if the release core of these sources exists: compiling it takes longer than all
// the rest. Lint and the TypeScript tests run while the compilers do; the tests in a browser follow those in Rust, since
// both use all cores. Every part runs even if another one failed. The last line counts all of them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STAGES, buildWasm, coreIsThere } from '../web/build-wasm.mjs';
import { setup, setupCompiler, setupStages } from '../web/setup.mjs';
import { StageError, Stages, messageOf } from '../web/stages.mjs';
import { cacheDir, line, missingFirefox, root, run } from '../web/toolchain.mjs';
import { AT_ONCE, add, atOnce, inWords, reported } from './counts.mjs';
import { compileNative, docTests, groupsOf, program, runGroup } from './rust.mjs';

/** @typedef {import('./counts.mjs').Result} Result @typedef {(line: string) => void} OnLine @typedef {'quick' | 'release'} Kind */
/** @typedef {{ rust: RegExp, docs: string[], web: string[], browser: string[] }} Subset */
/** @typedef {{ onLine: OnLine, native?: ReturnType<typeof compileNative>, explicit: boolean, subset?: Subset }} Given */

/** Folder of kernel cases that the Rust tests write and the browser tests run again. */
const casesDir = process.env.TABTUNE_CASES || join(cacheDir, 'cases');
const COMPILE = 'compile Rust';
const ADVICE = 'mend what the compiler says above and run this again: what was compiled is kept.';
const scratch = mkdtempSync(join(tmpdir(), 'tabtune-test-'));
/** Commands that lint runs in addition to Clippy. */
const CHECKS = {
  'cargo fmt': line`cargo fmt --all --check`,
  'cargo fmt of web/bindgen': line`cargo fmt --all --check --manifest-path web/bindgen/Cargo.toml`,
  'cargo fmt of native-runner/cuda': line`cargo fmt --all --check --manifest-path native-runner/cuda/Cargo.toml`,
  'unrolled shaders': line`node shaders/blocks.mjs --check`,
  'npm run check': line`npm run --silent check`,
};
/** The first compiles Burn again, with an additional backend; the second checks all dependencies, for rustdoc. */
const RELEASE_CHECKS = {
  'a backend without our kernels is refused': line`cargo test --locked -p tabtune-tests --features foreign-backend --test suite without_these_kernels`,
  'documentation without warnings': line`cargo doc --locked --no-deps -p tabtune -p tabtune-shaders`,
};

/**
 * Tests of several parts that belong together: groups of Rust's tests, and words in the names of its examples, of vitest's files and of Playwright's.
 * @type {Record<string, Subset>}
 */
const SUBSETS = {
  portable: {
    rust: /^(portable::|bundle::requests$|cli::deltas$|cli::states$)/,
    docs: ['portable', 'state'],
    web: ['deltas', 'digests', 'extraction'],
    browser: ['state.test', 'deltas.test', 'model-io'],
  },
};

/** Returns the result of a check that passes or fails as a whole. @param {string} name @param {boolean} good @returns {Result} */
function verdict(name, good) {
  console.log(`${name}: ${good ? 'ok' : 'FAILED'}`);
  return { passed: Number(good), failed: Number(!good) };
}

/** Returns a job for each command, which is a check. @param {Record<string, ReturnType<typeof line>>} commands @param {NodeJS.ProcessEnv} [env] */
const checks = (commands, env = {}) =>
  Object.entries(commands).map(([name, command]) => async () => {
    const code = await run(...command, { allowFailure: true, env });
    return verdict(name, code === 0);
  });

/** Builds the package and the demo with a core, for the browser tests. @param {Kind} kind */
function buildPackage(kind) {
  const env = { TABTUNE_CORE: kind };
  return Promise.all([
    run(...line`node web/build-package.mjs`, { env }),
    run(...line`vite build --config web/vite.config.ts --logLevel warn`, { env }),
  ]);
}

/** Runs projects of Playwright Test, or the files in them that words name. @param {Kind} kind @param {string[]} projects @param {OnLine} onLine */
async function playwright(kind, projects, onLine, words = /** @type {string[]} */ ([])) {
  const report = join(scratch, `${kind}.json`);
  const env = {
    TABTUNE_CORE: kind,
    TABTUNE_CASES: casesDir,
    TABTUNE: program,
    PLAYWRIGHT_JSON_OUTPUT_FILE: report,
  };
  const asked = line`playwright test --config tests --reporter list,json --output ${join(scratch, kind)} ${words} --project ${projects}`;
  const code = await run(...asked, { allowFailure: true, onLine, env });
  return reported(report, code, ({ stats, errors }) => ({
    passed: stats.expected,
    failed: stats.unexpected + errors.length,
    skipped: stats.skipped,
  }));
}

const parts = {
  /** @param {Given} given */
  async lint({ onLine, native }) {
    const results = await atOnce(2, checks(CHECKS));
    onLine(`waits for ${COMPILE}`);
    const compiled = await native?.catch(() => undefined);
    compiled?.warnings.forEach((line) => console.log(line));
    return add(...results, verdict('clippy', compiled?.warnings.length === 0));
  },

  /** @param {Given} given */
  async rust({ onLine, native, subset }) {
    const all = await groupsOf((await native)?.binaries ?? []);
    const groups = subset ? all.filter(({ key }) => subset.rust.test(key)) : all;
    if (!subset) rmSync(casesDir, { recursive: true, force: true });
    const env = { REQUIRE_GPU: '1', TABTUNE_CASES: casesDir, TABTUNE: program };
    const short = {
      'bytes that other programs were seen to read': line`node tests/torture/consumers.mjs --short`,
    };
    const jobs = [
      () => docTests(subset?.docs),
      ...groups.map((group) => () => runGroup(group, env)),
      ...(subset ? [] : checks(short, env)),
    ];
    return add(
      ...(await atOnce(AT_ONCE, jobs, (ended) => onLine(`${ended} of ${jobs.length} groups done`))),
    );
  },

  /** @param {Given} given */
  async web({ subset }) {
    const report = join(scratch, 'vitest.json');
    const asked = line`vitest run --config web/vitest.config.ts --reporter default --reporter json --outputFile.json ${report} ${subset?.web ?? []}`;
    const code = await run(...asked, { allowFailure: true });
    return reported(report, code, ({ numPassedTests, numFailedTests }) => ({
      passed: numPassedTests,
      failed: numFailedTests,
    }));
  },

  /** @param {Given} given */
  browser: ({ onLine, subset }) =>
    playwright('quick', ['with-program', 'browser'], onLine, subset?.browser),

  /** @param {Given} given */
  async release({ onLine, explicit }) {
    const checked = explicit ? checks(RELEASE_CHECKS, { RUSTDOCFLAGS: '-D warnings' }) : [];
    return add(...(await atOnce(1, checked)), await playwright('release', ['release'], onLine));
  },
};
const PARTS = /** @type {(keyof typeof parts)[]} */ (Object.keys(parts));

/**
 * Returns the results of a part, once `needed` is there; it fails as a whole if it could not be run.
 * @param {keyof typeof parts} name @param {Stages} stages @param {unknown} needed @param {Omit<Given, 'onLine'>} given
 */
async function runPart(name, stages, needed, given) {
  const advice = `the lines above say what failed. node tests/run.mjs ${name} repeats this part alone.`;
  let started = Date.now();
  let result = { passed: 0, failed: 1 };
  try {
    await needed;
    started = Date.now();
    result = await stages.run(name, advice, (onLine) => parts[name]({ ...given, onLine }));
    if (result.failed > 0) console.log(`${name}: ${result.failed} failed. What to do: ${advice}`);
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`${name}: ${messageOf(error)}`);
  }
  return { name, seconds: ((Date.now() - started) / 1000).toFixed(0), ...result };
}

async function main() {
  const asked = process.argv.slice(2);
  const known = [...PARTS, ...Object.keys(SUBSETS)];
  const unknown = asked.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`unknown part ${unknown.join(', ')}; there are ${known.join(', ')}`);
  const explicit = asked.length > 0;
  const subset = asked.map((name) => SUBSETS[name]).find(Boolean);
  const names = PARTS.filter((name) =>
    explicit
      ? asked.includes(name) || (subset && name in subset)
      : name !== 'release' || coreIsThere('release'),
  );
  const used = (/** @type {typeof PARTS} */ ...by) => by.some((name) => names.includes(name));
  /** @type {Record<string, boolean>} */
  const wanted = {
    [STAGES.quick]: used('browser', 'release'),
    [COMPILE]: used('lint', 'rust', 'browser'),
    [STAGES.release]: used('release'),
  };
  const compiled = Object.keys(wanted).filter((name) => wanted[name]);
  const stages = new Stages([...setupStages('tests'), ...compiled, ...names], { alone: false });
  await setupCompiler();
  // Compilers need only wasm-bindgen from setup, and only at the end.
  const ready = setup('tests', stages);
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  /**
   * Runs one compiler after another, even if one failed: they share macros and build scripts, so that Cargo runs one at a time.
   * @template T
   * @param {string} stage @param {() => Promise<T>} work
   */
  const compiling = (stage, work) => {
    const result = wanted[stage] ? last.then(work) : undefined;
    last = Promise.allSettled([last, result]);
    return result;
  };
  const quick = compiling(STAGES.quick, () => buildWasm('quick', stages, ready));
  const native = compiling(COMPILE, () => stages.run(COMPILE, ADVICE, compileNative));
  const released = compiling(STAGES.release, () => buildWasm('release', stages, ready));
  const packages = [
    Promise.all([quick, ready]).then(() => quick && buildPackage('quick')),
    Promise.all([released, ready]).then(() => released && buildPackage('release')),
  ];
  // The parts that wait for them report their errors.
  for (const each of packages) each.catch(() => undefined);
  await ready;
  /** @type {Map<string, ReturnType<typeof runPart>>} */
  const running = new Map();
  const needed = {
    lint: () => undefined,
    rust: () => native,
    web: () => undefined,
    browser: () => Promise.all([packages[0], native?.catch(() => undefined), running.get('rust')]),
    release: () => Promise.all([...packages, ...running.values()]),
  };
  for (const name of names)
    running.set(name, runPart(name, stages, needed[name](), { native, explicit, subset }));
  const results = await Promise.all(running.values());
  console.log('');
  if (!released)
    console.log(
      'release: not tested, since no released core of these sources is there; npm run release-check makes it',
    );
  const missing = names.includes('browser') && missingFirefox();
  if (missing) console.log(`Firefox: NOT TESTED, its tests are skipped: ${missing}`);
  for (const { name, seconds, ...result } of results)
    console.log(`${name}: ${inWords(result)} (${seconds} s)`);
  const total = add(...results);
  console.log(inWords(total));
  return total.failed === 0 ? 0 : 1;
}

try {
  process.chdir(root);
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof StageError)) console.error(`test: ${messageOf(error)}`);
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
