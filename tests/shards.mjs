// The Rust tests in several processes, each with its own devices: a device compiles shaders in one thread, which takes most of the time with an empty
// shader cache. A process for every test (as cargo-nextest starts them) would open the devices a thousand times.
import { basename } from 'node:path';
import { read, run } from '../web/toolchain.mjs';
import { slowestFirst } from './durations.mjs';

/** Groups of tests that take longest with an empty shader cache. */
const SLOWEST_FIRST = [
  'ops::packed',
  'ops::linear',
  'adapter::inference',
  'adapter::runs',
  'adapter::packed',
  'memory',
  'ops::joint',
  'cli::runs',
  'resume',
  'fuzz::opening',
];
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

/** Groups the tests of a binary by the module path in their names, `ops::linear`: a process runs a group. */
function groupsOf(names) {
  const groups = new Map();
  for (const name of names) {
    const words = name.split('::').slice(0, -1);
    const key = words.slice(0, 2).join('::');
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return groups;
}

/** Returns the shards of these test binaries, slowest first. */
export async function shardsOf(binaries) {
  const shards = [];
  for (const binary of binaries) {
    const listed = await read(binary.path, ['--list', '--format', 'terse']);
    if (listed === undefined) throw new Error(`${binary.path} --list failed`);
    const names = [...listed.matchAll(/^(.+): test$/gm)].map(([, name]) => name);
    const groups = names.length > LARGE ? groupsOf(names) : new Map([[basename(binary.folder), names]]);
    for (const [key, tests] of groups) if (tests.length > 0) shards.push({ binary, key, tests });
  }
  return slowestFirst(shards, SLOWEST_FIRST);
}

/** Runs a shard once. */
async function runOnce(shard, env) {
  const output = [];
  const result = { passed: 0, failed: 0 };
  let ignored = 0;
  const onLine = (line) => {
    output.push(line);
    const found = /^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;/.exec(line);
    if (found) [result.passed, result.failed, ignored] = found.slice(1).map(Number);
  };
  const code = await run(shard.binary.path, ['--exact', ...shard.tests], {
    allowFailure: true,
    quiet: true,
    onLine,
    cwd: shard.binary.folder,
    env: { ...env, ...LIGHTLY },
    timeout: HANGING_MILLIS,
  });
  const all = result.passed + result.failed + ignored === shard.tests.length;
  return { ...result, output, code, all };
}

/** Runs a shard; its output is shown when it has ended: all of it if a test failed, otherwise the line with the counts. */
export async function runShard(shard, env) {
  const started = Date.now();
  let { output, code, all, ...result } = await runOnce(shard, env);
  if (code !== 0 && all && result.failed === 0) {
    // A graphics driver may break down while its process ends: this is reported, and must not happen twice.
    console.log(`rust ${shard.key}: every test passed, and the process then ended with ${code}; once more`);
    ({ output, code, all, ...result } = await runOnce(shard, env));
  }
  shard.seconds = Math.round((Date.now() - started) / 100) / 10;
  // A process that died without a failed test of its own, or that ran other tests than requested, counts as one failure.
  if ((code !== 0 || !all) && result.failed === 0) result.failed = 1;
  if (result.failed > 0) output.forEach((line) => console.log(line));
  console.log(`rust ${shard.key}: ${result.passed} passed, ${result.failed} failed (${shard.seconds.toFixed(1)} s)`);
  return result;
}
