/** What the headers of a server's reply say about the file. */

type Headed = Pick<Headers, 'get'>;

/** A strong ETag or a date: while it is equal, the file is. */
export function validatorOf(headers: Headed): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && !tag.startsWith('W/')) return tag;
  return headers.get('last-modified') ?? undefined;
}

/** The numbers of a `Content-Range`: first and last byte, and the size of the file where it is told. */
export function rangeOf(said: string | null): { from: number; to: number; total: number | undefined } {
  const [, from, to, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(said ?? '') ?? [];
  return { from: Number(from), to: Number(to), total: total === undefined || total === '*' ? undefined : Number(total) };
}
