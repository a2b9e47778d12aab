import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';

import { support } from '../src/index.js';
import { ERROR_CODES } from '../src/protocol/errors.js';
import { fakeWorker } from './channel.js';
import { finetune } from './example.js';
import { fake } from './fake-wasm.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const front = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

describe('readme', () => {
  it('example_is_the_tested_file', () => {
    const example = readFileSync(new URL('./example.ts', import.meta.url), 'utf8').trim();
    expect(readme).toContain(example);
  });
  it('example_runs', async () => {
    fake.stepMillis = 0;
    fake.checkpointBytes = 1000;
    vi.stubGlobal('isSecureContext', true);
    const gpu = {
      requestAdapter: async () => ({
        info: { vendor: 'v', architecture: 'a', description: 'd' },
        limits: { maxStorageBuffersPerShaderStage: 8 },
        features: [],
      }),
    };
    vi.stubGlobal('Worker', EventTarget);
    vi.stubGlobal('navigator', { gpu, userAgent: 'test' });
    const model = new File(['GGUF and the rest'], 'model.gguf');
    const zip = await finetune([model], new File(['words '.repeat(200)], 'text.txt'), {
      worker: fakeWorker(),
    });
    expect(zip.size).toBeGreaterThan(1_000_000);
  });
  it.each([
    'Chrome/100.0',
    'Android 14; Chrome/100.0',
    'Firefox/120.0',
    'Version/17.0 Safari/605.1',
    'iPhone; Version/17.0 Safari/605.1',
  ])('names_the_versions_that_support_asks_of_%s', async (userAgent) => {
    vi.stubGlobal('isSecureContext', true);
    vi.stubGlobal('Worker', EventTarget);
    vi.stubGlobal('navigator', { userAgent });
    const { code, help = '' } = await support();
    expect(code).toBe('UNSUPPORTED_BROWSER');
    const section = front.slice(front.indexOf('## Browsers'), front.indexOf('## Which model'));
    const versions = help.match(/\d+/g) ?? [];
    expect(versions).not.toEqual([]);
    for (const version of versions) expect(section).toMatch(new RegExp(`\\b${version}\\b`));
  });
  it('every_error_code_is_listed', () => {
    for (const code of ERROR_CODES) expect(readme).toContain(`| \`${code}\` |`);
  });
});
