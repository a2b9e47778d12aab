// Three programs of examples/ with a small model; `npm run lab -- bundlers examples` runs all of them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { build } from 'esbuild';
import { root } from '../../web/toolchain.mjs';
import * as verdicts from './examples-verdicts.mjs';
import { scenarios } from './scenario.mjs';

const PROGRAMS = ['fine-tune-on-chats', 'classify-by-label-words', 'continue-tomorrow'];
const folder = mkdtempSync(join(tmpdir(), 'tabtune-examples-'));
const { inPage } = scenarios({ folders: { '/examples/': folder } });

test.beforeAll(async () => {
  const lines = PROGRAMS.map((name) => `export * from './${name}';`);
  await build({
    stdin: {
      contents: [...lines, "export * as tabtune from 'tabtune';"].join('\n'),
      resolveDir: join(root, 'examples'),
    },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    outfile: join(folder, 'programs.js'),
    plugins: [
      {
        name: 'package',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^tabtune$/ }, () => ({ path: '/dist/index.js', external: true })),
      },
    ],
  });
});
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a trial of examples-page.mjs. @param {'fineTunes' | 'classifies' | 'continues'} name @returns {Promise<any>} */
const trial = (name) =>
  inPage(
    async (_, { name }) =>
      (await import('/browser/examples-page.mjs'))[
        /** @type {'fineTunes' | 'classifies' | 'continues'} */ (name)
      ](),
    { name },
  );

test('examples: a model is fine-tuned on chats', async () => {
  verdicts.fineTuned(await trial('fineTunes'));
});

test('examples: texts are classified by the words of their labels', async () => {
  verdicts.classified(await trial('classifies'));
});

test('examples: a run is saved, listed, continued and removed', async () => {
  verdicts.continued(await trial('continues'));
});

test('examples: all programs are linked from the package, and are short', () => {
  assert.deepEqual(verdicts.unlinked(), []);
});
