import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import type { Plugin } from 'vite';

import { built } from './core-kind.mjs';
import { PAGE, notices } from './licences.mjs';
import { DEMO_POLICY } from './policy.mjs';
import { settingsSchemas } from './settings-schema.mjs';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const core = at(`../${built.core}`);
const wasm = `${core}/tabtune_bg.wasm`;
const schemas = await settingsSchemas();
const { version } = JSON.parse(readFileSync(at('../package.json'), 'utf8')) as { version: string };

/** The policy inside the built page too, for hosts that cannot send headers; it does not reach the worker. */
const policyInPage: Plugin = {
  name: 'policy-in-page',
  transformIndexHtml: (_, { server }) =>
    server
      ? []
      : [
          {
            tag: 'meta',
            attrs: { 'http-equiv': 'Content-Security-Policy', content: DEMO_POLICY },
            injectTo: 'head-prepend',
          },
        ],
};

/** The licences of others, to which the page links: a file of the built page, made on request while it is served from its sources. */
const licencesOfOthers: Plugin = {
  name: 'licences-of-others',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'licences.txt', source: notices(PAGE) });
  },
  configureServer({ middlewares }) {
    middlewares.use('/licences.txt', (_, response) => {
      response.setHeader('Content-Type', 'text/plain; charset=utf-8');
      response.end(notices(PAGE));
    });
  },
};

/** The demo page, served by `npm start`, and built into `web/dist`. */
export default defineConfig({
  root: at('./demo'),
  cacheDir: at('../node_modules/.vite'),
  base: './',
  define: {
    __TABTUNE_VERSION__: JSON.stringify(version),
    __TABTUNE_WASM_HASH__: JSON.stringify(
      existsSync(wasm) ? createHash('sha256').update(readFileSync(wasm)).digest('hex') : 'unbuilt',
    ),
    __TABTUNE_SETTINGS_SCHEMA__: JSON.stringify(schemas.settings),
    __TABTUNE_OPTIONS_SCHEMA__: JSON.stringify(schemas.options),
  },
  optimizeDeps: { include: ['uplot', 'idb'] },
  resolve: {
    alias: [
      { find: 'tabtune-wasm', replacement: `${core}/tabtune.js` },
      { find: /^tabtune\/worker(?=\?)/, replacement: at('./src/worker/worker.ts') },
      { find: /^tabtune\/schema$/, replacement: at('./src/schema.ts') },
      { find: /^tabtune$/, replacement: at('./src/index.ts') },
    ],
  },
  worker: { format: 'es' },
  build: {
    outDir: at(`../${built.demo}`),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  plugins: [policyInPage, licencesOfOthers],
  server: {
    port: 5173,
    fs: { allow: [at('..')] },
    headers: { 'Content-Security-Policy': DEMO_POLICY },
  },
  preview: { headers: { 'Content-Security-Policy': DEMO_POLICY } },
});
