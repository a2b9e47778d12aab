// Installs what is missing to start, build or test tabtune; a second run takes under a second.
//   node web/setup.mjs            everything
//   node web/setup.mjs build      the needs of `npm start` and `npm run build` (no browser, no graphics driver)
//   node web/setup.mjs page       the same if the core already exists (no compiler)
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StageError, Stages } from './stages.mjs';
import { cacheDir, filesOf, findChromium, findCommand, ownTarget, read, root, run, toolsDir, wasmBindgenVersion } from './toolchain.mjs';

const NODE = [20, 19];
const RUST = [1, 95];
const TARGET = 'wasm32-unknown-unknown';

/** @param {string | undefined} text @param {number[]} least */
function atLeast(text, [major, minor]) {
  const found = /(\d+)\.(\d+)/.exec(text ?? '');
  return found !== null && (Number(found[1]) > major || (Number(found[1]) === major && Number(found[2]) >= minor));
}

/** Checks that Node is new enough. */
export async function setupNode() {
  if (!atLeast(process.versions.node, NODE)) throw new Error(`Node ${NODE.join('.')} or newer is needed, this is ${process.versions.node}`);
}

async function checkRust() {
  const cargo = await read('cargo', ['--version']);
  if (!atLeast(cargo, RUST)) {
    throw new Error(`Rust ${RUST.join('.')} or newer is needed, found ${cargo ?? 'none'}. Install it with rustup, then run this again.`);
  }
}

async function installTarget() {
  const sysroot = await read('rustc', ['--print', 'sysroot']);
  if (sysroot !== undefined && existsSync(join(sysroot, 'lib', 'rustlib', TARGET))) return;
  if (!findCommand('rustup')) throw new Error(`The Rust target ${TARGET} is missing and there is no rustup to add it`);
  await run('rustup', ['target', 'add', TARGET]);
}

function digestOf(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex');
}

/** Runs `install` unless it was already done for these files. */
async function oncePer(files, stamp, stages, name, advice, install) {
  const digest = digestOf(files);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return stages.done(name, 'there');
  await stages.run(name, { advice }, install);
  writeFileSync(stamp, digest);
}

/** Runs `npm ci` if package-lock.json has changed since the last run. */
async function installPackages(stages) {
  const files = [join(root, 'package-lock.json')];
  const advice = 'check that the npm registry can be reached (npm ping), and run this again.';
  await oncePer(files, join(root, 'node_modules', '.tabtune-lock'), stages, 'npm packages', advice, (onLine) =>
    run('npm', ['ci', '--no-fund', '--no-audit'], { quiet: true, onLine }),
  );
}

/** Compiles the tool for this machine into the cache: no prebuilt binary is downloaded. It runs for seconds, so hardly anything is optimized. */
async function installBindgen(stages) {
  const source = join(root, 'web', 'bindgen');
  const advice = 'check that crates.io can be reached and that the disk has 1 GB left, and run this again: what was compiled is kept.';
  mkdirSync(toolsDir, { recursive: true });
  await oncePer(filesOf(source), join(toolsDir, 'wasm-bindgen.digest'), stages, 'wasm-bindgen', advice, async (onLine) => {
    const args = ['install', '--path', source, '--locked', '--root', toolsDir, '--force', '--debug'];
    await run('cargo', args, {
      quiet: true,
      onLine,
      env: { CARGO_TARGET_DIR: join(cacheDir, 'tools-target'), CARGO_PROFILE_DEV_DEBUG: '0' },
    });
    const [found, expected] = [(await read('wasm-bindgen', ['--version']))?.split(/\s+/)[1], wasmBindgenVersion()];
    if (found !== expected) throw new Error(`web/bindgen/Cargo.toml: expected version ${expected}, as in Cargo.lock, found ${found}`);
  });
}

function missingSystemPackages() {
  const missing = [];
  if (!findChromium()) missing.push('chromium');
  if (process.platform === 'linux') {
    const folders = ['/usr/share/vulkan/icd.d', '/etc/vulkan/icd.d'].filter(existsSync);
    if (!folders.some((folder) => readdirSync(folder).length > 0)) missing.push('mesa-vulkan-drivers', 'libvulkan1');
  }
  return missing;
}

/** Installs a browser and a software Vulkan driver, on which the tests run. */
async function installSystemPackages(stages) {
  const missing = missingSystemPackages();
  if (missing.length === 0) return stages.done('browser and driver', 'there');
  const apt = findCommand('apt-get');
  const byHand = `${apt ? `sudo apt-get install -y ${missing.join(' ')}` : `install ${missing.join(', ')}`}, and run this again. Any Chromium or Chrome 150 or newer will do: set CHROMIUM to its path.`;
  await stages.run('browser and driver', { advice: byHand }, async (onLine) => {
    if (!apt || process.getuid?.() !== 0) throw new Error(`the tests need ${missing.join(', ')}`);
    const options = { env: { DEBIAN_FRONTEND: 'noninteractive' }, quiet: true, onLine };
    await run(apt, ['update', '-q'], { ...options, allowFailure: true });
    await run(apt, ['install', '-y', '-q', '--no-install-recommends', ...missing], options);
  });
}

const STAGES = {
  page: ['npm packages'],
  build: ['npm packages', 'wasm-bindgen'],
  tests: ['npm packages', 'wasm-bindgen', 'browser and driver'],
};

/** Returns the stages of `setup` for a purpose. */
export const setupStages = (purpose) => STAGES[purpose];

/** Checks Node and Rust, and installs Rust's target: the prerequisites of everything else. */
export async function setupCompiler() {
  await setupNode();
  await checkRust();
  await installTarget();
  ownTarget();
}

/** Installs the needs of starting, building or testing in addition to the compiler. Downloads overlap with compiling. */
export async function setup(purpose, stages = new Stages(STAGES[purpose])) {
  const has = (name) => STAGES[purpose].includes(name);
  const jobs = [installPackages(stages)];
  if (has('wasm-bindgen')) jobs.push(installBindgen(stages));
  if (has('browser and driver')) jobs.push(installSystemPackages(stages));
  const failed = (await Promise.allSettled(jobs)).filter((job) => job.status === 'rejected');
  if (failed.length > 0) throw failed[0].reason;
}

if (process.argv[1]?.endsWith('setup.mjs')) {
  const purpose = process.argv[2] ?? 'tests';
  try {
    if (!(purpose in STAGES)) throw new Error(`expected one of ${Object.keys(STAGES).join(', ')}, found ${purpose}`);
    if (purpose === 'page') await setupNode();
    else await setupCompiler();
    await setup(purpose);
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`setup: ${error.message}`);
    process.exitCode = 1;
  }
}
