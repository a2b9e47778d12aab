import { describe, expect, it, vi } from 'vitest';

import { withSentences } from '../core-sentences.mjs';
import { spoken } from '../src/protocol/sentence.js';
import { loadWasm } from '../src/worker/wasm.js';

const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

vi.mock('tabtune-wasm', async (original) => ({
  ...(await original<typeof import('tabtune-wasm')>()),
  compiled: vi.fn(),
}));

describe('the sentences of the core', () => {
  it('come_with_its_module_and_are_those_of_its_errors', async () => {
    const { compiled } = await import('tabtune-wasm');
    const encoded = '\uFDD0config.invalid\uFDD1\uFDD1steps\uFDD1below batch_size\uFDD13\uFDD2';
    vi.mocked(compiled).mockReturnValue(new WebAssembly.Module(EMPTY));
    await loadWasm(undefined);
    expect(spoken(encoded)).toMatch(/^steps: the file was refused/);
    const wasm = Uint8Array.from(await withSentences(EMPTY));
    vi.mocked(compiled).mockReturnValue(new WebAssembly.Module(wasm));
    await loadWasm(undefined);
    expect(spoken(encoded)).toBe('steps is 3, but must be below batchSize.');
  });
});
