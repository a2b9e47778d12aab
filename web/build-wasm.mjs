// web/core → web/pkg (release) or web/pkg-quick (quick), two builds of which neither replaces the other.
//   node web/build-wasm.mjs           release: wasm-pack, which calls cargo with link-time optimization and wasm-bindgen; then trap-unreached
//                                     and wasm-opt -Oz; fails if the result is larger than allowed
//   node web/build-wasm.mjs quick     only cargo and wasm-bindgen, for trying things out: larger, but built within seconds of a change; it
//                                     also replays recorded trajectories, for the tests
// Each build has its own dependencies: link-time optimization needs bitcode, the quick build machine code. Nothing is done if no input has changed,
// or if the same inputs were built before: by another checkout, or into a package (`TABTUNE_PACKAGE`: its folder, or an argument for `npm pack`).
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { FOLDERS } from './core-kind.mjs';
import { takePackagedCore } from './packaged-core.mjs';
import { StageError, Stages } from './stages.mjs';
import { cacheDir, environment, filesOf, ownTarget, root, run } from './toolchain.mjs';
import { installWasmPack } from './wasm-pack.mjs';

const MB = 1_000_000;
const LIMITS = { gzip: 3.5 * MB, brotli: 2.54 * MB };
const INPUTS = [
  'Cargo.toml',
  'Cargo.lock',
  'crate',
  'shaders',
  ...['core', 'bindgen', 'build-wasm.mjs', 'quick.toml', 'wasm-pack.mjs'].map((name) => join('web', name)),
];
const PACKAGE = join('web', 'core');
const TARGET = 'wasm32-unknown-unknown';
/**
 * Functions with similar names are placed next to each other, which makes the download smaller by a hundredth; then names and producers are dropped.
 * A second round finds what the first one laid open: a quarter of a hundredth. The features that rustc emits by default are enabled.
 */
const WASM_OPT = ['-Oz', '--reorder-functions-by-name', '-Oz', '--strip-debug', '--strip-producers', '--enable-bulk-memory'].concat([
  '--enable-nontrapping-float-to-int',
  '--enable-sign-ext',
  '--enable-mutable-globals',
  '--enable-reference-types',
  '--enable-multivalue',
]);
/** The profile of the released core in Cargo.toml. */
const PROFILE = 'wasm';
/** Returns where Cargo leaves a kind of core. */
const compiledAs = (kind) => join(environment.CARGO_TARGET_DIR, TARGET, kind === 'release' ? PROFILE : 'debug', 'tabtune_web.wasm');
export const STAGES = { release: 'browser core', quick: 'quick browser core' };
const STORED_BUILDS = 4;
const ADVICE = 'mend what the compiler says above and run this again: what was compiled is kept. It needs 3 GB of disk and 4 GB of memory.';

/** A kind of build with its paths: the output folder, and the store of finished builds by the digest of their inputs, shared by all checkouts. */
function build(kind) {
  const folder = join(root, FOLDERS[kind].core);
  return {
    kind,
    folder,
    wasm: join(folder, 'tabtune_bg.wasm'),
    record: join(folder, 'build.json'),
    store: join(cacheDir, kind === 'quick' ? 'wasm-quick' : 'wasm'),
  };
}

function inputDigest(kind) {
  const hash = createHash('sha256').update(kind);
  // Documents are not part of the module.
  const files = INPUTS.flatMap((name) => filesOf(join(root, name))).filter((file) => !file.endsWith('.md'));
  for (const file of files) {
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

/** Download sizes for a page, in bytes. Compressing well takes long, and only a release is published. */
function sizesOf(kind, wasm) {
  if (kind === 'quick') return { raw: wasm.length };
  const brotli = brotliCompressSync(wasm, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: wasm.length },
  });
  return { raw: wasm.length, gzip: gzipSync(wasm, { level: 9 }).length, brotli: brotli.length };
}

function checkSizes(sizes) {
  for (const [name, limit] of Object.entries(LIMITS)) {
    if (sizes[name] > limit) throw new Error(`tabtune_bg.wasm is ${sizes[name]} bytes as ${name}, the limit is ${limit}`);
  }
}

function describe(sizes) {
  return Object.entries(sizes)
    .map(([name, bytes]) => `${name} ${(bytes / MB).toFixed(2)} MB`)
    .join(', ');
}

/**
 * Returns the record of the build in its folder, if it matches these inputs; a build that another checkout made, or that a package contains, is
 * copied there.
 */
function currentBuild({ kind, folder, wasm, record, store }, inputs) {
  const recorded = () => (existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : undefined);
  const present = existsSync(wasm) ? recorded() : undefined;
  if (present?.inputs === inputs) return present;
  const stored = join(store, inputs);
  if (existsSync(join(stored, 'build.json'))) {
    rmSync(folder, { recursive: true, force: true });
    cpSync(stored, folder, { recursive: true });
    return recorded();
  }
  return kind === 'release' && takePackagedCore(inputs, folder) ? recorded() : undefined;
}

/** Returns whether a core of `kind` exists for the inputs of this checkout, so that nothing is compiled. */
export const coreIsThere = (kind) => currentBuild(build(kind), inputDigest(kind)) !== undefined;

/** Stores a build for other checkouts and drops the oldest ones. The record is written last: without it a stored build does not count. */
function storeBuild({ folder, record, store }, inputs) {
  const stored = join(store, inputs);
  rmSync(stored, { recursive: true, force: true });
  cpSync(folder, stored, { recursive: true, filter: (path) => path !== record });
  cpSync(record, join(stored, 'build.json'));
  const age = (name) => statSync(join(store, name)).mtimeMs;
  const oldest = readdirSync(store)
    .sort((a, b) => age(b) - age(a))
    .slice(STORED_BUILDS);
  for (const name of oldest) rmSync(join(store, name), { recursive: true, force: true });
}

/** Compiles the quick core, which replays recorded trajectories. A third of it would be names of functions, which every page would load. */
async function compileQuick(folder, onLine, tools) {
  const options = ['--locked', '--manifest-path', join(PACKAGE, 'Cargo.toml'), '--target', TARGET, '--config', join('web', 'quick.toml')];
  await run('cargo', ['build', ...options, '--features', 'replay'], { quiet: true, onLine });
  await tools;
  const made = ['--remove-name-section', '--out-dir', folder, '--out-name', 'tabtune'];
  await run('wasm-bindgen', ['--target', 'web', ...made, compiledAs('quick')], { quiet: true, onLine });
}

/** Compiles the released core; trap-unreached and wasm-opt read the names of its functions, and wasm-opt drops them. */
async function compileRelease({ folder, wasm }, onLine, tools) {
  await tools;
  await installWasmPack(onLine);
  const made = ['--no-pack', '--no-gitignore', '--out-dir', folder, '--out-name', 'tabtune'];
  const options = ['--profile', PROFILE, '--mode', 'no-install', '--target', 'web', ...made, '--', '--locked'];
  await run('wasm-pack', ['build', PACKAGE, ...options], { quiet: true, onLine });
  await run('trap-unreached', [wasm], { quiet: true, onLine });
  await run('wasm-opt', [wasm, '-o', wasm, ...WASM_OPT], { quiet: true, onLine });
}

/** Lets the caller of wasm-bindgen's start function request the core's file, so that its bytes can be compared with those of the build. */
function passFetch(glue) {
  const changes = [
    ['({module_or_path} = module_or_path)', 'var {fetched} = module_or_path;\n            ({module_or_path} = module_or_path)'],
    ['module_or_path = fetch(module_or_path);', 'module_or_path = (fetched ?? fetch)(module_or_path);'],
  ];
  const text = changes.reduce(
    (all, [from, to]) => {
      // The start function is the last one with these lines.
      const at = all.lastIndexOf(from);
      if (at < 0) throw new Error(`${glue} has no ${from}: wasm-bindgen writes another start function now`);
      return all.slice(0, at) + to + all.slice(at + from.length);
    },
    readFileSync(glue, 'utf8'),
  );
  writeFileSync(glue, text);
}

async function compile(kind, place, onLine, tools) {
  ownTarget();
  await (kind === 'release' ? compileRelease(place, onLine, tools) : compileQuick(place.folder, onLine, tools));
  passFetch(join(place.folder, 'tabtune.js'));
}

/** Builds the folder of `kind` unless it is current. `tools` resolves once wasm-bindgen exists, which may be compiled in the meantime. */
export async function buildWasm(kind, stages = new Stages([STAGES[kind]]), tools = Promise.resolve()) {
  const inputs = inputDigest(kind);
  const place = build(kind);
  const found = currentBuild(place, inputs);
  if (found) {
    stages.done(STAGES[kind], `${kind}, current (${describe(found.sizes)})`);
    if (kind === 'release') checkSizes(found.sizes);
    return;
  }
  const key = `browser core, ${kind}${existsSync(compiledAs(kind)) ? '' : ', first'}`;
  await stages.run(STAGES[kind], { key, advice: ADVICE }, async (onLine) => {
    rmSync(place.folder, { recursive: true, force: true });
    mkdirSync(place.folder, { recursive: true });
    await compile(kind, place, onLine, tools);
    const wasm = readFileSync(place.wasm);
    const sizes = sizesOf(kind, wasm);
    const sha256 = createHash('sha256').update(wasm).digest('hex');
    writeFileSync(place.record, `${JSON.stringify({ inputs, sha256, sizes }, null, 2)}\n`);
    console.log(`browser core: ${kind}, ${describe(sizes)}`);
    if (kind === 'release') checkSizes(sizes);
    storeBuild(place, inputs);
  });
}

if (process.argv[1]?.endsWith('build-wasm.mjs')) {
  const kind = process.argv[2] ?? 'release';
  try {
    if (!(kind in FOLDERS)) throw new Error(`expected one of ${Object.keys(FOLDERS).join(', ')}, found ${kind}`);
    await buildWasm(kind);
  } catch (error) {
    if (!(error instanceof StageError)) console.error(`wasm: ${error.message}`);
    process.exitCode = 1;
  }
}
