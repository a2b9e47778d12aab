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
import { root } from './toolchain.mjs';

/**
 * Maximum gzip size of the package's JavaScript, page and worker together, without the code for Parquet files: our own code, and including the
 * libraries and the glue of wasm-bindgen. The sentences of errors and warnings, which the core does not have, are 14 kB of it.
 */
const OWN_BUDGET = 78_000;
const JS_BUDGET = 90_000;

const at = (/** @type {string} */ path) => join(import.meta.dirname, path);
const [dist, core] = [join(root, built.package), join(root, built.core)];
const wasm = `${core}/tabtune_bg.wasm`;
if (!existsSync(wasm)) {
  console.error(`${wasm} is missing: run node web/build-wasm.mjs${built.kind === 'quick' ? ' quick' : ''} first`);
  process.exit(1);
}
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);

/**
 * The Parquet reader remains a separate file, at an address that bundlers copy: bundlers that make one script of a worker refuse a part that is
 * loaded later.
 * @type {import('esbuild').Plugin}
 */
const parquetApart = {
  name: 'parquet-apart',
  setup: ({ onLoad }) =>
    onLoad({ filter: /worker[\\/]data\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const contents = source.replace("import('./parquet.js')", "import(new URL('./parquet.js', import.meta.url).href)");
      if (contents === source) throw new Error(`${path} does not import parquet.js`);
      return { contents, loader: 'ts' };
    }),
};

const options = /** @satisfies {import('esbuild').BuildOptions} */ ({
  entryPoints: [
    { in: at('src/index.ts'), out: 'index' },
    { in: at('src/worker/worker.ts'), out: 'worker' },
    { in: at('src/worker/parquet.ts'), out: 'parquet' },
  ],
  outdir: dist,
  plugins: [parquetApart],
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  sourcemap: true,
  legalComments: 'eof',
  define: {
    __TABTUNE_VERSION__: JSON.stringify(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version),
    __TABTUNE_WASM_HASH__: JSON.stringify(createHash('sha256').update(readFileSync(wasm)).digest('hex')),
  },
});
await build({ ...options, alias: { 'tabtune-wasm': `${core}/tabtune.js` } });
// Makes bundlers leave the import itself alone; comments that say so do not survive esbuild.
const worker = readFileSync(`${dist}/worker.js`, 'utf8');
const ignored = worker.replace(/import\((?=new URL\("\.\/parquet\.js")/, 'import(/* @vite-ignore *//* webpackIgnore: true */');
writeFileSync(`${dist}/worker.js`, ignored);
copyFileSync(wasm, `${dist}/tabtune_bg.wasm`);
// Files that allow a checkout of the same sources to serve this core without compiling it: packaged-core.mjs.
mkdirSync(`${dist}/core`);
for (const name of ['build.json', 'tabtune.d.ts', 'tabtune.js', 'tabtune_bg.wasm.d.ts'])
  copyFileSync(`${core}/${name}`, `${dist}/core/${name}`);
if (built.kind === 'quick') process.exit(0);

const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--project', at('tsconfig.package.json')];
if (spawnSync(process.execPath, tsc, { stdio: 'inherit' }).status !== 0) process.exit(1);
// The worker exports nothing: it is imported to run.
writeFileSync(`${dist}/worker.d.ts`, 'export {};\n');
writeFileSync(`${dist}/licences.txt`, notices(PACKAGE));

/** @param {Uint8Array[]} files */
const zipped = (...files) => files.reduce((total, bytes) => total + gzipSync(bytes).length, 0);
const { outputFiles } = await build({ ...options, external: ['tabtune-wasm'], packages: 'external', sourcemap: false, write: false });
/** @type {[what: string, bytes: number, budget: number][]} */
const sizes = [
  ['package JavaScript of our own', zipped(...outputFiles.map(({ contents }) => contents)), OWN_BUDGET],
  ['package JavaScript', zipped(...['index.js', 'worker.js'].map((name) => readFileSync(`${dist}/${name}`))), JS_BUDGET],
];
for (const [what, bytes, budget] of sizes) {
  console.log(`${what}: ${bytes} of ${budget} bytes gzip`);
  if (bytes <= budget) continue;
  console.error(`${what} is above its budget`);
  process.exitCode = 1;
}
