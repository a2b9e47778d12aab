/** Sources over bytes that are here: a Blob, or memory. */
import { fault, messageOf } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { pageWarning } from './http-headers.js';
import { ReadAhead } from './read-ahead.js';
import { quoted } from './storage/faults.js';
import type { JsSource } from './wasm.js';

/** Returns a source over a Blob; it reads one range at a time, so that a weight file is never in memory as a whole. */
export function blobSource(name: string, blob: Blob, origin?: JsSource['origin']): JsSource {
  const reader = new FileReaderSync();
  const ahead = new ReadAhead(blob);
  return {
    name,
    size: blob.size,
    origin,
    // The type of a Blob that was downloaded is the one that its server stated.
    warning: pageWarning(name, blob.type),
    ahead: () => ahead.fetch(),
    read(offset, length) {
      const end = offset + length;
      if (end > blob.size)
        throw readError(name, `bytes ${offset} to ${end} were requested, but it has ${blob.size}`);
      const fetched = ahead.read(offset, length);
      if (fetched !== undefined) return fetched;
      try {
        return new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset, end)));
      } catch (thrown) {
        throw readError(name, messageOf(thrown));
      }
    },
  };
}

export function bytesSource(name: string, bytes: Uint8Array): JsSource {
  return {
    name,
    size: bytes.byteLength,
    read(offset, length) {
      if (offset + length > bytes.byteLength)
        throw readError(
          name,
          `bytes ${offset} to ${offset + length} were requested, but it has ${bytes.byteLength}`,
        );
      return bytes.subarray(offset, offset + length);
    },
  };
}

const readError = (name: string, reason: string): TabtuneError =>
  fault('source.read', { subject: quoted(name), found: reason }, { path: name, reason });
