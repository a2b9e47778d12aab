/** Information about a file in the headers of a server's reply. */

type Headed = Pick<Headers, 'get'>;

/** Returns a strong ETag or a date: as long as it is the same, so is the file. */
export function validatorOf(headers: Headed): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && !tag.startsWith('W/')) return tag;
  return headers.get('last-modified') ?? undefined;
}

/** Parses a `Content-Range`: first and last byte, and the size of the file if it is stated. */
export function rangeOf(said: string | null): { from: number; to: number; total: number | undefined } {
  const [, from, to, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(said ?? '') ?? [];
  return { from: Number(from), to: Number(to), total: total === undefined || total === '*' ? undefined : Number(total) };
}
