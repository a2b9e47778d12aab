// tabtune/testing: the sample in the package's README passes under Node's runner and under Vitest, on the built package, without a browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { transformSync } from 'esbuild';
import { environment, root } from '../../web/toolchain.mjs';
import { linked } from './tarball.mjs';

const readme = readFileSync(join(root, 'web', 'npm', 'README.md'), 'utf8');
const [, SAMPLE = ''] = /^```ts\n([^`]*'tabtune\/testing'.*?)^```$/ms.exec(readme) ?? [];
/** Arguments for Node that run one file of tests, by the module that has `test`, and what is printed if one test passes. */
const RUNNERS = {
  'node:test': { args: ['--test', 'sample.test.mjs'], passed: /^# pass 1$/m },
  vitest: {
    args: [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', '.'],
    passed: /Tests\s+1 passed/,
  },
};

let app;
let folder;
test.beforeAll(() => {
  app = linked();
  folder = app.folder;
  symlinkSync(join(root, 'node_modules', 'vitest'), join(folder, 'node_modules', 'vitest'));
  const { code } = transformSync(SAMPLE, { loader: 'ts', target: 'node20' });
  writeFileSync(join(folder, 'sample.mjs'), code);
});
test.afterAll(() => app?.remove());

/** Runs a file of tests; returns what the runner prints. */
function run(runner, tests) {
  const imports = `import { test } from '${runner}';\nimport { recovers } from './sample.mjs';\n`;
  writeFileSync(join(folder, 'sample.test.mjs'), imports + tests);
  return execFileSync(process.execPath, RUNNERS[runner].args, {
    cwd: folder,
    env: { ...environment, NO_COLOR: '1' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

for (const [runner, { passed }] of Object.entries(RUNNERS)) {
  test(`testing: the sample passes under ${runner}`, () => {
    assert.match(run(runner, "test('recovers', recovers);"), passed);
  });
  test(`testing: a test that does not hold fails under ${runner}`, () => {
    const broken = "test('fails', async () => { await recovers(); throw new Error('planted'); });";
    assert.throws(() => run(runner, broken), /planted|Command failed/);
  });
}
