// npm run lab -- cold start|test [--at COMMIT] [--busy] [--once] [--out FILE]: measures how long `npm start` or `npm test` takes on a clean
// clone with every cache empty, and how long a second time.
//   --at COMMIT   measures that commit, not the last one
//   --busy        keeps one core busy in the meantime, as other work on the machine would
//   --once        leaves out the second run
//   --out FILE    also writes the tables to this file, as Markdown
// The clone gets its own HOME in a temporary folder (some 12 GB), so that the caches of cargo, npm, this project, Mesa and browsers are out of reach.
// Rust, Node, the browser and the graphics driver are the machine's own. The exit code is 1 above a limit.
import { spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, cpus, homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { crateTables, readCompiled } from './compiled.mjs';
import { clock, stageTable } from './stages.mjs';

/** Limits in seconds on two idle cores, and with one of them busy. */
const LIMITS = {
  'npm start, cold': [360, 720],
  'npm start, again': [5, 10],
  'npm start, one Rust file changed': [90, 180],
  'npm test, cold': [2400, 4500],
  'npm test, again': [720, 1440],
};

const place = mkdtempSync(join(tmpdir(), 'tabtune-cold-'));
const clone = join(place, 'tabtune');
const runs = [];
/** Running processes. */
const children = new Set();

function end(child) {
  try {
    process.kill(-child.pid, 'SIGTERM');
  } catch {
    // It has already ended.
  }
}

function mustRun(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}`);
}

/** Returns this machine's environment with every cache in the temporary folder, and the wrapper that times the compiler. */
function coldEnvironment() {
  const home = join(place, 'home');
  const cargo = process.env.CARGO_HOME ?? join(homedir(), '.cargo');
  // The configuration for reaching the registries is not a cache.
  for (const [from, to] of [
    [join(homedir(), '.npmrc'), '.npmrc'],
    [join(cargo, 'config.toml'), '.cargo/config.toml'],
  ]) {
    mkdirSync(join(home, '.cargo'), { recursive: true });
    if (existsSync(from)) copyFileSync(from, join(home, to));
  }
  const wrapper = join(place, 'timed_rustc');
  mustRun('rustc', [
    '--edition',
    '2024',
    '-O',
    '-o',
    wrapper,
    fileURLToPath(new URL('./timed_rustc.rs', import.meta.url)),
  ]);
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(CARGO|TABTUNE|XDG|MESA)_|^npm_config_cache$/.test(name),
  );
  const rustup = process.env.RUSTUP_HOME ?? join(homedir(), '.rustup');
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    RUSTUP_HOME: rustup,
    RUSTC_WRAPPER: wrapper,
    COMPILE_LOG: join(place, 'compiled.tsv'),
  };
}

/** Returns the milliseconds that the cores were busy and idle since the machine started. */
function coreTimes() {
  const times = cpus().map((core) => core.times);
  const idle = times.reduce((sum, each) => sum + each.idle, 0);
  return {
    at: Date.now(),
    idle,
    busy: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0),
  };
}

/**
 * Runs an npm script of the clone until it ends, or until `until` resolves with true for one of its lines.
 * @param {(line: string) => Promise<boolean>} until
 */
async function timed(name, script, env, until = async () => false) {
  console.log(`\n== ${name}`);
  const marks = [{ line: '', ...coreTimes() }];
  const run = { name, marks, good: false };
  const child = spawn('npm', ['run', script], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  const take = async (line) => {
    console.log(line);
    marks.push({ line, ...coreTimes() });
    if (!(await until(line))) return;
    run.good = true;
    marks.push({ line: '', ...coreTimes() });
    run.last = marks.at(-1);
    end(child);
  };
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(take);
  });
  const code = await new Promise((resolve, reject) =>
    child.on('close', resolve).on('error', reject),
  );
  children.delete(child);
  run.good ||= code === 0;
  run.last ??= { line: '', ...coreTimes() };
  run.seconds = (run.last.at - marks[0].at) / 1000;
  runs.push(run);
}

/** Returns whether a line contains the address of the demo, and the demo answers there. */
async function served(line) {
  const address = /the demo is ready\. Open (\S+)\?run/.exec(line)?.[1];
  return address !== undefined && (await fetch(address)).ok;
}

/** @param {string} what @param {{ at: string, once?: boolean }} options */
async function measure(what, { at, once }) {
  mustRun('git', ['clone', '--quiet', '--no-hardlinks', root, clone]);
  mustRun('git', ['-C', clone, 'checkout', '--quiet', '--detach', at]);
  const env = coldEnvironment();
  if (what === 'test') {
    await timed('npm test, cold', 'test', env);
    if (!once) await timed('npm test, again', 'test', env);
  } else {
    await timed('npm start, cold', 'start', env, served);
    if (once) return;
    await timed('npm start, again', 'start', env, served);
    appendFileSync(
      join(clone, 'crate', 'src', 'lib.rs'),
      '\n/// What a measurement of the build changed.\npub const CHANGED: u32 = 1;\n',
    );
    await timed('npm start, one Rust file changed', 'start', env, served);
  }
}

/** Returns the tables of all runs, and whether each ended successfully within its limit. @param {{ busy?: boolean }} options */
function report({ busy }) {
  const commit = spawnSync('git', ['-C', clone, 'log', '-1', '--format=%h %s'], {
    encoding: 'utf8',
  }).stdout.trim();
  const cores = `${availableParallelism()} cores (${cpus()[0].model.trim()})${busy ? ', one of them kept busy' : ''}`;
  const lines = [`Commit ${commit}; ${cores}; ${new Date().toISOString().slice(0, 10)}.`, ''];
  let good = true;
  for (const run of runs) {
    const limit = LIMITS[run.name][busy ? 1 : 0];
    const verdict = !run.good ? 'FAILED' : run.seconds > limit ? 'TOO SLOW' : 'ok';
    good &&= verdict === 'ok';
    lines.push(
      `**${run.name}**: ${clock(run.seconds)} of ${clock(limit)} allowed: ${verdict}.`,
      '',
      ...stageTable(run),
      '',
    );
  }
  const compiled = readCompiled(join(place, 'compiled.tsv'));
  return { text: [...lines, ...crateTables(compiled)].join('\n'), good };
}

/** Stops running processes and removes the temporary folder. */
function leave() {
  children.forEach(end);
  rmSync(place, { recursive: true, force: true, maxRetries: 5 });
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    leave();
    process.exit(1);
  });
}
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      at: { type: 'string', default: 'HEAD' },
      busy: { type: 'boolean' },
      once: { type: 'boolean' },
      out: { type: 'string' },
    },
  });
  const [what, ...more] = positionals;
  if (!['start', 'test'].includes(what) || more.length > 0)
    throw new Error(`expected start or test, found ${positionals.join(' ') || 'nothing'}`);
  if (values.busy)
    children.add(spawn(process.execPath, ['-e', 'for (;;);'], { detached: true, stdio: 'ignore' }));
  await measure(what, values);
  const { text, good } = report(values);
  console.log(`\n${text}`);
  if (values.out) writeFileSync(values.out, `${text}\n`);
  process.exitCode = good ? 0 : 1;
} catch (/** @type {any} */ error) {
  console.error(`cold: ${error.message}`);
  process.exitCode = 1;
} finally {
  leave();
}
