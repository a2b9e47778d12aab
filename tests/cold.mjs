// node tests/cold.mjs start|test: how long `npm start` or `npm test` takes on a clean clone with empty caches, and how long once more.
// The clone is of the last commit. Registry, compiled files, tools and packages of this machine are out of reach: all caches lie in a
// temporary folder (some 12 GB). Rust, Node, the browser and the graphics driver are the machine's own. Exits with 1 above a limit.
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, homedir, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../web/toolchain.mjs';

/** Seconds on two idle cores. */
const LIMITS = { 'npm start, cold': 480, 'npm start, again': 5, 'npm start, one Rust file changed': 90, 'npm test, cold': 2700, 'npm test, again': 900 };

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
const place = mkdtempSync(join(tmpdir(), 'tabtune-cold-'));
const clone = join(place, 'tabtune');
const runs = [];
let running;

/** This machine's environment, with every cache in the temporary folder. */
function coldEnvironment() {
  const cargoHome = join(place, 'cargo');
  mkdirSync(cargoHome);
  const settings = join(process.env.CARGO_HOME ?? join(homedir(), '.cargo'), 'config.toml');
  if (existsSync(settings)) copyFileSync(settings, join(cargoHome, 'config.toml'));
  const { CARGO_TARGET_DIR: _target, TABTUNE_CASES: _cases, ...rest } = process.env;
  return { ...rest, XDG_CACHE_HOME: join(place, 'cache'), CARGO_HOME: cargoHome, npm_config_cache: join(place, 'npm') };
}

function end(child) {
  try {
    process.kill(-child.pid, 'SIGTERM');
  } catch {
    // It has ended already.
  }
}

/** Runs an npm script of the clone until it ends, or until `until` resolves with true for one of its lines. Its stages are kept with the time. */
async function timed(name, script, env, until = async () => false) {
  console.log(`\n== ${name}`);
  const started = Date.now();
  const run = { name, stages: [], seconds: 0, good: false };
  const child = spawn('npm', [script], { cwd: clone, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  running = child;
  const stop = (good) => {
    run.seconds ||= (Date.now() - started) / 1000;
    run.good ||= good;
  };
  const take = async (line) => {
    console.log(line);
    if (/^\[\d+\/\d+\] .*(: done in |: there|, current)/.test(line)) run.stages.push(line);
    if (await until(line)) {
      stop(true);
      end(child);
    }
  };
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    lines.forEach(take);
  });
  await new Promise((resolve) => {
    child.on('close', (code) => resolve(stop(code === 0)));
    child.on('error', (error) => resolve(console.error(`npm ${script}: ${error.message}`)));
  });
  running = undefined;
  runs.push(run);
}

/** Whether a line tells the address of the demo, and the demo answers there. */
async function served(line) {
  const address = /the demo is ready\. Open (\S+)\?run/.exec(line)?.[1];
  return address !== undefined && (await fetch(address)).ok;
}

async function measure(what) {
  const cloned = spawnSync('git', ['clone', '--quiet', '--no-hardlinks', root, clone], { stdio: 'inherit' });
  if (cloned.status !== 0) throw new Error(`git clone ${root}: exit code ${cloned.status}`);
  const env = coldEnvironment();
  console.log(`${availableParallelism()} cores, load ${loadavg().map((load) => load.toFixed(1)).join(' ')}, caches in ${place}`);
  if (what === 'test') {
    await timed('npm test, cold', 'test', env);
    await timed('npm test, again', 'test', env);
    return;
  }
  await timed('npm start, cold', 'start', env, served);
  await timed('npm start, again', 'start', env, served);
  appendFileSync(join(clone, 'crate', 'src', 'lib.rs'), '\n/// What a measurement of the build changed.\npub const CHANGED: u32 = 1;\n');
  await timed('npm start, one Rust file changed', 'start', env, served);
}

function report() {
  console.log('');
  for (const { name, stages, seconds, good } of runs) {
    const limit = LIMITS[name];
    const verdict = !good ? 'FAILED' : seconds > limit ? 'TOO SLOW' : 'ok';
    console.log(`${name}: ${clock(seconds)} of ${clock(limit)} allowed on two idle cores: ${verdict}`);
    for (const stage of stages) console.log(`    ${stage}`);
  }
  return runs.length > 0 && runs.every(({ name, seconds, good }) => good && seconds <= LIMITS[name]);
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    if (running) end(running);
    rmSync(place, { recursive: true, force: true });
    process.exit(1);
  });
}
try {
  const what = process.argv[2];
  if (what !== 'start' && what !== 'test') throw new Error(`expected start or test, found ${what ?? 'nothing'}`);
  await measure(what);
  process.exitCode = report() ? 0 : 1;
} catch (error) {
  console.error(`cold: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}
