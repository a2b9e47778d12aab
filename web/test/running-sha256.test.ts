import { createHash } from 'node:crypto';

import { describe, expect, it } from 'vitest';

import { RunningSha256 } from '../src/worker/running-sha256.js';
import { bytesOf } from './saves.js';

const sumOf = (bytes: Uint8Array, piece: number): string => {
  const running = new RunningSha256();
  for (let at = 0; at < bytes.byteLength; at += piece)
    running.update(bytes.subarray(at, at + piece));
  return running.hex();
};

describe('a running SHA-256', () => {
  it('is_that_of_all_bytes_whatever_the_pieces', () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 255, 256, 257, 4099]) {
      const bytes = bytesOf(7, length);
      const expected = createHash('sha256').update(bytes).digest('hex');
      for (const piece of [1, 3, 64, 100, 5000])
        expect(sumOf(bytes, piece), `${length} bytes by ${piece}`).toBe(expected);
    }
  });
});
