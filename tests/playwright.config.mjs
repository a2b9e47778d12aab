// Browser tests, run by Playwright Test in projects: npm test runs the first two, `npm run release-check` and `npm run lab -- torture` the others.
// The tests start their browsers themselves, since each needs a profile on disk, WebGPU's flags and its own site.
import { join } from 'node:path';
import { defineConfig } from '@playwright/test';
import { cacheDir } from '../web/toolchain.mjs';
import { AT_ONCE } from './counts.mjs';

/** Tests that also run the native program, and the slowest ones, which start first. */
const WITH_PROGRAM = 'browser/survival-*.test.mjs';
/** Tests of the release build. */
const OF_THE_RELEASE = ['builds', 'package', 'packed'].map((name) => `browser/${name}.test.mjs`);

export default defineConfig({
  testDir: '.',
  outputDir: join(cacheDir, 'playwright'),
  reporter: 'list',
  retries: 0,
  workers: AT_ONCE,
  timeout: 25 * 60 * 1000,
  expect: { timeout: 60_000 },
  // They are modules for this version of Node already, and functions that run in pages are passed as their text.
  build: { external: ['**/*'] },
  projects: [
    { name: 'with-program', testMatch: WITH_PROGRAM },
    {
      name: 'browser',
      testMatch: 'browser/*.test.mjs',
      testIgnore: [WITH_PROGRAM, ...OF_THE_RELEASE],
    },
    { name: 'release', testMatch: OF_THE_RELEASE, workers: 1 },
    { name: 'torture', testMatch: 'torture/full.test.mjs', timeout: 60 * 60 * 1000, workers: 1 },
  ],
});
