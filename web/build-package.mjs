// Builds the npm package: into dist/ the scripts of its entries, their types, the wasm and the licences of others, into dist/package what is packed.
// Fails above a size budget. With TABTUNE_CORE=quick the same around the quick build of the core, into dist-quick/, without types: for tests.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { built } from './core-kind.mjs';
import { NODE, PACKAGE, TESTING, notices } from './licences.mjs';
import { settingsSchemas } from './settings-schema.mjs';
import { stage } from './stage-package.mjs';
import { packageTypes } from './package-types.mjs';
import { root } from './toolchain.mjs';

/**
 * Maximum gzip sizes of the scripts, with the libraries in them and the glue of wasm-bindgen: 100 kB for page and worker together. The sentences of
 * the core's errors are in its module.
 */
const BUDGETS = { 'index.js': 37_000, 'worker.js': 58_500, 'parquet.js': 23_000 };

const [dist, core] = [join(root, built.package), join(root, built.core)];
const wasm = `${core}/tabtune_bg.wasm`;
if (!existsSync(wasm))
  throw new Error(`${wasm} is missing: run node web/build-wasm.mjs ${built.kind} first`);
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);

/** The Parquet reader remains a separate file: bundlers that make one script of a worker refuse a part that is loaded later. */
const PARQUET = './parquet.js';
/** The other entries share the page's script, and with it one class of errors. */
const INDEX = './index.js';
/** In Node, calls about files are those of browsers with another worker. */
const FILES = './files.js';
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const hash = createHash('sha256').update(readFileSync(wasm)).digest('hex');
const schemas = await settingsSchemas();
/** @type {import('esbuild').BuildOptions} */
const settings = {
  external: [PARQUET, INDEX],
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  sourcemap: built.kind === 'quick',
  legalComments: 'eof',
  define: {
    __TABTUNE_VERSION__: JSON.stringify(version),
    __TABTUNE_WASM_HASH__: JSON.stringify(hash),
    __TABTUNE_SETTINGS_SCHEMA__: JSON.stringify(schemas.settings),
    __TABTUNE_OPTIONS_SCHEMA__: JSON.stringify(schemas.options),
  },
};
await build({ ...settings, entryPoints: PACKAGE, alias: { 'tabtune-wasm': `${core}/tabtune.js` } });
await build({ ...settings, entryPoints: NODE, external: [FILES], platform: 'node' });
// The worker with a fake core, for tests of apps: what it takes from its surroundings is in memory, and no global object is changed.
await build({
  ...settings,
  entryPoints: TESTING,
  alias: { 'tabtune-wasm': join(root, 'web/src/testing/fake-wasm.ts') },
  inject: [join(root, 'web/src/testing/environment.ts')],
  platform: 'node',
  define: {
    ...settings.define,
    'globalThis.navigator': 'navigator',
    'globalThis.location': 'location',
  },
});
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

packageTypes(dist);
// Editors check files of settings with it.
writeFileSync(`${dist}/settings.schema.json`, `${JSON.stringify(schemas.settings, null, 1)}\n`);
writeFileSync(`${dist}/licences.txt`, notices({ ...PACKAGE, ...NODE, ...TESTING }));
stage();

for (const [name, budget] of Object.entries(BUDGETS)) {
  const bytes = gzipSync(readFileSync(`${dist}/${name}`), { level: 9 }).length;
  console.log(`${name}: ${bytes} of ${budget} bytes gzip`);
  if (bytes > budget) {
    console.error(`${name} is above its budget`);
    process.exitCode = 1;
  }
}
