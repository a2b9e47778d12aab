// npm test: sets up missing prerequisites, then runs lint, Rust tests, TypeScript tests and tests in a real browser.
//   node tests/run.mjs [lint|rust|web|browser|release ...]     by default the first four, and `release` if the release core of these
//                                                              sources already exists: compiling it takes longer than everything else
// Parts run in parallel and share the cores. Every part runs even if another one failed. The last line counts all of them.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { STAGES, buildWasm, coreIsThere } from '../web/build-wasm.mjs';
import { setup, setupCompiler, setupStages } from '../web/setup.mjs';
import { StageError, Stages } from '../web/stages.mjs';
import { cacheDir, root, run } from '../web/toolchain.mjs';
import { groupsOf, runGroup } from './browser-groups.mjs';
import { add, settle } from './counts.mjs';
import { Progress, remember } from './durations.mjs';
import { compileNative, docTests, program } from './native.mjs';
import { runShard, shardsOf } from './shards.mjs';
import { Slots } from './slots.mjs';

/** Folder of kernel cases that the Rust tests write and the browser tests run again. */
const casesDir = process.env.TABTUNE_CASES || join(cacheDir, 'cases');
const COMPILE = 'compile Rust';
/** TypeScript's own compiler: the one of node_modules/.bin is that of `old-typescript`. */
const TSC = 'node_modules/typescript/bin/tsc';
const scratch = mkdtempSync(join(tmpdir(), 'tabtune-test-'));
/** One slot more than there are cores, because jobs sometimes wait for their device, a Rust test a quarter of its time. */
const slots = new Slots(availableParallelism() + 1);

function verdict(name, good) {
  console.log(`${name}: ${good ? 'ok' : 'FAILED'}`);
  return good ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** Runs one check that passes or fails as a whole. */
const check = (name, command, args, env = {}) =>
  slots.run(async () => verdict(name, (await run(command, args, { allowFailure: true, env })) === 0));

/** Builds the package and the demo with a core, for the browser tests. */
async function buildPackage(kind) {
  const env = { TABTUNE_CORE: kind };
  await Promise.all([
    run(process.execPath, [join('web', 'build-package.mjs')], { env }),
    run('vite', ['build', '--config', join('web', 'vite.config.ts'), '--logLevel', 'warn'], { env }),
  ]);
}

const parts = {
  async lint({ native, onLine }) {
    onLine(`waits for ${COMPILE}`);
    const clippy = async () => {
      const compiled = await native.catch(() => undefined);
      onLine('waits for a free core');
      compiled?.told.forEach((line) => console.log(line));
      return verdict('clippy', compiled?.told.length === 0);
    };
    return add(
      ...(await Promise.all([
        check('cargo fmt', 'cargo', ['fmt', '--all', '--check']),
        ...['web/bindgen', 'native-runner/cuda'].map((folder) =>
          check(`cargo fmt of ${folder}`, 'cargo', ['fmt', '--all', '--manifest-path', `${folder}/Cargo.toml`, '--check']),
        ),
        check('licences', process.execPath, ['web/licences.mjs', '--check']),
        check('unrolled shaders', process.execPath, ['shaders/blocks.mjs', '--check']),
        check('prettier', 'prettier', ['--check', '--log-level', 'warn', '--cache', '.']),
        check('tsc', process.execPath, [TSC]),
        check('tsc of the scripts', process.execPath, [TSC, '--project', 'tsconfig.scripts.json']),
        check('eslint', process.execPath, ['tests/eslint.mjs']),
        clippy(),
      ])),
    );
  },

  async rust({ native, onLine }) {
    onLine(`waits for ${COMPILE}`);
    const { binaries } = await native;
    rmSync(casesDir, { recursive: true, force: true });
    const env = { REQUIRE_GPU: '1', TABTUNE_CASES: casesDir, TABTUNE: program };
    const shards = await shardsOf(binaries);
    const progress = new Progress(shards);
    onLine(...progress.state());
    const results = await Promise.all([
      // Before the browser tests, one of which waits for all of them.
      ...shards.map((shard) => slots.run(() => runShard(shard, env), { urgent: true }).finally(() => onLine(...progress.ended(shard)))),
      slots.run(() => docTests()),
      check('bytes that other programs were seen to read', process.execPath, ['tests/torture/consumers.mjs', '--short'], {
        TABTUNE: program,
      }),
    ]);
    remember(shards);
    return add(...results);
  },

  async web() {
    const report = join(scratch, 'vitest.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await slots.run(() => run('vitest', ['run', '--config', 'web/vitest.config.ts', ...reporters], { allowFailure: true }));
    if (!existsSync(report)) return { passed: 0, failed: 1 };
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
    return settle({ passed: numPassedTests, failed: numFailedTests }, code);
  },

  async browser({ native, core, rust, onLine }) {
    onLine(`waits for ${STAGES.quick}`);
    await core;
    const waited = { browser: undefined, 'with-program': native, 'after-rust': rust };
    const groups = await groupsOf(...Object.keys(waited));
    const progress = new Progress(groups);
    onLine(...progress.state());
    const inTurn = async (group) => {
      await waited[group.project];
      // Kernels that waited for the Rust tests take long, so they go before the others.
      const how = { urgent: group.project === 'after-rust' };
      return slots.run(() => runGroup(group, scratch, testing('quick')), how).finally(() => onLine(...progress.ended(group)));
    };
    const results = await Promise.all(groups.map(inTurn));
    remember(groups.flatMap(({ took }) => took));
    return add(...results);
  },

  async release({ core, released, others, explicit, onLine }) {
    onLine(`waits for ${STAGES.release}`);
    await Promise.all([core, released]);
    await others;
    const foreign = [
      'test',
      '--locked',
      '-p',
      'tabtune-tests',
      '--features',
      'foreign-backend',
      '--test',
      'suite',
      '--',
      'without_these_kernels',
    ];
    const documentation = ['doc', '--locked', '--no-deps', '-p', 'tabtune', '-p', 'tabtune-shaders'];
    // The first compiles Burn again, with an additional backend; the second checks all dependencies, for rustdoc.
    const results = explicit
      ? [
          await check('a backend without our kernels is refused', 'cargo', foreign),
          await check('documentation without warnings', 'cargo', documentation, { RUSTDOCFLAGS: '-D warnings' }),
        ]
      : [];
    for (const group of await groupsOf('release')) results.push(await runGroup(group, scratch, testing('release')));
    return add(...results);
  },
};

/** Environment of browser tests on a core. */
const testing = (kind) => ({ TABTUNE_CORE: kind, TABTUNE_CASES: casesDir, TABTUNE: program });

/** Returns the results of a part, which fails as a whole if it could not be run. */
async function runPart(name, stages, needed) {
  const advice = `the lines above say what failed. node tests/run.mjs ${name} repeats this part alone.`;
  const started = Date.now();
  const seconds = () => ((Date.now() - started) / 1000).toFixed(0);
  try {
    const result = await stages.run(name, advice, (onLine) => parts[name]({ ...needed, onLine }));
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
  const usual = Object.keys(parts).filter((name) => name !== 'release' || coreIsThere('release'));
  const names = asked.length > 0 ? asked : usual;
  const [compiles, inBrowser, releases] = [['lint', 'rust', 'browser'], ['browser', 'release'], ['release']].map((of) =>
    names.some((name) => of.includes(name)),
  );
  const cores = [...(inBrowser ? [STAGES.quick] : []), ...(releases ? [STAGES.release] : [])];
  const stages = new Stages([...setupStages('tests'), ...cores, ...(compiles ? [COMPILE] : []), ...names], { alone: false });
  await setupCompiler();
  const ready = setup('tests', stages);
  // Compilers need only wasm-bindgen from setup, and only at the end. They share macros and build scripts, so that Cargo runs one at a time; the
  // browser tests begin with the first.
  const module = inBrowser ? slots.run(() => buildWasm('quick', stages, ready)) : undefined;
  // A core that already exists waits for nothing; the tools that package it are installed by setup.
  const core = module && Promise.all([module, ready]).then(() => buildPackage('quick'));
  const advice = 'mend what the compiler says above and run this again: what was compiled is kept.';
  const native = compiles
    ? Promise.allSettled([module]).then(() => stages.run(COMPILE, advice, (onLine) => slots.run(() => compileNative(onLine))))
    : undefined;
  const released = releases
    ? Promise.all([slots.run(() => buildWasm('release', stages, ready)), ready]).then(() => buildPackage('release'))
    : undefined;
  // Reported by the parts that wait for them.
  for (const promise of [module, core, native, released]) promise?.catch(() => undefined);
  await ready;
  const running = new Map();
  for (const name of names) {
    const others = Promise.all(running.values());
    running.set(name, runPart(name, stages, { native, core, released, others, rust: running.get('rust'), explicit: asked.length > 0 }));
  }
  const results = await Promise.all(running.values());
  console.log('');
  if (!names.includes('release'))
    console.log('release: not tested, since no released core of these sources is there; npm run release-check makes it');
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
