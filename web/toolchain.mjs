// Locations of the tools of this repository, and how they are called. Nothing here installs anything: setup.mjs does.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tabtune');
export const toolsDir = join(cacheDir, 'tools');

/** The environment of every command: one shared target directory, and our own tools before the machine's. */
export const environment = {
  ...process.env,
  CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR || join(cacheDir, 'target'),
  PATH: [join(toolsDir, 'bin'), join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
};

/**
 * Makes cargo compile our packages again if another checkout was the last to do so: it takes the packages of two checkouts for the same, and compares
 * only times.
 */
export function ownTarget(target = environment.CARGO_TARGET_DIR, checkout = root) {
  const mark = join(target, 'checkout');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === checkout) return;
  const inside = (folder) => (existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name, '.fingerprint')) : []);
  for (const prints of [target, join(target, 'wasm32-unknown-unknown')].flatMap(inside).filter((place) => existsSync(place))) {
    for (const name of readdirSync(prints).filter((each) => each.startsWith('tabtune'))) rmSync(join(prints, name), { recursive: true });
  }
  mkdirSync(target, { recursive: true });
  writeFileSync(mark, checkout);
}

/** Returns the files in a folder and its subfolders, sorted; for a file, the file itself. @param {string} path @returns {string[]} */
export function filesOf(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesOf(join(path, name)));
}

/** Returns the version of wasm-bindgen in Cargo.lock; the tool that makes its JavaScript must have the same version. */
export function wasmBindgenVersion() {
  const lock = readFileSync(join(root, 'Cargo.lock'), 'utf8');
  const found = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock);
  if (!found) throw new Error('Cargo.lock names no wasm-bindgen');
  return found[1];
}

/** Returns the full path of a command on the PATH of `environment`, or undefined. @param {string} name */
export function findCommand(name) {
  const names = process.platform === 'win32' ? [`${name}.exe`, `${name}.cmd`] : [name];
  for (const folder of environment.PATH.split(delimiter)) {
    for (const candidate of names.map((each) => join(folder, each))) {
      try {
        accessSync(candidate, constants.X_OK);
        return candidate;
      } catch {
        continue;
      }
    }
  }
  return undefined;
}

/** Returns a Chromium with WebGPU: the CHROMIUM variable first, then an installed one. */
export function findChromium() {
  const asked = process.env.CHROMIUM;
  if (asked) {
    if (!existsSync(asked)) throw new Error(`CHROMIUM names ${asked}, which is not there`);
    return asked;
  }
  const known = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(findCommand);
  const mac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
  return known.find(Boolean) ?? (existsSync(mac) ? mac : undefined);
}

/** Calls `take` with each line of a stream; text after the last line break follows when the stream ends. */
function eachLine(stream, take) {
  let rest = '';
  stream.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(take);
  });
  stream.on('end', () => rest && take(rest));
}

/**
 * Runs a command in the repository. Resolves with the exit code, or rejects if it is not zero. Its output is shown, and `onLine` is called with each
 * line of stdout; with `quiet` nothing is shown, and `onLine` also receives the lines of stderr. After `timeout` ms the command is ended.
 * @param {string} command @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, allowFailure?: boolean, onLine?: (line: string) => void, quiet?: boolean, timeout?: number }} options
 * @returns {Promise<number>}
 */
export function run(command, args, { cwd = root, env = {}, allowFailure = false, onLine, quiet = false, timeout } = {}) {
  return new Promise((resolve, reject) => {
    /** @type {import('node:child_process').StdioOptions} */
    const stdio = ['ignore', onLine ? 'pipe' : 'inherit', quiet ? 'pipe' : 'inherit'];
    const shell = process.platform === 'win32';
    const child = spawn(command, args, { cwd, env: { ...environment, ...env }, stdio, shell, timeout });
    if (child.stdout) eachLine(child.stdout, onLine);
    if (child.stderr) eachLine(child.stderr, onLine);
    if (!quiet) child.stdout?.on('data', (text) => process.stdout.write(text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || allowFailure) resolve(code ?? 1);
      else reject(new Error(`${command} ${args.join(' ')}: ${signal ? `ended by ${signal}` : `exit code ${code}`}`));
    });
  });
}

/**
 * Returns the output of a command, trimmed; undefined if it cannot be run or fails.
 * @param {string} command @param {readonly string[]} args @returns {Promise<string | undefined>}
 */
export function read(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? output.trim() : undefined));
  });
}
