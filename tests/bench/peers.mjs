// The libraries we are measured against: installed into the cache in these very versions, their pages bundled beside them.
import { build } from 'esbuild';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDir, run } from '../../web/toolchain.mjs';

const peersDir = join(cacheDir, 'peers');
export const pagesDir = join(peersDir, 'pages');

export const PEERS = {
  jax: { packages: { '@jax-js/jax': '0.1.25' } },
  tfjs: { packages: { '@tensorflow/tfjs': '4.22.0', '@tensorflow/tfjs-backend-webgpu': '4.22.0' } },
  nanogpt: { packages: { '@genai-fi/nanogpt': '1.3.0' }, alias: { nanogpt: '@genai-fi/nanogpt/dist' }, other: 'GELU instead of SwiGLU, as many parameters; own initial weights' },
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
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--save-exact', ...list], { cwd: folder });
  return folder;
}

/** Makes the page of a peer, below `pagesDir`. */
export async function preparePage(peer) {
  const folder = await install(peer);
  const alias = Object.entries(PEERS[peer].alias ?? {}).map(([name, path]) => [name, join(folder, 'node_modules', path)]);
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
  writeFileSync(join(pagesDir, `${peer}.html`), `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>${peer} benchmark</title>${script}\n`);
}
