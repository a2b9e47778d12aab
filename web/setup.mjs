// Installs what is missing to start, build or test tabtune; a second run takes under a second.
//   node web/setup.mjs            everything
//   node web/setup.mjs build      the needs of `npm start` and `npm run build` (no browser, no graphics driver)
//   node web/setup.mjs page       the same if the core already exists (no compiler)
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Stages, script } from './stages.mjs';
import {
  cacheDir,
  filesOf,
  findChromium,
  findCommand,
  findFirefox,
  line,
  ownTarget,
  read,
  root,
  run,
  toolsDir,
} from './toolchain.mjs';

const [NODE, RUST] = ['20.19', '1.95'];
const TARGET = 'wasm32-unknown-unknown';
/** Stages of the setup by its purpose. */
const STAGES = {
  page: ['npm packages'],
  build: ['npm packages', 'wasm-bindgen'],
  tests: ['npm packages', 'wasm-bindgen', 'browser and driver'],
};
/** @typedef {keyof typeof STAGES} Purpose @typedef {(line: string) => void} OnLine */

/** @param {string} name @param {string} least @param {string | undefined} found @param {string} [advice] */
function atLeast(name, least, found, advice = '') {
  if (found === undefined || found.localeCompare(least, undefined, { numeric: true }) < 0)
    throw new Error(`${name} ${least} or newer is needed, found ${found ?? 'none'}${advice}`);
}

/** The second word that a program says of its version. @param {string} name */
const versionOf = async (name) => (await read(name, ['--version']))?.split(/\s+/)[1];

/** Checks that Node is new enough. */
export const setupNode = () => atLeast('Node', NODE, process.versions.node);

/** Checks Node and Rust, and installs Rust's target: the prerequisites of everything else. */
export async function setupCompiler() {
  setupNode();
  atLeast('Rust', RUST, await versionOf('cargo'), '. Install it with rustup, then run this again.');
  const sysroot = await read('rustc', ['--print', 'sysroot']);
  if (sysroot === undefined || !existsSync(join(sysroot, 'lib', 'rustlib', TARGET))) {
    if (!findCommand('rustup'))
      throw new Error(`The Rust target ${TARGET} is missing and there is no rustup to add it`);
    await run(...line`rustup target add ${TARGET}`);
  }
  ownTarget();
}

/**
 * Compiles a tool for this machine into the cache: no prebuilt binary is downloaded, and this has to be its version. It runs for seconds, so hardly
 * anything is optimized.
 * @param {string} name @param {string} version @param {string[]} from @param {OnLine} onLine
 */
export async function installTool(name, version, from, onLine) {
  mkdirSync(toolsDir, { recursive: true });
  const env = { CARGO_TARGET_DIR: join(cacheDir, 'tools-target'), CARGO_PROFILE_DEV_DEBUG: '0' };
  const command = line`cargo install ${from} --locked --root ${toolsDir} --force --debug`;
  await run(...command, { quiet: true, onLine, env });
  const found = await versionOf(name);
  if (found !== version)
    throw new Error(`${name}: expected version ${version}, found ${found ?? 'none'}`);
}

/**
 * Runs `install` unless it was already done for these files, as `stamp` says.
 * @param {Stages} stages @param {string} name @param {string[]} files @param {string} stamp @param {string} advice
 * @param {(onLine: OnLine) => Promise<unknown>} install
 */
async function oncePer(stages, name, files, stamp, advice, install) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  const digest = hash.digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest)
    return stages.done(name, 'there');
  await stages.run(name, advice, install);
  writeFileSync(stamp, digest);
}

/** @param {Stages} stages */
function installPackages(stages) {
  const files = [join(root, 'package-lock.json')];
  const stamp = join(root, 'node_modules', '.tabtune-lock');
  const advice = 'check that the npm registry can be reached (npm ping), and run this again.';
  return oncePer(stages, 'npm packages', files, stamp, advice, (onLine) =>
    run(...line`npm ci --no-fund --no-audit`, { quiet: true, onLine }),
  );
}

/** The version of wasm-bindgen's tools has to be that of the crate in Cargo.lock. @param {Stages} stages */
function installBindgen(stages) {
  const source = join(root, 'web', 'bindgen');
  const stamp = join(toolsDir, 'wasm-bindgen.digest');
  const lock = readFileSync(join(root, 'Cargo.lock'), 'utf8');
  const [, version = 'none'] = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock) ?? [];
  const advice =
    'check that crates.io can be reached and that the disk has 1 GB left, and run this again: what was compiled is kept.';
  return oncePer(stages, 'wasm-bindgen', filesOf(source), stamp, advice, (onLine) =>
    installTool('wasm-bindgen', version, ['--path', source], onLine),
  );
}

/** Installs a browser and a software Vulkan driver, on which the tests run. @param {Stages} stages */
async function installSystemPackages(stages) {
  const drivers = ['/usr/share/vulkan/icd.d', '/etc/vulkan/icd.d']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder));
  const missing = findChromium() ? [] : ['chromium'];
  if (process.platform === 'linux' && drivers.length === 0)
    missing.push('mesa-vulkan-drivers', 'libvulkan1');
  const apt = findCommand('apt-get');
  const mayInstall = apt !== undefined && process.getuid?.() === 0;
  // Its tests are skipped, and counted as such, where it cannot be installed.
  const more = mayInstall && !findFirefox() ? ['firefox-esr'] : [];
  if (missing.length + more.length === 0) return stages.done('browser and driver', 'there');
  const byHand = apt
    ? `sudo apt-get install -y ${missing.join(' ')}`
    : `install ${missing.join(', ')}`;
  const advice = `${byHand}, and run this again. Any Chromium or Chrome 150 or newer will do: set CHROMIUM to its path.`;
  await stages.run('browser and driver', advice, async (onLine) => {
    if (!mayInstall) throw new Error(`the tests need ${missing.join(', ')}`);
    const options = { env: { DEBIAN_FRONTEND: 'noninteractive' }, quiet: true, onLine };
    await run(...line`${apt} update -q`, { ...options, allowFailure: true });
    const install = line`${apt} install -y -q --no-install-recommends`;
    if (missing.length > 0) await run(install[0], [...install[1], ...missing], options);
    if (more.length > 0)
      await run(install[0], [...install[1], ...more], { ...options, allowFailure: true });
  });
}

/** Returns the stages of `setup` for a purpose. @param {Purpose} purpose */
export const setupStages = (purpose) => STAGES[purpose];

/** Installs the needs of a purpose in addition to the compiler. Downloads overlap with compiling. @param {Purpose} purpose */
export async function setup(purpose, stages = new Stages(STAGES[purpose])) {
  const jobs = [installPackages(stages)];
  if (purpose !== 'page') jobs.push(installBindgen(stages));
  if (purpose === 'tests') jobs.push(installSystemPackages(stages));
  for (const job of await Promise.allSettled(jobs)) if (job.status === 'rejected') throw job.reason;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await script('setup', async () => {
    const purpose = /** @type {Purpose} */ (process.argv[2] ?? 'tests');
    if (!(purpose in STAGES))
      throw new Error(`expected one of ${Object.keys(STAGES).join(', ')}, found ${purpose}`);
    if (purpose === 'page') setupNode();
    else await setupCompiler();
    await setup(purpose);
  });
}
