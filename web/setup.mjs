// Installs what is missing to build and test tabtune; a second run takes under a second.
//   node web/setup.mjs           everything
//   node web/setup.mjs build     only what a build needs (no browser, no graphics driver)
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WASM_PACK_VERSION, cacheDir, findChromium, findCommand, read, root, run, toolsDir, wasmBindgenVersion } from './toolchain.mjs';

const NODE = [20, 19];
const RUST = [1, 95];
const TARGET = 'wasm32-unknown-unknown';

function atLeast(text, [major, minor]) {
  const found = /(\d+)\.(\d+)/.exec(text ?? '');
  return found !== null && (Number(found[1]) > major || (Number(found[1]) === major && Number(found[2]) >= minor));
}

async function checkMachine() {
  if (!atLeast(process.versions.node, NODE)) throw new Error(`Node ${NODE.join('.')} or newer is needed, this is ${process.versions.node}`);
  const cargo = await read('cargo', ['--version']);
  if (!atLeast(cargo, RUST)) {
    throw new Error(`Rust ${RUST.join('.')} or newer is needed, found ${cargo ?? 'none'}. Install it with rustup, then run this again.`);
  }
}

async function installTarget() {
  const sysroot = await read('rustc', ['--print', 'sysroot']);
  if (existsSync(join(sysroot, 'lib', 'rustlib', TARGET))) return;
  if (!findCommand('rustup')) throw new Error(`The Rust target ${TARGET} is missing and there is no rustup to add it`);
  await run('rustup', ['target', 'add', TARGET]);
}

/** `npm ci` when package-lock.json has changed since the last one. */
async function installPackages() {
  const lock = readFileSync(join(root, 'package-lock.json'));
  const digest = createHash('sha256').update(lock).digest('hex');
  const stamp = join(root, 'node_modules', '.tabtune-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  await run('npm', ['ci', '--no-fund', '--no-audit']);
  writeFileSync(stamp, digest);
}

/**
 * A cargo tool of one version, built from crates.io into the cache: no prebuilt binary is downloaded. Optimised lightly, since
 * each is built once and run for seconds.
 */
async function installTool(command, crate, version, options) {
  const found = await read(command, ['--version']);
  if (found?.split(/\s+/)[1] === version) return;
  mkdirSync(toolsDir, { recursive: true });
  const args = ['install', crate, '--version', version, '--root', toolsDir, '--force', '--debug', '--bin', command, ...options];
  await run('cargo', args, {
    env: { CARGO_TARGET_DIR: join(cacheDir, 'tools-target'), CARGO_PROFILE_DEV_DEBUG: '0', CARGO_PROFILE_DEV_OPT_LEVEL: '1' },
  });
}

async function installTools() {
  // The list that the tool itself is locked to does not resolve, so its dependencies are the newest that fit.
  await installTool('wasm-bindgen', 'wasm-bindgen-cli', wasmBindgenVersion(), ['--no-default-features']);
  await installTool('wasm-pack', 'wasm-pack', WASM_PACK_VERSION, ['--locked']);
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

/** A browser and a software Vulkan driver: the tests run on them. */
async function installSystemPackages() {
  const missing = missingSystemPackages();
  if (missing.length === 0) return;
  const apt = findCommand('apt-get');
  if (!apt || process.getuid?.() !== 0) {
    throw new Error(
      `The tests need ${missing.join(', ')}. Install ${apt ? `with: sudo apt-get install -y ${missing.join(' ')}` : 'them'}` +
        ' (any Chromium or Chrome 150 or newer will do: set CHROMIUM to its path).',
    );
  }
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  await run(apt, ['update', '-q'], { env, allowFailure: true });
  await run(apt, ['install', '-y', '-q', '--no-install-recommends', ...missing], { env });
}

/** Everything a build needs, and with `tests` everything the tests need. Downloads overlap with compiling. */
export async function setup({ tests = true } = {}) {
  await checkMachine();
  const jobs = [installPackages(), installTarget().then(installTools)];
  if (tests) jobs.push(installSystemPackages());
  const failed = (await Promise.allSettled(jobs)).filter((job) => job.status === 'rejected');
  if (failed.length > 0) throw new Error(failed.map((job) => job.reason.message).join('\n'));
}

if (process.argv[1]?.endsWith('setup.mjs')) {
  const started = Date.now();
  try {
    await setup({ tests: process.argv[2] !== 'build' });
    console.log(`setup: ready (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  } catch (error) {
    console.error(`setup: ${error.message}`);
    process.exitCode = 1;
  }
}
