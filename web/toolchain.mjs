// Where the tools of this repository live, and how they are called. Nothing here installs anything: setup.mjs does.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tabtune');
export const toolsDir = join(cacheDir, 'tools');

/** The environment every command gets: one shared target directory, and our own tools before the machine's. */
export const environment = {
  ...process.env,
  CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR || join(cacheDir, 'target'),
  PATH: [join(toolsDir, 'bin'), join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
};

/**
 * Makes cargo compile our packages again where another checkout was the last to do so: it takes the packages of two checkouts for the same,
 * and compares times alone.
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

/** The files of a folder and the folders in it, sorted; of a file, itself. */
export function filesOf(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesOf(join(path, name)));
}

/** The version of wasm-bindgen in Cargo.lock; the tool that makes its JavaScript must be the same one. */
export function wasmBindgenVersion() {
  const lock = readFileSync(join(root, 'Cargo.lock'), 'utf8');
  const found = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock);
  if (!found) throw new Error('Cargo.lock names no wasm-bindgen');
  return found[1];
}

/** Full path of a command on the PATH of `environment`, or undefined. */
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

/** A Chromium with WebGPU: the CHROMIUM variable first, then what is installed. */
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

/** Calls `take` with each line of a stream; what follows the last line break comes when the stream ends. */
function eachLine(stream, take) {
  let rest = '';
  stream.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    lines.forEach(take);
  });
  stream.on('end', () => rest && take(rest));
}

/**
 * Runs a command in the repository. Resolves with the exit code, or rejects when it is not zero. Its output is shown, and `onLine` is
 * called with each line of stdout; with `quiet` nothing is shown, and `onLine` gets the lines of stderr too. After `timeout` ms it is ended.
 */
export function run(command, args, { cwd = root, env = {}, allowFailure = false, onLine, quiet = false, timeout } = {}) {
  return new Promise((resolve, reject) => {
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

/** What a command prints, trimmed; undefined when it cannot be run or fails. */
export function read(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? output.trim() : undefined));
  });
}
