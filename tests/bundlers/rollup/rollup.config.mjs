import { nodeResolve } from '@rollup/plugin-node-resolve';
import { importMetaAssets } from '@web/rollup-plugin-import-meta-assets';

const resolve = nodeResolve({ browser: true });

export default [
  // The worker is an entry of its own, next to that of the page; the plugin copies the wasm.
  {
    input: { main: 'main.js', worker: 'tabtune/worker' },
    output: { dir: 'dist', format: 'es' },
    plugins: [resolve, importMetaAssets({ exclude: '**/tabtune/dist/index.js' })],
  },
  // Worker and wasm are copied next to the bundle.
  { input: 'main.js', output: { dir: 'copied', format: 'es' }, plugins: [resolve] },
];
