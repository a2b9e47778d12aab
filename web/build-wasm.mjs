// crate → cargo (profile wasm) → wasm-bindgen → wasm-opt -Oz → web/pkg, by wasm-pack with our own tools on the PATH.
// Does nothing when no input has changed. Fails when the result is larger than it may be. TABTUNE_QUICK=1 takes the profile
// wasm-quick and leaves out wasm-opt, which both take minutes, and with them the limits.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { WASM_PACK_VERSION, cacheDir, root, run } from './toolchain.mjs';

const MB = 1_000_000;
const LIMITS = { gzip: 3.8 * MB, brotli: 2.6 * MB };
const INPUTS = ['Cargo.toml', 'Cargo.lock', 'crate', 'shaders'];
const quick = process.env.TABTUNE_QUICK === '1';
const packageDir = join(root, 'web', 'pkg');
const wasmFile = join(packageDir, 'tabtune_bg.wasm');
const recordFile = join(packageDir, 'build.json');
/** Finished builds by the digest of their inputs, shared by all checkouts: a fresh clone builds nothing twice. */
const storeDir = join(cacheDir, 'wasm');
const STORED_BUILDS = 4;

function filesOf(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesOf(join(path, name)));
}

function inputDigest() {
  const hash = createHash('sha256').update(WASM_PACK_VERSION).update(quick ? 'quick' : 'small');
  for (const file of INPUTS.flatMap((name) => filesOf(join(root, name)))) {
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

function sizesOf(wasm) {
  const brotli = brotliCompressSync(wasm, {
    params: { [constants.BROTLI_PARAM_QUALITY]: quick ? 5 : 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: wasm.length },
  });
  return { raw: wasm.length, gzip: gzipSync(wasm, { level: 9 }).length, brotli: brotli.length };
}

function checkSizes(sizes) {
  if (quick) return;
  for (const [name, limit] of Object.entries(LIMITS)) {
    if (sizes[name] > limit) throw new Error(`tabtune_bg.wasm is ${sizes[name]} bytes as ${name}, the limit is ${limit}`);
  }
}

function describe(sizes) {
  return Object.entries(sizes)
    .map(([name, bytes]) => `${name} ${(bytes / MB).toFixed(2)} MB`)
    .join(', ');
}

/** The record of the build in web/pkg, if it is one of these inputs; one that another checkout made is taken from the cache. */
function currentBuild(inputs) {
  const recorded = (file) => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined);
  const record = existsSync(wasmFile) ? recorded(recordFile) : undefined;
  if (record?.inputs === inputs) return record;
  const stored = join(storeDir, inputs);
  const found = recorded(join(stored, 'build.json'));
  if (!found) return undefined;
  rmSync(packageDir, { recursive: true, force: true });
  cpSync(stored, packageDir, { recursive: true });
  return found;
}

/** Keeps web/pkg for other checkouts and drops the oldest builds. The record comes last: without it a stored build does not count. */
function storeBuild(inputs) {
  const stored = join(storeDir, inputs);
  rmSync(stored, { recursive: true, force: true });
  cpSync(packageDir, stored, { recursive: true, filter: (path) => path !== recordFile });
  cpSync(recordFile, join(stored, 'build.json'));
  const age = (name) => statSync(join(storeDir, name)).mtimeMs;
  const oldest = readdirSync(storeDir).sort((a, b) => age(b) - age(a)).slice(STORED_BUILDS);
  for (const name of oldest) rmSync(join(storeDir, name), { recursive: true, force: true });
}

/** Builds web/pkg unless it is current. */
export async function buildWasm() {
  const inputs = inputDigest();
  const record = currentBuild(inputs);
  if (record) {
    console.log(`wasm: current (${describe(record.sizes)})`);
    return checkSizes(record.sizes);
  }
  const started = Date.now();
  rmSync(packageDir, { recursive: true, force: true });
  mkdirSync(packageDir, { recursive: true });
  const options = ['--mode', 'no-install', '--target', 'web', '--profile', quick ? 'wasm-quick' : 'wasm', '--out-dir', packageDir, '--out-name', 'tabtune', '--no-pack'];
  if (quick) options.push('--no-opt');
  await run('wasm-pack', ['build', 'crate', ...options, '--', '--locked']);
  const wasm = readFileSync(wasmFile);
  const sizes = sizesOf(wasm);
  const sha256 = createHash('sha256').update(wasm).digest('hex');
  writeFileSync(recordFile, `${JSON.stringify({ inputs, sha256, sizes }, null, 2)}\n`);
  console.log(`wasm: built in ${((Date.now() - started) / 1000).toFixed(0)} s (${describe(sizes)})`);
  checkSizes(sizes);
  storeBuild(inputs);
}

if (process.argv[1]?.endsWith('build-wasm.mjs')) {
  try {
    await buildWasm();
  } catch (error) {
    console.error(`wasm: ${error.message}`);
    process.exitCode = 1;
  }
}
