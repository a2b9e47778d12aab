// The native packages: compiled once for lint, tests and the program; and their tests in several processes, each with its own devices: a device
// compiles shaders in one thread, which takes most of the time with an empty shader cache. A process for every test (as cargo-nextest starts them)
// would open the devices a thousand times.
import { basename, dirname } from 'node:path';
import { environment, line, programIn, read, run } from '../web/toolchain.mjs';
import { settle } from './counts.mjs';

/** @typedef {{ path: string, folder: string }} Binary @typedef {{ key: string, binary: Binary, tests: string[] }} Group */

/**
 * Environment that lets Clippy compile our packages while it checks them, so that the tests run the same binaries: a separate `cargo clippy` would go
 * through all dependencies a second time.
 */
const COMPILED_BY_CLIPPY = { RUSTC_WORKSPACE_WRAPPER: 'clippy-driver' };
/** Groups of tests that take longest, the slowest at the end: they start first. */
const SLOWEST =
  line`ops::joint ops::linear ops::packed resume cli::ends data::large fuzz cli::registers optim::kernels
  adapter::packed_widths adapter::inference generate::templates witness fuzz::opening cli::lost_device adapter::packed
  cli::runs ops::budget memory`.flat();
/** Number of tests in a binary above which they run in groups. */
const LARGE = 20;
/**
 * Environment of a group: the groups already share the cores. If several tests waited for one device, CubeCL's clients would keep a core busy while
 * they wait: a tenth of the time. It would also look up the backtrace of each of its errors, most of which it handles itself. llvmpipe computes in
 * the thread that submits: handing small kernels to threads of its own takes longer than they do.
 */
const LIGHTLY = { RUST_TEST_THREADS: '1', RUST_LIB_BACKTRACE: '0', LP_NUM_THREADS: '0' };
/** Time limit of a group of tests, after which it is considered hanging. */
const HANGING_MILLIS = 25 * 60 * 1000;
const RESULT = /^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;/;

/** Path of the native program, which the tests receive in `TABTUNE`. */
export const program = programIn(environment.CARGO_TARGET_DIR, 'tabtune');

/**
 * Compiles every native target of every package once for lint, tests and the program; returns the test binaries, and the warnings of the compiler and
 * Clippy.
 * @param {(line: string) => void} onLine @returns {Promise<{ binaries: Binary[], warnings: string[] }>}
 */
export async function compileNative(onLine) {
  /** @type {Binary[]} */
  const binaries = [];
  /** @type {string[]} */
  const said = [];
  const take = (/** @type {string} */ line) => {
    if (!line.startsWith('{')) {
      if (!/^ *(Blocking|Building|Downloaded|Downloading|Compiling|Finished|Updating) /.test(line))
        said.push(line);
      return onLine(line);
    }
    const { reason, profile, executable, manifest_path: manifest } = JSON.parse(line);
    if (reason === 'compiler-artifact' && profile.test && executable)
      binaries.push({ path: executable, folder: dirname(manifest) });
  };
  const command = line`cargo build --workspace --bins --tests --locked --message-format json-render-diagnostics`;
  await run(...command, { quiet: true, onLine: take, env: COMPILED_BY_CLIPPY });
  return { binaries, warnings: said.some((line) => /^warning\b/.test(line)) ? said : [] };
}

/** Adds up the counts in the output of Rust's tests. @param {string[]} output */
function counted(output) {
  const rows = output.map((line) => RESULT.exec(line)?.slice(1).map(Number) ?? []);
  const sum = (/** @type {number} */ at) => rows.reduce((total, row) => total + (row[at] ?? 0), 0);
  return { passed: sum(0), failed: sum(1), ignored: sum(2) };
}

/** Runs the examples of the documentation, or those whose names contain one of these words. */
export async function docTests(words = /** @type {string[]} */ ([])) {
  /** @type {string[]} */
  const output = [];
  const code = await run(...line`cargo test --workspace --doc --locked --quiet -- ${words}`, {
    allowFailure: true,
    onLine: (line) => output.push(line),
    env: { ...COMPILED_BY_CLIPPY, REQUIRE_GPU: '1' },
  });
  return settle(counted(output), code);
}

/** Returns the tests of these binaries in groups, by the module path in their names, `ops::linear`; the slowest first. @param {Binary[]} binaries */
export async function groupsOf(binaries) {
  /** @type {Group[]} */
  const groups = [];
  for (const binary of binaries) {
    const listed = await read(binary.path, ['--list', '--format', 'terse']);
    if (listed === undefined) throw new Error(`${binary.path} --list failed`);
    const names = [...listed.matchAll(/^(.+): test$/gm)].map(([, name = '']) => name);
    const keyOf = (/** @type {string} */ name) =>
      names.length > LARGE
        ? name.split('::').slice(0, -1).slice(0, 2).join('::')
        : basename(binary.folder);
    for (const key of new Set(names.map(keyOf)))
      groups.push({ key, binary, tests: names.filter((name) => keyOf(name) === key) });
  }
  return groups.sort((a, b) => SLOWEST.indexOf(b.key) - SLOWEST.indexOf(a.key));
}

/**
 * Runs a group; its output is shown when it has ended: all of it if a test failed, otherwise the line with the counts. A process that died without a
 * failed test of its own, or that ran other tests than requested, counts as one failure.
 * @param {Group} group @param {Record<string, string>} env @returns {Promise<import('./counts.mjs').Result>}
 */
export async function runGroup({ binary, key, tests }, env, again = false) {
  const started = Date.now();
  /** @type {string[]} */
  const output = [];
  const code = await run(binary.path, ['--exact', ...tests], {
    allowFailure: true,
    quiet: true,
    onLine: (line) => output.push(line),
    cwd: binary.folder,
    env: { ...env, ...LIGHTLY },
    timeout: HANGING_MILLIS,
  });
  const { passed, failed, ignored } = counted(output);
  const all = passed + failed + ignored === tests.length;
  if (code !== 0 && all && failed === 0 && !again) {
    // A graphics driver may break down while its process ends: this is reported, and must not happen twice.
    console.log(
      `rust ${key}: every test passed, and the process then ended with ${code}; once more`,
    );
    return runGroup({ binary, key, tests }, env, true);
  }
  const result = settle({ passed, failed }, all ? code : 1);
  if (result.failed > 0) output.forEach((line) => console.log(line));
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`rust ${key}: ${passed} passed, ${result.failed} failed (${seconds} s)`);
  return result;
}
