import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { bytesSource } from '../src/worker/sources.js';
import { jsonLines } from '../src/worker/parquet.js';

const full = process.env['TABTUNE_FULL'] !== undefined;
const SEEDS = ['chats', 'rows'].map(
  (name) => new Uint8Array(readFileSync(`tests/golden/${name}.parquet`)),
);
/** Time limit within which a file of some kB is read or refused. */
const MILLIS = 2000;
/** Maximum number of bytes read from such a file. */
const BYTES = 64 << 20;

/** Returns a generator of numbers below `end`, the same in every run. */
function draws(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

function changed(bytes: Uint8Array, draw: (end: number) => number): Uint8Array<ArrayBuffer> {
  let copy = bytes.slice();
  for (let change = 0; change <= draw(3); change++) {
    // The footer holds all positions, so it gets half of the changes.
    const at =
      draw(2) === 0 ? copy.length - 1 - draw(Math.min(400, copy.length)) : draw(copy.length);
    if (draw(4) === 0)
      copy = Uint8Array.of(...copy.subarray(0, at), ...copy.subarray(at + 1 + draw(4)));
    else copy[at] = draw(256);
  }
  return copy;
}

/** Reads a file; returns whether that succeeded. A refusal must give a reason. */
async function isRead(bytes: Uint8Array<ArrayBuffer>, what: string): Promise<boolean> {
  const started = performance.now();
  const read = await jsonLines(bytesSource('a.parquet', bytes), new AbortController().signal).catch(
    (thrown: unknown) => {
      expect(thrown, what).toBeInstanceOf(Error);
      expect((thrown as Error).message, what).not.toBe('');
      return undefined;
    },
  );
  expect(performance.now() - started, what).toBeLessThan(MILLIS);
  expect(read?.size ?? 0, what).toBeLessThan(BYTES);
  return read !== undefined;
}

describe('files of Parquet', () => {
  it(
    'are read, or refused in words, whatever their bytes are',
    async () => {
      const [random, mutated] = full ? [100_000, 20_000] : [300, 300];
      for (let at = 0; at < random; at++) {
        const draw = draws(at);
        const bytes = Uint8Array.from({ length: draw(300) }, () => draw(256));
        // A Parquet file begins and ends with this word.
        if (at % 2 === 0 && bytes.length >= 12)
          for (const [i, letter] of ['P', 'A', 'R', '1'].entries())
            bytes[i] = bytes[bytes.length - 4 + i] = letter.charCodeAt(0);
        expect(await isRead(bytes, `random ${at}`)).toBe(false);
      }
      let read = 0;
      for (const [seed, bytes] of SEEDS.entries())
        for (let at = 0; at < mutated; at++)
          read += Number(
            await isRead(changed(bytes, draws(1_000_000 + at)), `file ${seed}, changed ${at}`),
          );
      expect(read).toBeGreaterThan(0);
    },
    30 * 60_000,
  );
});
