// Locations of the tools of this repository, and how they are called. Nothing here installs anything: setup.mjs does.
import { execFile, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export const root = dirname(import.meta.dirname);
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tabtune');
export const toolsDir = join(cacheDir, 'tools');
const windows = process.platform === 'win32';

/** The environment of every command: one shared target directory, and our own tools before the machine's. */
export const environment = {
  ...process.env,
  CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR || join(cacheDir, 'target'),
  PATH: [join(toolsDir, 'bin'), join(root, 'node_modules', '.bin'), process.env.PATH].join(
    delimiter,
  ),
};
/** Lets cargo say how many of its crates are compiled, though it writes to no terminal. */
const PROGRESS = { CARGO_TERM_PROGRESS_WHEN: 'always', CARGO_TERM_PROGRESS_WIDTH: '80' };

/** Returns the path of a program among the compiled ones. @param {string} target @param {string} name */
export const programIn = (target, name) => join(target, 'debug', windows ? `${name}.exe` : name);

/**
 * Makes cargo compile our packages again if another checkout was the last to do so: it takes the packages of two checkouts for the same, and compares
 * only times.
 */
export function ownTarget(target = environment.CARGO_TARGET_DIR, checkout = root) {
  const mark = join(target, 'checkout');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === checkout) return;
  const inside = (/** @type {string} */ folder) =>
    (existsSync(folder) ? readdirSync(folder) : []).map((name) => join(folder, name));
  const profiles = [target, join(target, 'wasm32-unknown-unknown')].flatMap(inside);
  const prints = profiles.flatMap((profile) => inside(join(profile, '.fingerprint')));
  for (const print of prints)
    if (/[\\/]tabtune[^\\/]*$/.test(print)) rmSync(print, { recursive: true });
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

/** Returns the full path of a command on the PATH of `environment`, or undefined. @param {string} name */
export const findCommand = (name) =>
  environment.PATH.split(delimiter)
    .flatMap((folder) =>
      (windows ? ['.exe', '.cmd'] : ['']).map((ending) => join(folder, name + ending)),
    )
    .find((path) => existsSync(path));

/** Returns a Chromium with WebGPU: the CHROMIUM variable first, then an installed one. */
export function findChromium() {
  const asked = process.env.CHROMIUM;
  if (asked && !existsSync(asked)) throw new Error(`CHROMIUM names ${asked}, which is not there`);
  const mac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
  const known = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(
    findCommand,
  );
  return asked || known.find(Boolean) || (existsSync(mac) ? mac : undefined);
}

/** Returns the Firefox that FIREFOX names, or the system's. */
export function findFirefox() {
  const asked = process.env.FIREFOX;
  if (asked && !existsSync(asked)) throw new Error(`FIREFOX names ${asked}, which is not there`);
  return asked || ['firefox-esr', 'firefox'].map(findCommand).find(Boolean);
}

/** Returns the file that describes lavapipe, Mesa's driver on the CPU, to the Vulkan loader. */
export function findLavapipe() {
  const folder = '/usr/share/vulkan/icd.d';
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const name = names.find((each) => each.startsWith('lvp_icd.'));
  return name && join(folder, name);
}

/** Returns the reason why no Firefox can be tested on this machine, if there is one. */
export function missingFirefox() {
  if (process.platform !== 'linux') return 'it is tested on Linux alone, on lavapipe';
  if (!findFirefox()) return 'install firefox-esr, or set FIREFOX to its path';
  return findLavapipe() ? undefined : 'install mesa-vulkan-drivers, which has lavapipe';
}

/**
 * Splits a command at its spaces into a program and its arguments. A value in it is one argument, a list several.
 * @param {TemplateStringsArray} texts @param {(string | string[])[]} values @returns {[program: string, args: string[]]}
 */
export function line(texts, ...values) {
  const [program = '', ...args] = texts
    .flatMap((text, index) => [...text.split(/\s+/), ...[values[index] ?? []].flat()])
    .filter(Boolean);
  return [program, args];
}

/**
 * Runs a command in the repository. Resolves with the exit code, or rejects if it is not zero. Its output is shown, and `onLine` is called with each
 * line of stdout; with `quiet` nothing is shown, and `onLine` also receives the lines of stderr. After `timeout` ms the command is ended.
 * @param {string} command @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, allowFailure?: boolean, onLine?: (line: string) => void, quiet?: boolean, timeout?: number }} [options]
 * @returns {Promise<number>}
 */
export function run(
  command,
  args,
  { cwd = root, env = {}, allowFailure = false, onLine, quiet = false, timeout } = {},
) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...environment, ...(quiet ? PROGRESS : {}), ...env },
      stdio: ['ignore', onLine ? 'pipe' : 'inherit', quiet ? 'pipe' : 'inherit'],
      shell: windows,
      timeout,
    });
    for (const input of [child.stdout, child.stderr])
      if (input && onLine) createInterface({ input, crlfDelay: Infinity }).on('line', onLine);
    if (!quiet) child.stdout?.on('data', (text) => process.stdout.write(text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || allowFailure) resolve(code ?? 1);
      else
        reject(
          new Error(
            `${command} ${args.join(' ')}: ${signal ? `ended by ${signal}` : `exit code ${code}`}`,
          ),
        );
    });
  });
}

/**
 * Returns the output of a command, trimmed; undefined if it cannot be run or fails.
 * @param {string} command @param {readonly string[]} args @returns {Promise<string | undefined>}
 */
export const read = (command, args) =>
  new Promise((resolve) => {
    const options = { cwd: root, env: environment, maxBuffer: 1 << 28 };
    execFile(command, args, options, (error, output) => resolve(error ? undefined : output.trim()));
  });
