/** The files generated from the core's schema. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { generated, SCHEMA } from '../generate.mjs';

const text = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('generated files', () => {
  it.each(Object.entries(generated(JSON.parse(text(SCHEMA)))))('%s_is_current', (path, made) => {
    expect(text(path), 'run npm run generate').toBe(made);
  });
});
