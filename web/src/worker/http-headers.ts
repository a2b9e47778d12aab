/** Information about a file in a server's reply. */
import { escaped, fault, finding } from '../protocol/errors.js';
import type { Finding } from '../protocol/reports.js';

type Headed = Pick<Headers, 'get'>;

/** Returns a strong ETag or a date: as long as it is the same, so is the file. */
export function validatorOf(headers: Headed): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && !tag.startsWith('W/')) return tag;
  return headers.get('last-modified') ?? undefined;
}

/** Parses a `Content-Range`: first and last byte, and the size of the file if it is stated. */
export function rangeOf(said: string | null): {
  from: number;
  to: number;
  total: number | undefined;
} {
  const [, from, to, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(said ?? '') ?? [];
  return {
    from: Number(from),
    to: Number(to),
    total: total === undefined || total === '*' ? undefined : Number(total),
  };
}

/** Returns whether a reply says that its body is encoded. One of another origin may be encoded without saying so. */
export const isEncoded = (headers: Headed): boolean =>
  (headers.get('content-encoding') ?? 'identity') !== 'identity';

/** Returns the length of a body, if the reply states it. */
export function lengthOf(headers: Headed): number | undefined {
  const said = headers.get('content-length') ?? '';
  return /^\d+$/.test(said) && !isEncoded(headers) ? Number(said) : undefined;
}

/** Returns the size of the file in a reply to a request for all of it, if the reply states it. Refuses a reply that has only a part. */
export function sizeOf({ status, headers }: Response, subject: string): number | undefined {
  if (status === 200) return lengthOf(headers);
  const said = headers.get('content-range');
  const { from, to, total } = rangeOf(said);
  if (from !== 0 || total === undefined || to !== total - 1)
    throw fault('source.range', {
      subject,
      expected: 'the whole file',
      found: escaped(said ?? 'HTTP 206'),
    });
  return isEncoded(headers) ? undefined : total;
}

/**
 * Returns whether a body that ended after `loaded` bytes may be the whole file. A reply of another origin hides its encoding, and states the length of
 * the encoded body; an encoding that makes it longer adds little to it.
 */
export function endsAt(
  loaded: number,
  size: number | undefined,
  { type, status }: Pick<Response, 'type' | 'status'>,
): boolean {
  if (size === undefined || loaded === size) return true;
  return type === 'cors' && status === 200 && size - loaded <= 64 + loaded / 64;
}

/** Returns the warning about a file that was served as a page, if its name is not that of one. */
export const pageWarning = (name: string, type: string | null): Finding | undefined =>
  /^text\/html\b/i.test(type ?? '') && !/\.html?$/i.test(name)
    ? finding('source.served', { subject: escaped(name), found: 'text/html' })
    : undefined;
