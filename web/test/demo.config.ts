/** The demo with the fake core, for looking at its layout: `vite --config web/test/demo.config.ts`. Never shipped. */
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vite';

import demo from '../vite.config.js';

export default mergeConfig(demo, {
  resolve: {
    alias: {
      'tabtune-wasm': fileURLToPath(new URL('../src/testing/fake-wasm.ts', import.meta.url)),
    },
  },
  server: { port: 5199 },
});
