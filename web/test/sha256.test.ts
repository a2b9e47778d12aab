import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import { Sha256 } from '../src/worker/storage/sha256.js';
import { bytesOf } from './saves.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const truth = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('a hash of pieces', () => {
  // Around the end of a block, where the padding takes another one, and around that of a piece.
  it.each([0, 1, 3, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1000, 4095, 4096, 4097, 100_001])('is_that_of_the_whole_for_%i_bytes', (length) => {
    const bytes = bytesOf(length, length);
    for (const size of [64, 4096, 1 << 20]) {
      const hash = new Sha256();
      for (let at = 0; at < length; at += size) hash.update(bytes.slice(at, at + size));
      expect(hex(hash.digest())).toBe(truth(bytes));
    }
  });
  it('of_a_known_text_is_that_of_its_standard', () => {
    const hash = new Sha256();
    hash.update(new TextEncoder().encode('abc'));
    expect(hex(hash.digest())).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
