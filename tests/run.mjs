// npm test: set up what is missing, then lint, Rust tests, TypeScript tests and tests in a real browser.
//   node tests/run.mjs [lint|rust|web|browser ...]     without words: all four, in this order
// Every part runs even when an earlier one failed. The last line counts them all.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STAGES, buildWasm } from '../web/build-wasm.mjs';
import { setup, setupCompiler, setupStages } from '../web/setup.mjs';
import { StageError, Stages } from '../web/stages.mjs';
import { cacheDir, environment, root, run } from '../web/toolchain.mjs';

/** Kernel cases that the Rust tests write and the browser tests run again. */
const casesDir = process.env.TABTUNE_CASES || join(cacheDir, 'cases');
/** Browser tests with times to keep: nothing runs beside them. */
const ALONE = ['survival-alone.test.mjs'];
/** A test, or a file of them, that takes longer hangs. */
const HANGING_MILLIS = 25 * 60 * 1000;
const scratch = mkdtempSync(join(tmpdir(), 'tabtune-test-'));

function verdict(name, good) {
  console.log(`${name}: ${good ? 'ok' : 'FAILED'}`);
  return good ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** One check that passes or fails as a whole. */
async function check(name, command, args, env = {}) {
  return verdict(name, (await run(command, args, { allowFailure: true, env })) === 0);
}

/**
 * Clippy compiles our packages as it reads them, and the tests run what it compiled: a `cargo clippy` beside the tests would go through
 * all dependencies a second time.
 */
const COMPILED_BY_CLIPPY = { RUSTC_WORKSPACE_WRAPPER: 'clippy-driver' };

/** Every target of every package compiles without a warning. */
async function clippy() {
  let warnings = 0;
  const onLine = (line) => {
    if (/^warning\b/.test(line)) warnings++;
    console.log(line);
  };
  let code = 0;
  for (const args of [['build', '--workspace', '--bins'], ['test', '--workspace', '--no-run']]) {
    code ||= await run('cargo', [...args, '--locked'], { allowFailure: true, quiet: true, onLine, env: COMPILED_BY_CLIPPY });
  }
  return verdict('clippy', code === 0 && warnings === 0);
}

function add(...results) {
  return results.reduce((sum, each) => ({ passed: sum.passed + each.passed, failed: sum.failed + each.failed }), { passed: 0, failed: 0 });
}

/** A part that ended badly without a failed test of its own (it did not compile, say) counts as one failure. */
function settle(result, code) {
  return code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result;
}

const parts = {
  async lint() {
    return add(
      ...(await Promise.all([
        check('cargo fmt', 'cargo', ['fmt', '--all', '--check']),
        check('cargo fmt of web/bindgen', 'cargo', ['fmt', '--manifest-path', 'web/bindgen/Cargo.toml', '--check']),
        clippy(),
        check('unrolled shaders', process.execPath, ['shaders/blocks.mjs', '--check']),
        check('tsc and eslint', 'npm', ['run', '--silent', 'web:check']),
      ])),
    );
  },

  async rust() {
    let result = { passed: 0, failed: 0 };
    const onLine = (line) => {
      const found = /^test result: \S+ (\d+) passed; (\d+) failed;/.exec(line);
      if (found) result = add(result, { passed: Number(found[1]), failed: Number(found[2]) });
    };
    const args = ['test', '--workspace', '--locked', '--no-fail-fast'];
    rmSync(casesDir, { recursive: true, force: true });
    const code = await run('cargo', args, { allowFailure: true, onLine, env: { ...COMPILED_BY_CLIPPY, REQUIRE_GPU: '1', TABTUNE_CASES: casesDir } });
    const program = { TABTUNE: join(environment.CARGO_TARGET_DIR, 'debug', 'tabtune') };
    const proved = await check('bytes that other programs were seen to read', process.execPath, ['tests/torture/consumers.mjs', '--short'], program);
    return add(settle(result, code), proved);
  },

  async web() {
    const report = join(scratch, 'vitest.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await run('vitest', ['run', '--config', 'web/vitest.config.ts', ...reporters], { allowFailure: true });
    if (!existsSync(report)) return { passed: 0, failed: 1 };
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
    return settle({ passed: numPassedTests, failed: numFailedTests }, code);
  },

  async browser() {
    await wasm;
    const scripts = [['web:package'], ['web:package', '--', 'quick'], ['web:demo']];
    await Promise.all(scripts.map((script) => run('npm', ['run', '--silent', ...script])));
    const files = readdirSync(join(root, 'tests', 'browser')).filter((name) => name.endsWith('.test.mjs')).sort();
    // Pages wait for the GPU's process most of the time: two browsers keep two cores busy.
    const together = await browserTests('together', files.filter((name) => !ALONE.includes(name)), 2);
    return add(together, await browserTests('alone', ALONE, 1));
  },
};

/** Runs these files of tests, so many at a time. */
async function browserTests(name, files, concurrency) {
  const report = join(scratch, `browser-${name}.tap`);
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=tap', `--test-reporter-destination=${report}`];
  const paths = files.map((file) => join('tests', 'browser', file));
  const code = await run(process.execPath, ['--test', `--test-concurrency=${concurrency}`, `--test-timeout=${HANGING_MILLIS}`, ...reporters, ...paths], {
    allowFailure: true,
    // The tests that ask the native program find the one that Clippy compiled.
    env: { ...COMPILED_BY_CLIPPY, TABTUNE_CASES: casesDir },
  });
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  return settle({ passed: count('pass'), failed: count('fail') + count('cancelled') }, code);
}

/** Both builds of the core, made beside lint and the Rust tests. */
let wasm;

/** Whether this run compiles the dependencies. */
const first = !existsSync(join(environment.CARGO_TARGET_DIR, 'debug', 'deps'));

/** What a part found. It fails as a whole where it could not be run. */
async function runPart(name, stages) {
  const advice = `the lines above say what failed. node tests/run.mjs ${name} repeats this part alone.`;
  const started = Date.now();
  const seconds = () => ((Date.now() - started) / 1000).toFixed(0);
  try {
    const result = await stages.run(name, { key: `test ${name}${first && ['lint', 'rust'].includes(name) ? ', first' : ''}`, advice }, () => parts[name]());
    if (result.failed > 0) console.log(`${name}: ${result.failed} failed. What to do: ${advice}`);
    return { name, seconds: seconds(), ...result };
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`${name}: ${error.message}`);
    return { name, seconds: seconds(), passed: 0, failed: 1 };
  }
}

async function main() {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !(name in parts));
  if (unknown.length > 0) throw new Error(`unknown part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`);
  const names = asked.length > 0 ? asked : Object.keys(parts);
  const core = names.includes('browser') ? [STAGES.release, STAGES.quick] : [];
  const stages = new Stages([...setupStages('tests'), ...core, ...names], { alone: false });
  const started = Date.now();
  await setupCompiler();
  await setup('tests', stages);
  console.log(`setup: ready (${((Date.now() - started) / 1000).toFixed(0)} s)`);
  if (core.length > 0) {
    // Linking and wasm-opt have one core each for minutes: the compilers of the other parts take the rest.
    wasm = buildWasm('release', stages).then(() => buildWasm('quick', stages));
    // Told where it is waited for.
    wasm.catch(() => undefined);
  }
  const results = [];
  for (const name of names) results.push(await runPart(name, stages));
  console.log('');
  for (const { name, passed, failed, seconds } of results) console.log(`${name}: ${passed} passed, ${failed} failed (${seconds} s)`);
  const total = add(...results);
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 ? 0 : 1;
}

try {
  process.chdir(root);
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof StageError)) console.error(`test: ${error.message}`);
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
