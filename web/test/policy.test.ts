import { describe, expect, it } from 'vitest';

import { confines } from '../demo/policy.js';
import { DEMO_POLICY, POLICY } from '../policy.mjs';

describe('policy', () => {
  it.each([POLICY, DEMO_POLICY])('ours_confines: %s', (policy) =>
    expect(confines(policy)).toBe(true),
  );
  it('only_the_demo_may_ask_the_hub_and_nothing_else', () => {
    expect(POLICY).toContain("; connect-src 'self'; ");
    expect(DEMO_POLICY).toBe(
      POLICY.replace(
        "connect-src 'self'",
        "connect-src 'self' https://huggingface.co https://cdn-lfs.huggingface.co https://*.hf.co",
      ),
    );
  });
  it('one_of_several_is_enough', () => expect(confines(`script-src 'self', ${POLICY}`)).toBe(true));
  it.each([
    null,
    '',
    "script-src 'self'",
    "connect-src 'self' https://elsewhere.example",
    "default-src 'none'; connect-src *",
    "connect-src 'self' https://huggingface.co https://elsewhere.example",
    "connect-src 'self' https://*.co",
    "connect-src 'self' https:",
    "connect-src *; connect-src 'self'",
  ])('this_does_not: %s', (header) => expect(confines(header)).toBe(false));
  it('default_src_is_the_fallback', () => expect(confines("default-src 'self'")).toBe(true));
});
