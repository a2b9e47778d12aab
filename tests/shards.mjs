// The Rust tests in several processes, each with devices of its own: shaders are compiled by one thread of a device, and with an empty cache of
// shaders that takes most of the time. A process for every test (as cargo-nextest starts them) would open the devices a thousand times.
import { basename } from 'node:path';
import { read, run } from '../web/toolchain.mjs';
import { slowestFirst } from './durations.mjs';

/** Groups of tests that take longest with an empty cache of shaders. */
const SLOWEST_FIRST = ['ops::packed', 'ops::linear', 'adapter::inference', 'adapter::runs', 'adapter::packed', 'memory', 'ops::joint', 'cli::runs', 'resume', 'fuzz::opening'];
/** More tests than this in a binary run in groups. */
const LARGE = 20;
/**
 * The groups share the cores already. Where several tests wait for one device, CubeCL's clients keep a core busy while they wait: a tenth of the
 * time. And it would look up the backtrace of each of its errors, most of which it handles itself.
 */
const LIGHTLY = { RUST_TEST_THREADS: '1', RUST_LIB_BACKTRACE: '0' };
/** A group of tests that takes longer hangs. */
const HANGING_MILLIS = 25 * 60 * 1000;

/** The tests of a binary by the words before their names, `ops::linear`: the groups that a process runs. */
function groupsOf(names) {
  const groups = new Map();
  for (const name of names) {
    const words = name.split('::').slice(0, -1);
    const key = words.slice(0, 2).join('::');
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return groups;
}

/** The shards of these test binaries, those that took longest first. */
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
    allowFailure: true, quiet: true, onLine, cwd: shard.binary.folder, env: { ...env, ...LIGHTLY }, timeout: HANGING_MILLIS,
  });
  const all = result.passed + result.failed + ignored === shard.tests.length;
  return { ...result, output, code, all };
}

/** Runs a shard; its output is shown when it has ended, whole if a test failed, else the line that counts. */
export async function runShard(shard, env) {
  const started = Date.now();
  let { output, code, all, ...result } = await runOnce(shard, env);
  if (code !== 0 && all && result.failed === 0) {
    // A graphics driver may break down while its process ends: that is told, and must not happen twice.
    console.log(`rust ${shard.key}: every test passed, and the process then ended with ${code}; once more`);
    ({ output, code, all, ...result } = await runOnce(shard, env));
  }
  shard.seconds = Math.round((Date.now() - started) / 100) / 10;
  // A process that died without a failed test of its own, or that ran other tests than it was told, counts as one failure.
  if ((code !== 0 || !all) && result.failed === 0) result.failed = 1;
  if (result.failed > 0) output.forEach((line) => console.log(line));
  console.log(`rust ${shard.key}: ${result.passed} passed, ${result.failed} failed (${shard.seconds.toFixed(1)} s)`);
  return result;
}
