import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: at('.'),
  cacheDir: at('../node_modules/.vite'),
  resolve: {
    alias: {
      'tabtune-wasm': at('./src/testing/fake-wasm.ts'),
      'tabtune/testing': at('./src/testing.ts'),
      tabtune: at('./src/index.ts'),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    silent: 'passed-only',
    setupFiles: ['./test/setup.ts'],
    // A busy machine is no failure.
    testTimeout: 20_000,
  },
});
