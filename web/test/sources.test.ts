import { describe, expect, it } from 'vitest';

import { blobSource, bytesSource } from '../src/worker/sources.js';
import { bytesOf } from './saves.js';

describe('a source', () => {
  it('reads_beyond_four_gib', () => {
    const size = 2 ** 32 + 8;
    const slices: number[][] = [];
    const blob = {
      size,
      slice: (from: number, to: number) => (
        slices.push([from, to]),
        new Blob([bytesOf(5, to - from)])
      ),
    };
    const source = blobSource('big', blob as unknown as Blob);
    expect(source.size).toBe(size);
    expect([...source.read(2 ** 32 + 3, 5)]).toEqual([...bytesOf(5, 5)]);
    expect(slices).toEqual([[2 ** 32 + 3, 2 ** 32 + 8]]);
    expect(() => source.read(2 ** 32 + 3, 6)).toThrow(
      expect.objectContaining({
        code: 'BAD_MODEL_FILE',
        detail: expect.objectContaining({ code: 'source.read' }) as object,
      }),
    );
  });
  it('that_can_no_longer_be_read_is_reported_with_its_name_shortened_and_escaped', () => {
    const gone = {
      size: 8,
      slice: () => {
        throw new DOMException('it has changed', 'NotReadableError');
      },
    };
    const name = `a\u202eb\n${'x'.repeat(100)}`;
    expect(() => blobSource(name, gone as unknown as Blob).read(0, 4)).toThrow(
      expect.objectContaining({
        code: 'BAD_MODEL_FILE',
        detail: expect.objectContaining({ code: 'source.read' }) as object,
      }),
    );
    expect(() => blobSource(name, gone as unknown as Blob).read(0, 4)).toThrow(
      /^cannot read a\\u\{202e\}b\\u\{a\}x{59}…: it has changed\.$/,
    );
    expect(() => bytesSource(name, new Uint8Array(3)).read(1, 3)).toThrow(
      /bytes 1 to 4 were requested, but it has 3/,
    );
  });
});
