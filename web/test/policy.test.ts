import { describe, expect, it } from 'vitest';

import { confines } from '../demo/policy.js';
import { POLICY } from '../policy.mjs';

describe('policy', () => {
  it('ours_confines', () => expect(confines(POLICY)).toBe(true));
  it('one_of_several_is_enough', () => expect(confines(`script-src 'self', ${POLICY}`)).toBe(true));
  it.each([
    null,
    '',
    "script-src 'self'",
    "connect-src 'self' https://elsewhere.example",
    "default-src 'none'; connect-src *",
    "connect-src *; connect-src 'self'",
  ])('this_does_not: %s', (header) => expect(confines(header)).toBe(false));
  it('default_src_is_the_fallback', () => expect(confines("default-src 'self'")).toBe(true));
});
