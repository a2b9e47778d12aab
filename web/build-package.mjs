// Builds the npm package into dist/: index.js, worker.js, their types, the wasm, and the licences of others. Fails above the size budget.
// With TABTUNE_CORE=quick the same around the quick build of the core, into dist-quick/, without types: for tests.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { built } from './core-kind.mjs';
import { PACKAGE, notices } from './licences.mjs';
import { line, root } from './toolchain.mjs';

/**
 * Maximum gzip size of the package's JavaScript, page and worker together, without the code for Parquet files: our own code, and including the
 * libraries and the glue of wasm-bindgen. The sentences of errors and warnings, which the core does not have, are 14 kB of it.
 */
const OWN_BUDGET = 81_000;
const JS_BUDGET = 93_000;

const [dist, core] = [join(root, built.package), join(root, built.core)];
const wasm = `${core}/tabtune_bg.wasm`;
if (!existsSync(wasm))
  throw new Error(`${wasm} is missing: run node web/build-wasm.mjs ${built.kind} first`);
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);

/** The Parquet reader remains a separate file: bundlers that make one script of a worker refuse a part that is loaded later. */
const PARQUET = './parquet.js';
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const hash = createHash('sha256').update(readFileSync(wasm)).digest('hex');
const options = /** @satisfies {import('esbuild').BuildOptions} */ ({
  entryPoints: PACKAGE,
  external: ['tabtune-wasm', PARQUET],
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  sourcemap: true,
  legalComments: 'eof',
  define: {
    __TABTUNE_VERSION__: JSON.stringify(version),
    __TABTUNE_WASM_HASH__: JSON.stringify(hash),
  },
});
await build({ ...options, alias: { 'tabtune-wasm': `${core}/tabtune.js` } });
// An address that bundlers copy, in an import that they leave alone; comments that say so do not survive esbuild.
const worker = readFileSync(`${dist}/worker.js`, 'utf8');
const address = `/* @vite-ignore *//* webpackIgnore: true */new URL("${PARQUET}",import.meta.url).href`;
const marked = worker.replace(`import("${PARQUET}")`, `import(${address})`);
if (marked === worker) throw new Error(`${dist}/worker.js does not import ${PARQUET}`);
writeFileSync(`${dist}/worker.js`, marked);
copyFileSync(wasm, `${dist}/tabtune_bg.wasm`);
// Files that allow a checkout of the same sources to serve this core without compiling it: packaged-core.mjs.
mkdirSync(`${dist}/core`);
for (const name of ['build.json', 'tabtune.d.ts', 'tabtune.js', 'tabtune_bg.wasm.d.ts'])
  copyFileSync(`${core}/${name}`, `${dist}/core/${name}`);
if (built.kind === 'quick') process.exit(0);

const types = line`node node_modules/typescript/bin/tsc --project web/tsconfig.package.json`;
if (spawnSync(...types, { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
// The worker exports nothing: it is imported to run.
writeFileSync(`${dist}/worker.d.ts`, 'export {};\n');
writeFileSync(`${dist}/licences.txt`, notices(PACKAGE));

/** Prints the size of files and compares it with a budget. @param {string} what @param {number} budget @param {Uint8Array[]} files */
function weigh(what, budget, files) {
  const bytes = files.reduce((total, each) => total + gzipSync(each).length, 0);
  console.log(`${what}: ${bytes} of ${budget} bytes gzip`);
  if (bytes <= budget) return;
  console.error(`${what} is above its budget`);
  process.exitCode = 1;
}
const { outputFiles } = await build({
  ...options,
  packages: 'external',
  sourcemap: false,
  write: false,
});
const own = outputFiles.map(({ contents }) => contents);
weigh('package JavaScript of our own', OWN_BUDGET, own);
const whole = ['index.js', 'worker.js'].map((name) => readFileSync(`${dist}/${name}`));
weigh('package JavaScript', JS_BUDGET, whole);
