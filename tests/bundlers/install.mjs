// A project of tests/bundlers in the cache folder, with what its lock file names and the packed package.
import { createHash } from 'node:crypto';
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { cacheDir, environment, root } from '../../web/toolchain.mjs';

/** @typedef {ReturnType<typeof installed>} Project */

/** The program that every consumer runs. */
const PROGRAM = 'program.js';
/** Parts of an earlier run that are kept. */
const KEPT = ['node_modules'];
const HANGING_MILLIS = 10 * 60_000;

/** Runs npm in a folder. @param {string} folder @param {string[]} args */
function npm(folder, ...args) {
  const all = [...args, '--no-audit', '--no-fund', '--loglevel=error'];
  const options = { cwd: folder, env: environment, encoding: /** @type {const} */ ('utf8') };
  const { status, stdout, stderr } = spawnSync('npm', all, options);
  if (status !== 0)
    throw new Error(`npm ${args.join(' ')}: exit code ${status}\n${stdout}${stderr}`);
}

/** Installs what the lock file names, unless it is there already, and then the tarball. @param {string} folder @param {string} tarball */
function install(folder, tarball) {
  const lock = readFileSync(join(folder, 'package-lock.json'));
  const sum = createHash('sha256').update(lock).update(tarball).digest('hex');
  const mark = join(folder, 'node_modules', '.tabtune-installed');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === sum) return;
  npm(folder, 'ci');
  npm(folder, 'install', '--no-save', tarball);
  writeFileSync(mark, sum);
}

/** Copies a project of this folder into the cache folder and installs it. @param {string} fixture @param {string} tarball */
export function installed(fixture, tarball) {
  const folder = join(cacheDir, 'bundlers', fixture);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder))
    if (!KEPT.includes(name)) rmSync(join(folder, name), { recursive: true });
  cpSync(join(import.meta.dirname, fixture), folder, { recursive: true });
  if (fixture === 'examples')
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true });
  else cpSync(join(import.meta.dirname, PROGRAM), join(folder, PROGRAM));
  install(folder, tarball);
  const bin = join(folder, 'node_modules', '.bin');
  const env = {
    ...environment,
    // Frameworks that would send figures home.
    NEXT_TELEMETRY_DISABLED: '1',
    PATH: `${bin}${delimiter}${environment.PATH}`,
  };

  /** Starts a command of the project; `output` grows with what it prints. @param {string} command @param {string[]} args */
  const started = (command, args) => {
    const child = spawn(command, args, {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const state = { output: '' };
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text) => (state.output += text));
    const ended = new Promise((resolve) => child.on('close', resolve));
    // A server's own children end with it.
    const end = () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
      return ended;
    };
    return { state, ended, end };
  };

  return {
    folder,
    /** Runs a command of the project to its end. @param {string} command @param {string[]} args */
    async shell(command, ...args) {
      const { state, ended, end } = started(command, args);
      const timer = setTimeout(end, HANGING_MILLIS);
      const code = await ended;
      clearTimeout(timer);
      if (code !== 0)
        throw new Error(`${command} ${args.join(' ')}: exit code ${code}\n${state.output}`);
      return state.output;
    },
    /**
     * Runs `work` with the address of a server, which the command prints when it is ready.
     * @template T
     * @param {string[]} line @param {(url: string) => Promise<T>} work
     */
    async serving([command = '', ...args], work) {
      const { state, ended, end } = started(command, args);
      let running = true;
      void ended.then(() => (running = false));
      try {
        for (
          const until = Date.now() + 60_000;
          ;
          await new Promise((done) => setTimeout(done, 100))
        ) {
          const plain = state.output.replace(/\u001b\[[\d;]*m/g, '');
          const [url] = /http:\/\/(localhost|127\.0\.0\.1):\d+/.exec(plain) ?? [];
          if (url) return await work(url.replace('localhost', '127.0.0.1'));
          if (!running || Date.now() > until) throw new Error(`no server started:\n${plain}`);
        }
      } finally {
        await end();
      }
    },
    /** The version of an installed package. @param {string} name @returns {string} */
    versionOf: (name) =>
      JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version,
  };
}
