// The declarations by which the worker calls the core are those of the built module, without the functions that only tests call.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { DECLARATION, declaration } from '../../web/generate.mjs';
import { root } from '../../web/toolchain.mjs';

test("the worker's declarations match the exports of the core", () => {
  const committed = readFileSync(join(root, DECLARATION), 'utf8');
  assert.equal(declaration(built.core), committed, 'run npm run generate');
});
