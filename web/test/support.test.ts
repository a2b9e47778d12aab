/** Help in a browser that has no WebGPU, or no adapter. */
import { afterEach, expect, it, vi } from 'vitest';
import { support } from '../src/page/support.js';

const agent = (system: string): string =>
  `Mozilla/5.0 (${system}; rv:153.0) Gecko/20100101 Firefox/153.0`;

/** Returns the help that a Firefox on this system gets. */
async function help(system: string, gpu?: Partial<GPU>): Promise<string | undefined> {
  vi.stubGlobal('Worker', EventTarget);
  vi.stubGlobal('navigator', { userAgent: agent(system), gpu });
  return (await support()).help;
}
afterEach(() => void vi.unstubAllGlobals());

it('firefox_is_told_how_webgpu_is_switched_on_there', async () => {
  expect(await help('X11; Linux x86_64')).toContain('dom.webgpu.enabled');
  for (const system of ['Windows NT 10.0; Win64; x64', 'Macintosh; Intel Mac OS X 10.15'])
    expect(await help(system)).toMatch(/141 and later on Windows, and 147 .* Apple silicon/);
});

it('firefox_without_an_adapter_names_its_page', async () => {
  const gpu = { requestAdapter: () => Promise.resolve(null) };
  expect(await help('X11; Linux x86_64', gpu)).toContain('about:support');
});
