// web/core → web/pkg (release) or web/pkg-quick (quick), two builds of which neither replaces the other.
//   node web/build-wasm.mjs           release: small, with a limit of its size
//   node web/build-wasm.mjs quick     for trying things out: larger, but built within seconds of a change; it also replays recorded
//                                     trajectories, for the tests
// Each build has its own dependencies: link-time optimization needs bitcode, the quick build machine code. Nothing is done if no input has changed,
// or if the same inputs were built before: by another checkout, or into a package (`TABTUNE_PACKAGE`: its folder, or an argument for `npm install`).
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { FOLDERS } from './core-kind.mjs';
import { takePackagedCore } from './packaged-core.mjs';
import { installTool } from './setup.mjs';
import { shortImports } from './short-imports.mjs';
import { Stages, script } from './stages.mjs';
import { cacheDir, environment, filesOf, line, ownTarget, read, root, run } from './toolchain.mjs';

/** @typedef {keyof typeof FOLDERS} Kind @typedef {(line: string) => void} OnLine */
/** Limits of the released core, in MB of its download. @type {Record<string, number>} */
const LIMITS = { gzip: 3.7, brotli: 2.7 };
const INPUTS =
  line`Cargo.toml Cargo.lock crate shaders web/border web/core web/bindgen web/build-wasm.mjs web/core-sentences.mjs web/short-imports.mjs web/quick.toml
  web/src/protocol/generated/worker-codes.ts`.flat();
const TARGET = 'wasm32-unknown-unknown';
/** It only calls cargo and wasm-bindgen. */
const WASM_PACK = '0.15.1';
/**
 * Functions with similar names are placed next to each other, which makes the download smaller by a hundredth; then names and producers are dropped.
 * A second round finds what the first one laid open: a quarter of a hundredth. The features that rustc emits by default are enabled.
 */
const WASM_OPT =
  line`-Oz --reorder-functions-by-name -Oz --strip-debug --strip-producers --enable-bulk-memory
  --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals --enable-reference-types
  --enable-multivalue`.flat();
export const STAGES = { release: 'browser core', quick: 'quick browser core' };
const STORED_BUILDS = 4;
const ADVICE =
  'mend what the compiler says above and run this again: what was compiled is kept. It needs 3 GB of disk and 4 GB of memory.';

/** Returns the digest of everything that a core is made of; documents are no part of it. @param {Kind} kind */
function inputDigest(kind) {
  const hash = createHash('sha256').update(kind);
  const files = INPUTS.flatMap((name) => filesOf(join(root, name))).filter(
    (path) => !path.endsWith('.md'),
  );
  for (const file of files) {
    const bytes = readFileSync(file);
    hash.update(`${file.slice(root.length)}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** Where finished builds of these inputs are kept for all checkouts. @param {Kind} kind @param {string} inputs */
const storeOf = (kind, inputs) => join(cacheDir, kind === 'quick' ? 'wasm-quick' : 'wasm', inputs);

/** Returns the record of the build in a folder. @param {string} folder @returns {{ inputs: string, sizes: Record<string, number> } | undefined} */
function recordIn(folder) {
  const path = join(folder, 'build.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** Copies a build; its record is written last, since without it a build does not count. @param {string} from @param {string} to */
function copyBuild(from, to) {
  rmSync(to, { recursive: true, force: true });
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('build.json') });
  cpSync(join(from, 'build.json'), join(to, 'build.json'));
}

/** Returns the record of the build for the inputs of this checkout, if there is one here, of another checkout, or in a package. @param {Kind} kind */
function currentBuild(kind) {
  const [folder, inputs] = [join(root, FOLDERS[kind].core), inputDigest(kind)];
  if (recordIn(folder)?.inputs !== inputs) {
    const stored = storeOf(kind, inputs);
    if (recordIn(stored)) copyBuild(stored, folder);
    else if (kind === 'quick' || !takePackagedCore(inputs, folder)) return undefined;
  }
  return recordIn(folder);
}

/** Returns whether a core of `kind` exists for the inputs of this checkout, so that nothing is compiled. @param {Kind} kind */
export const coreIsThere = (kind) => currentBuild(kind) !== undefined;

/**
 * Compiles a core into a folder. A third of the quick one would be names of functions, which every page would load; of the released one trap-unreached
 * and wasm-opt read them, and wasm-opt drops them.
 * @param {Kind} kind @param {string} folder @param {OnLine} onLine @param {Promise<unknown>} tools
 */
async function compile(kind, folder, onLine, tools) {
  const call = (/** @type {ReturnType<typeof line>} */ command) =>
    run(...command, { quiet: true, onLine });
  const made = ['--target', 'web', '--out-dir', folder, '--out-name', 'tabtune'];
  if (kind === 'quick') {
    const options = ['--target', TARGET, '--config', 'web/quick.toml', '--features', 'replay'];
    await call(line`cargo build --locked --manifest-path web/core/Cargo.toml ${options}`);
    await tools;
    const compiled = join(environment.CARGO_TARGET_DIR, TARGET, 'debug', 'tabtune_web.wasm');
    return call(line`wasm-bindgen ${made} --remove-name-section ${compiled}`);
  }
  await tools;
  if ((await read('wasm-pack', ['--version'])) !== `wasm-pack ${WASM_PACK}`)
    await installTool('wasm-pack', WASM_PACK, ['wasm-pack', '--version', WASM_PACK], onLine);
  const options = ['--profile', 'wasm', '--mode', 'no-install', '--no-pack', '--no-gitignore'];
  await call(line`wasm-pack build web/core ${options} ${made} -- --locked`);
  const wasm = join(folder, 'tabtune_bg.wasm');
  await call(line`trap-unreached ${wasm}`);
  return call(line`wasm-opt ${wasm} -o ${wasm} ${WASM_OPT}`);
}

/**
 * Lets the caller of wasm-bindgen's start function request the core's file, so that its bytes can be compared with those
 * of the build.
 * @param {string} glue
 */
function passFetch(glue) {
  const given = '({module_or_path} = module_or_path)';
  const changes = Object.entries({
    [given]: `var {fetched} = module_or_path;\n            ${given}`,
    'module_or_path = fetch(module_or_path);':
      'module_or_path = (fetched ?? fetch)(module_or_path);',
  });
  let text = readFileSync(glue, 'utf8');
  for (const [from, to] of changes) {
    // The start function is the last one with these lines.
    const at = text.lastIndexOf(from);
    if (at < 0)
      throw new Error(`${glue} has no ${from}: wasm-bindgen writes another start function now`);
    text = text.slice(0, at) + to + text.slice(at + from.length);
  }
  writeFileSync(glue, text);
}

/** Shortens the names of imports in a build and adds the sentences to its module, which it returns. @param {string} folder */
async function finished(folder) {
  // The npm packages may be installed while the core is compiled.
  const { withSentences } = await import('./core-sentences.mjs');
  const [module, glue] = [join(folder, 'tabtune_bg.wasm'), join(folder, 'tabtune.js')];
  const short = shortImports(readFileSync(module), readFileSync(glue, 'utf8'));
  const wasm = await withSentences(short.wasm);
  writeFileSync(module, wasm);
  writeFileSync(glue, short.glue);
  return wasm;
}

/**
 * Returns download sizes for a page, in bytes. Compressing well takes long, and only a release is published.
 * @param {Kind} kind @param {Buffer} wasm @returns {Record<string, number>}
 */
function sizesOf(kind, wasm) {
  const raw = wasm.length;
  if (kind === 'quick') return { raw };
  const params = {
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: raw,
  };
  const brotli = brotliCompressSync(wasm, { params }).length;
  return { raw, gzip: gzipSync(wasm, { level: 9 }).length, brotli };
}

/** Returns sizes in words; one above its limit is an error. @param {Record<string, number>} sizes */
function checked(sizes) {
  const words = Object.entries(sizes).map(([name, bytes]) => {
    const [mb, limit = Infinity] = [bytes / 1e6, LIMITS[name]];
    if (mb > limit)
      throw new Error(`tabtune_bg.wasm has ${mb} MB as ${name}, the limit is ${limit}`);
    return `${name} ${mb.toFixed(2)} MB`;
  });
  return words.join(', ');
}

/** Builds the folder of `kind` unless it is current. `tools` resolves once wasm-bindgen exists, which may be compiled in the meantime. @param {Kind} kind */
export async function buildWasm(
  kind,
  stages = new Stages([STAGES[kind]]),
  tools = Promise.resolve(),
) {
  const found = currentBuild(kind);
  if (found) return stages.done(STAGES[kind], `${kind}, current (${checked(found.sizes)})`);
  await stages.run(STAGES[kind], ADVICE, async (onLine) => {
    const [folder, inputs] = [join(root, FOLDERS[kind].core), inputDigest(kind)];
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    ownTarget();
    await compile(kind, folder, onLine, tools);
    passFetch(join(folder, 'tabtune.js'));
    const wasm = await finished(folder);
    const sizes = sizesOf(kind, wasm);
    console.log(`browser core: ${kind}, ${checked(sizes)}`);
    const record = { inputs, sha256: createHash('sha256').update(wasm).digest('hex'), sizes };
    writeFileSync(join(folder, 'build.json'), `${JSON.stringify(record, null, 2)}\n`);
    const stored = storeOf(kind, inputs);
    copyBuild(folder, stored);
    const all = readdirSync(dirname(stored)).map((name) => join(dirname(stored), name));
    const oldest = all
      .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
      .slice(STORED_BUILDS);
    for (const path of oldest) rmSync(path, { recursive: true, force: true });
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await script('wasm', async () => {
    const kind = /** @type {Kind} */ (process.argv[2] ?? 'release');
    if (!(kind in FOLDERS))
      throw new Error(`expected one of ${Object.keys(FOLDERS).join(', ')}, found ${kind}`);
    await buildWasm(kind);
  });
}
