// The competitors in the benchmark: libraries, installed into the cache in exactly these versions, and our model in Burn's own operations, built
// there. Their pages are bundled next to them.
import { build } from 'esbuild';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDir, environment, run } from '../../web/toolchain.mjs';

const peersDir = join(cacheDir, 'peers');
export const pagesDir = join(peersDir, 'pages');

export const PEERS = {
  jax: { packages: { '@jax-js/jax': '0.1.25' } },
  tfjs: { packages: { '@tensorflow/tfjs': '4.22.0', '@tensorflow/tfjs-backend-webgpu': '4.22.0' } },
  stock: { built: true },
  nanogpt: {
    packages: { '@genai-fi/nanogpt': '1.3.0' },
    alias: { nanogpt: '@genai-fi/nanogpt/dist' },
    other: 'GELU instead of SwiGLU, as many parameters; own initial weights',
  },
};

function versionIn(folder, name) {
  const file = join(folder, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
}

/** Installs what is missing. No install scripts run. */
async function install(peer) {
  const folder = join(peersDir, peer);
  const wanted = Object.entries(PEERS[peer].packages);
  if (wanted.every(([name, version]) => versionIn(folder, name) === version)) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const list = wanted.map(([name, version]) => `${name}@${version}`);
  await run(
    'npm',
    [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--save-exact',
      ...list,
    ],
    { cwd: folder },
  );
  return folder;
}

/** Builds the unmodified crate in `stock/` into a module for pages. */
async function buildStock() {
  const folder = join(peersDir, 'stock');
  const target = ['--target', 'wasm32-unknown-unknown', '--profile', 'wasm', '--locked'];
  // The same flag as for our own module in `web/build-wasm.mjs`.
  const link = ['-C', 'link-arg=--export=__wasm_call_ctors'];
  await run('cargo', [
    'rustc',
    '--package',
    'tabtune-bench',
    '--lib',
    '--crate-type',
    'cdylib',
    ...target,
    '--',
    ...link,
  ]);
  const wasm = join(
    environment.CARGO_TARGET_DIR,
    'wasm32-unknown-unknown',
    'wasm',
    'tabtune_bench.wasm',
  );
  await run('wasm-bindgen', [wasm, '--target', 'web', '--out-dir', folder]);
  mkdirSync(pagesDir, { recursive: true });
  copyFileSync(join(folder, 'tabtune_bench_bg.wasm'), join(pagesDir, 'tabtune_bench_bg.wasm'));
  return folder;
}

/** Builds the page of a competitor, below `pagesDir`. */
export async function preparePage(peer) {
  const { alias: own = {}, built } = PEERS[peer];
  const folder = built ? await buildStock() : await install(peer);
  const alias = built
    ? [['tabtune-bench', join(folder, 'tabtune_bench.js')]]
    : Object.entries(own).map(([name, path]) => [name, join(folder, 'node_modules', path)]);
  await build({
    entryPoints: [fileURLToPath(new URL(`./pages/${peer}.mjs`, import.meta.url))],
    outfile: join(pagesDir, `${peer}.js`),
    bundle: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'error',
    nodePaths: [join(folder, 'node_modules')],
    alias: Object.fromEntries(alias),
  });
  const script = `<script type="module" src="./${peer}.js"></script>`;
  writeFileSync(
    join(pagesDir, `${peer}.html`),
    `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>${peer} benchmark</title>${script}\n`,
  );
}
