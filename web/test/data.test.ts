import { describe, expect, it } from 'vitest';

import { toData } from '../src/page/data-inputs.js';
import { withStorage } from '../src/worker/data.js';
import { bytesSource } from '../src/worker/sources.js';

const of = (...bytes: number[]): Parameters<typeof withStorage>[0] => ({
  files: [bytesSource('rows.jsonl', Uint8Array.from(bytes))],
  validation: [],
  passedOver: [],
});
/** The end of a gzip file: its checksum, and the number of bytes in it. */
const END = [0, 0, 0, 0, 255, 255, 255, 255];

describe('data', () => {
  it('that_are_compressed_need_the_size_that_they_state', async () => {
    await expect(withStorage(of(31, 139, 8, 0, ...END))).rejects.toMatchObject({
      detail: { code: 'source.too-large', need: 4 * (2 ** 32 - 1) },
    });
    for (const bytes of [[32, 139, 8, 0, ...END], [31, 139], []])
      expect((await withStorage(of(...bytes))).storage).toBeUndefined();
  });

  it('of_one_name_get_distinct_names', async () => {
    const file = (name: string): { text: string; name: string } => ({ text: 'a', name });
    const { spec, name } = await toData(
      [file('a.txt'), file('b.txt'), file('a.txt')],
      [file('a.txt')],
    );
    expect(spec.files.map((given) => given.name)).toEqual(['1/a.txt', 'b.txt', '3/a.txt']);
    expect(spec.validation.map((given) => given.name)).toEqual(['a.txt']);
    expect(name).toBe('1/a.txt and 2 more');
  });
});
