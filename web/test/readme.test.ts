import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';

import { support } from '../src/index.js';
import { ERROR_CODES } from '../src/protocol/errors.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const packaged = readFileSync(new URL('../npm/README.md', import.meta.url), 'utf8');
const front = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

describe('readme', () => {
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
    for (const code of ERROR_CODES) expect(readme).toContain(`\`${code}\``);
  });
  it('its_programs_wait_for_calls_on_what_using_disposes', () => {
    const programs = [...packaged.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text);
    const using = programs.filter((program) => /\busing \w+ =/.test(program));
    expect(using.length).toBeGreaterThan(2);
    for (const program of using) expect(program).not.toMatch(/return (?!await )\w+\.\w+\(/);
  });
});
