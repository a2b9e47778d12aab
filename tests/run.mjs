// npm test: sets up missing prerequisites, then runs lint, Rust tests, TypeScript tests and tests in a real browser.
//   node tests/run.mjs [lint|rust|web|browser|release ...]     by default the first four, and `release` if the release core of these
//                                                              sources already exists: compiling it takes longer than everything else
// Lint and the TypeScript tests run while the compilers do; the tests in a browser follow those in Rust, since both use all cores. Every part runs even
// if another one failed. The last line counts all of them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STAGES, buildWasm, coreIsThere } from '../web/build-wasm.mjs';
import { setup, setupCompiler, setupStages } from '../web/setup.mjs';
import { StageError, Stages, messageOf } from '../web/stages.mjs';
import { cacheDir, root, run } from '../web/toolchain.mjs';
import { AT_ONCE, add, atOnce, reported } from './counts.mjs';
import { compileNative, docTests, groupsOf, program, runGroup } from './rust.mjs';

/**
 * @typedef {import('./counts.mjs').Result} Result
 * @typedef {(line: string) => void} OnLine
 * @typedef {ReturnType<typeof compileNative>} Native
 * @typedef {'lint' | 'rust' | 'web' | 'browser' | 'release'} Part
 */

/** Folder of kernel cases that the Rust tests write and the browser tests run again. */
const casesDir = process.env.TABTUNE_CASES || join(cacheDir, 'cases');
const COMPILE = 'compile Rust';
const scratch = mkdtempSync(join(tmpdir(), 'tabtune-test-'));
/** TypeScript's own compiler: the one of node_modules/.bin is that of `old-typescript`. */
const TSC = [process.execPath, 'node_modules/typescript/bin/tsc'];
/** What lint runs in addition to Clippy: its name, a command and its arguments. */
const CHECKS = [
  ['cargo fmt', 'cargo', 'fmt', '--all', '--check'],
  ...['web/bindgen', 'native-runner/cuda'].map((folder) => [
    ...[`cargo fmt of ${folder}`, 'cargo', 'fmt', '--all', '--manifest-path', `${folder}/Cargo.toml`, '--check'],
  ]),
  ['licences', process.execPath, 'web/licences.mjs', '--check'],
  ['unrolled shaders', process.execPath, 'shaders/blocks.mjs', '--check'],
  ['prettier', 'prettier', '--check', '--log-level', 'warn', '--cache', '.'],
  ['tsc', ...TSC],
  ['tsc of the scripts', ...TSC, '--project', 'tsconfig.scripts.json'],
  ['eslint', 'eslint', '.'],
];
/** The first compiles Burn again, with an additional backend; the second checks all dependencies, for rustdoc. */
const RELEASE_CHECKS = [
  [
    ...['a backend without our kernels is refused', 'cargo', 'test', '--locked', '-p', 'tabtune-tests', '--features', 'foreign-backend'],
    ...['--test', 'suite', '--', 'without_these_kernels'],
  ],
  ['documentation without warnings', 'cargo', 'doc', '--locked', '--no-deps', '-p', 'tabtune', '-p', 'tabtune-shaders'],
];

/** @param {string} name @param {boolean} good @returns {Result} */
function verdict(name, good) {
  console.log(`${name}: ${good ? 'ok' : 'FAILED'}`);
  return good ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** Runs one check that passes or fails as a whole. @param {readonly string[]} check @param {NodeJS.ProcessEnv} [env] */
const check = async ([name = '', command = '', ...args], env = {}) =>
  verdict(name, (await run(command, args, { allowFailure: true, env })) === 0);

/** Builds the package and the demo with a core, for the browser tests. @param {'quick' | 'release'} kind */
async function buildPackage(kind) {
  const env = { TABTUNE_CORE: kind };
  await Promise.all([
    run(process.execPath, [join('web', 'build-package.mjs')], { env }),
    run('vite', ['build', '--config', join('web', 'vite.config.ts'), '--logLevel', 'warn'], { env }),
  ]);
}

/** Runs projects of Playwright Test. @param {'quick' | 'release'} kind @param {string[]} projects @param {OnLine} onLine */
async function playwright(kind, projects, onLine) {
  const report = join(scratch, `${kind}.json`);
  const options = ['--config', 'tests', '--reporter', 'list,json', '--output', join(scratch, kind)];
  const code = await run('playwright', ['test', ...options, ...projects.map((name) => `--project=${name}`)], {
    allowFailure: true,
    onLine,
    env: { TABTUNE_CORE: kind, TABTUNE_CASES: casesDir, TABTUNE: program, PLAYWRIGHT_JSON_OUTPUT_FILE: report },
  });
  return reported(report, code, ({ stats, errors }) => ({ passed: stats.expected, failed: stats.unexpected + errors.length }));
}

/** @type {Record<Part, (onLine: OnLine, native: Native | undefined, explicit: boolean) => Promise<Result>>} */
const parts = {
  async lint(onLine, native) {
    const results = await atOnce(
      2,
      CHECKS.map((each) => () => check(each)),
    );
    onLine(`waits for ${COMPILE}`);
    const compiled = await native?.catch(() => undefined);
    compiled?.warnings.forEach((line) => console.log(line));
    return add(...results, verdict('clippy', compiled?.warnings.length === 0));
  },

  async rust(onLine, native) {
    const groups = await groupsOf((await native)?.binaries ?? []);
    rmSync(casesDir, { recursive: true, force: true });
    const env = { REQUIRE_GPU: '1', TABTUNE_CASES: casesDir, TABTUNE: program };
    const known = ['bytes that other programs were seen to read', process.execPath, 'tests/torture/consumers.mjs', '--short'];
    const jobs = [docTests, ...groups.map((group) => () => runGroup(group, env)), () => check(known, { TABTUNE: program })];
    let ended = 0;
    const count = (/** @type {Result} */ result) => {
      onLine(`${++ended} of ${jobs.length} groups of tests done`);
      return result;
    };
    return add(
      ...(await atOnce(
        AT_ONCE,
        jobs.map((job) => () => job().then(count)),
      )),
    );
  },

  async web() {
    const report = join(scratch, 'vitest.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await run('vitest', ['run', '--config', 'web/vitest.config.ts', ...reporters], { allowFailure: true });
    return reported(report, code, ({ numPassedTests, numFailedTests }) => ({ passed: numPassedTests, failed: numFailedTests }));
  },

  browser: (onLine) => playwright('quick', ['with-program', 'browser'], onLine),

  async release(onLine, _, explicit) {
    const results = [];
    for (const each of explicit ? RELEASE_CHECKS : []) results.push(await check(each, { RUSTDOCFLAGS: '-D warnings' }));
    return add(...results, await playwright('release', ['release'], onLine));
  },
};

/**
 * Returns the results of a part, once `needed` is there; it fails as a whole if it could not be run.
 * @param {Part} name @param {Stages} stages @param {unknown} needed @param {(onLine: OnLine) => Promise<Result>} work
 */
async function runPart(name, stages, needed, work) {
  const advice = `the lines above say what failed. node tests/run.mjs ${name} repeats this part alone.`;
  let started = Date.now();
  const ended = (/** @type {Result} */ result) => ({ name, seconds: ((Date.now() - started) / 1000).toFixed(0), ...result });
  try {
    await needed;
    started = Date.now();
    const result = await stages.run(name, advice, work);
    if (result.failed > 0) console.log(`${name}: ${result.failed} failed. What to do: ${advice}`);
    return ended(result);
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`${name}: ${messageOf(error)}`);
    return ended({ passed: 0, failed: 1 });
  }
}

async function main() {
  const asked = process.argv.slice(2);
  const all = /** @type {Part[]} */ (Object.keys(parts));
  const unknown = asked.filter((name) => !(name in parts));
  if (unknown.length > 0) throw new Error(`unknown part ${unknown.join(', ')}; there are ${all.join(', ')}`);
  const names = all.filter((name) => (asked.length > 0 ? asked.includes(name) : name !== 'release' || coreIsThere('release')));
  const needs = (/** @type {Part[]} */ ...of) => of.some((name) => names.includes(name));
  const [compiles, quick, released] = [needs('lint', 'rust', 'browser'), needs('browser', 'release'), needs('release')];
  const cores = [...(quick ? [STAGES.quick] : []), ...(released ? [STAGES.release] : [])];
  const stages = new Stages([...setupStages('tests'), ...cores, ...(compiles ? [COMPILE] : []), ...names], { alone: false });
  await setupCompiler();
  const ready = setup('tests', stages);
  // Compilers need only wasm-bindgen from setup, and only at the end. They share macros and build scripts, so that Cargo runs one at a time.
  const quickCore = quick ? buildWasm('quick', stages, ready) : undefined;
  const advice = 'mend what the compiler says above and run this again: what was compiled is kept.';
  const native = compiles ? Promise.allSettled([quickCore]).then(() => stages.run(COMPILE, advice, compileNative)) : undefined;
  const releasedCore = released ? Promise.allSettled([quickCore, native]).then(() => buildWasm('release', stages, ready)) : undefined;
  // A core that already exists waits for nothing; the tools that package it are installed by setup.
  const packages = [
    Promise.all([quickCore, ready]).then(() => (quick ? buildPackage('quick') : undefined)),
    Promise.all([releasedCore, ready]).then(() => (released ? buildPackage('release') : undefined)),
  ];
  // Reported by the parts that wait for them.
  for (const promise of [quickCore, native, releasedCore, ...packages]) promise?.catch(() => undefined);
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
  for (const name of names) {
    const work = (/** @type {OnLine} */ onLine) => parts[name](onLine, native, asked.length > 0);
    running.set(name, runPart(name, stages, needed[name](), work));
  }
  const results = await Promise.all(running.values());
  console.log('');
  if (!released) console.log('release: not tested, since no released core of these sources is there; npm run release-check makes it');
  for (const { name, passed, failed, seconds } of results) console.log(`${name}: ${passed} passed, ${failed} failed (${seconds} s)`);
  const total = add(...results);
  console.log(`${total.passed} passed, ${total.failed} failed`);
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
