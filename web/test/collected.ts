/** Targets of exports. */
import type { ExportTarget } from '../src/index.js';

/** Returns a stand-in as a target; it has the parts of a handle that are used. */
export const asTarget = (value: unknown): ExportTarget => value as ExportTarget;

/** Returns a stream that stores the chunks it receives; `take` may wait. */
export function collected(take: (chunk: Uint8Array) => unknown = () => undefined) {
  const seen = { chunks: [] as Uint8Array[], closed: false, aborted: false };
  const stream = new WritableStream<Uint8Array>({
    write: async (chunk) => {
      seen.chunks.push(chunk);
      await take(chunk);
    },
    close: () => void (seen.closed = true),
    abort: () => void (seen.aborted = true),
  });
  return { seen, stream };
}
/** Returns the bytes of the chunks, one after another. */
export const joined = (chunks: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(chunks));
