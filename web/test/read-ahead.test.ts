// Bytes that are read ahead are those of the file, and no byte is read twice.
// Node's own Blob has byte streams, the one of setup.ts has none.
import { Blob as BlobOfNode } from 'node:buffer';
import { expect, test } from 'vitest';
import { ReadAhead } from '../src/worker/read-ahead.js';

const Blob = BlobOfNode as unknown as typeof globalThis.Blob;
const SIZE = (19 << 20) + 77;
const bytes = Uint8Array.from(
  { length: SIZE },
  (_, at) => (Math.imul(at, 2654435761) >>> 24) ^ (at & 255),
);

/** Reads the whole file in parts of these lengths, in turn; returns the number of bytes that were not fetched ahead. */
async function missed(ahead: ReadAhead, lengths: number[]): Promise<number> {
  let missing = 0;
  for (let at = 0, turn = 0; at < SIZE; turn += 1) {
    await ahead.fetch();
    const length = Math.min(lengths[turn % lengths.length] ?? 1, SIZE - at);
    const found = ahead.read(at, length);
    if (found === undefined) missing += length;
    else if (Buffer.compare(found, bytes.subarray(at, at + length)) !== 0)
      throw new Error(`other bytes at ${at}`);
    at += length;
  }
  return missing;
}

test.each([[[1 << 20]], [[1, 65_536, 1 << 20, 3]], [[(2 << 20) - 1]]])(
  'reads in parts of %j are fetched ahead',
  async (lengths) => {
    const ahead = new ReadAhead(new Blob([bytes]));
    expect(await missed(ahead, lengths)).toBe(0);
    expect(
      await missed(ahead, lengths),
      'the second time, only the first read cannot be foreseen',
    ).toBe(lengths[0]);
  },
);

test('a part beyond the fetched ones is left to the caller, and fetching resumes after it', async () => {
  const ahead = new ReadAhead(new Blob([bytes]));
  await ahead.fetch();
  expect(ahead.read(0, 6 << 20)).toBeUndefined();
  await ahead.fetch();
  expect(
    Buffer.compare(
      ahead.read(6 << 20, 1 << 20) ?? new Uint8Array(),
      bytes.subarray(6 << 20, 7 << 20),
    ),
  ).toBe(0);
});

test('a small file, and the end of a large one, are not waited for', async () => {
  expect(new ReadAhead(new Blob([bytes.subarray(0, 4 << 20)])).fetch()).toBeUndefined();
  const ahead = new ReadAhead(new Blob([bytes]));
  ahead.read(SIZE - 1, 1);
  expect(ahead.fetch()).toBeUndefined();
});

test.each([
  ['without byte streams', () => new ReadableStream()],
  [
    'that cannot be read',
    () =>
      new ReadableStream({
        type: 'bytes',
        pull: () => Promise.reject(new DOMException('changed', 'NotReadableError')),
      }),
  ],
])('a file %s is left to the synchronous reads', async (_, stream) => {
  const blob = new Blob([bytes]);
  blob.slice = () => Object.assign(new Blob(), { stream });
  const ahead = new ReadAhead(blob);
  await ahead.fetch();
  expect(ahead.read(0, 100)).toBeUndefined();
  expect(ahead.fetch()).toBeUndefined();
});
