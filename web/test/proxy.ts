/** A server of one file behind which anything may go wrong, as a seeded generator of behaviours says. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';

/** Both versions of the file: of one size or not, one half of it compressible. */
export const VERSIONS = [0, 1, 2].map((version) => {
  const bytes = Buffer.alloc(version === 2 ? 6100 : 6000, `version ${version}, `);
  for (let at = 0, state = 7 + version; at < 3000; at += 1)
    bytes[at] = (state = (state * 48271) % 2147483647) & 255;
  return bytes;
});
const [FIRST = Buffer.alloc(0)] = VERSIONS;

const CHOICES = {
  status: [
    '200',
    '200',
    '200',
    '200',
    '200',
    '206 part',
    '206 whole',
    '206 bare',
    '204',
    '202',
    '404',
  ],
  /** Encoding of a reply to a request for the whole file. */
  encoding: [
    'none',
    'none',
    'none',
    'gzip',
    'deflate',
    'gzip, unlabelled',
    'none, labelled',
    'gzip, cut within its frame',
  ],
  /** The stated length of that reply; `long` ends the connection early. */
  length: ['right', 'right', 'right', 'long', 'absent'],
  /** Share of the body after which the connection ends. */
  cut: [1, 1, 0, 0.3, 0.7, 0.999],
  /** Number of replies that are cut. */
  cuts: [1, 1, 2, 3, 9],
  validator: [
    'strong',
    'strong',
    'strong',
    'weak',
    'date',
    'weak and date',
    'changing',
    'absent',
    'gone later',
  ],
  ranges: [
    'right',
    'right',
    'right',
    'ignored',
    'from 0',
    'from 0, labelled as asked',
    'one too early',
    'one too late',
    'other total',
    'no range',
    'any total',
    'encoded',
    '416',
    '403',
  ],
  busy: [0, 0, 0, 1, 2, 3, 4],
  /** When the server is busy: at the first request or at the later ones. */
  busyAt: ['first', 'later'],
  busyStatus: [429, 503],
  retryAfter: ['0', '7', 'a date', 'absent', '3600', 'soon'],
  redirects: [0, 0, 0, 1, 3, 99],
  type: ['application/octet-stream', 'text/html', 'text/plain; charset=utf-16'],
  /** Version of the file that later requests get. */
  later: [0, 0, 0, 1, 2],
  millis: [0, 0, 0, 1, 4],
} as const;
export type Behaviour = { [K in keyof typeof CHOICES]: (typeof CHOICES)[K][number] };

/** Returns `count` behaviours; the same seed gives the same ones. Most properties of each are the usual ones, so that the others are seen. */
export function behaviours(count: number, seed: number): Behaviour[] {
  let state = seed;
  const below = (n: number): number => ((state = (state * 48271) % 2147483647) >> 8) % n;
  return Array.from({ length: count }, () => {
    const unusual = 1 + below(5);
    const keys = Object.keys(CHOICES);
    const chosen = new Set(Array.from({ length: unusual }, () => keys[below(keys.length)]));
    const pick = ([key, all]: [string, readonly unknown[]]): [string, unknown] => [
      key,
      chosen.has(key) ? all[below(all.length)] : all[0],
    ];
    const one = Object.fromEntries(Object.entries(CHOICES).map(pick)) as Behaviour;
    // Half of them break off, since what follows then is what matters.
    return below(2) === 0 && !chosen.has('cut') ? { ...one, cut: 0.3 } : one;
  });
}

/** Returns whether only the server could know that a file is not whole: its encoding was cut, and it reports the size of the file to nobody. */
export const isUnseen = ({ encoding, ranges, busy }: Behaviour): boolean =>
  encoding === 'gzip, cut within its frame' &&
  (['403', '416', 'encoded'].includes(ranges) || busy > 3);

/** Returns whether nothing is in the way of the file: its bytes must arrive. */
export function isHarmless(one: Behaviour): boolean {
  const whole = one.cut === 1 && one.length !== 'long';
  const continued =
    one.cuts < 4 &&
    ['strong', 'date', 'weak and date'].includes(one.validator) &&
    ['right', 'ignored'].includes(one.ranges);
  const encoded = ['gzip', 'deflate'].includes(one.encoding);
  const waits = one.busy < 4 && (one.busy === 0 || one.retryAfter !== '3600');
  return (
    ['200', '206 whole'].includes(one.status) &&
    (one.encoding === 'none' || encoded) &&
    (whole ||
      (continued &&
        !encoded &&
        one.later === 0 &&
        one.length !== 'long' &&
        one.status === '200')) &&
    (!encoded ||
      (one.later === 0 && ['right', 'ignored'].includes(one.ranges) && one.status === '200')) &&
    waits &&
    one.redirects < 20
  );
}

interface Reply {
  status: number;
  body: Buffer;
  headers: Record<string, string | number>;
}

/** Returns the reply to a request for the whole file. */
function wholeReply({ encoding, length, status }: Behaviour, file: Buffer): Reply {
  if (status === '204') return { status: 204, body: Buffer.alloc(0), headers: {} };
  if (status === '206 part')
    return {
      status: 206,
      body: file.subarray(0, 2000),
      headers: { 'content-range': `bytes 0-1999/${file.length}` },
    };
  const packed = encoding.startsWith('gzip')
    ? gzipSync(file)
    : encoding === 'deflate'
      ? deflateSync(file)
      : file;
  const body = encoding === 'gzip, cut within its frame' ? packed.subarray(0, -900) : packed;
  const label = encoding === 'none, labelled' ? 'gzip' : encoding.split(',')[0];
  const headers: Reply['headers'] =
    label === 'none' || encoding === 'gzip, unlabelled' ? {} : { 'content-encoding': label ?? '' };
  // Without its label an encoded body is another file, unless the length is still that of the file.
  if (encoding === 'gzip, unlabelled') headers['content-length'] = file.length;
  else if (length !== 'absent')
    headers['content-length'] = body.length + (length === 'long' ? 10 : 0);
  if (status === '206 whole')
    headers['content-range'] = `bytes 0-${file.length - 1}/${file.length}`;
  return { status: Number(status.slice(0, 3)), body, headers };
}

/** Returns the reply to a request for the file from a byte on. */
function rangeReply(one: Behaviour, file: Buffer, from: number): Reply {
  const shift = { 'one too early': -1, 'one too late': 1 }[one.ranges as string] ?? 0;
  const begin = one.ranges === 'from 0' ? 0 : Math.max(0, from + shift);
  if (one.ranges === '403') return { status: 403, body: Buffer.from('no'), headers: {} };
  if (one.ranges === '416' || begin >= file.length)
    return {
      status: 416,
      body: Buffer.alloc(0),
      headers: { 'content-range': `bytes */${file.length}` },
    };
  const total =
    one.ranges === 'other total' ? file.length + 1 : one.ranges === 'any total' ? '*' : file.length;
  const part =
    one.ranges === 'from 0, labelled as asked'
      ? file.subarray(0, file.length - begin)
      : file.subarray(begin);
  const headers: Reply['headers'] = {
    'content-range': `bytes ${begin}-${file.length - 1}/${total}`,
    'content-length': part.length,
  };
  if (one.ranges === 'no range') delete headers['content-range'];
  if (one.ranges !== 'encoded') return { status: 206, body: part, headers };
  const packed = gzipSync(part);
  return {
    status: 206,
    body: packed,
    headers: { ...headers, 'content-encoding': 'gzip', 'content-length': packed.length },
  };
}

function validators(one: Behaviour, version: number, asked: number): Record<string, string> {
  const tag = one.validator === 'changing' ? `"${version}-${asked}"` : `"${version}"`;
  const date = { 'last-modified': `Sun, 01 Nov 2026 00:00:0${version} GMT` };
  if (one.validator === 'absent' || (one.validator === 'gone later' && asked > 0)) return {};
  if (one.validator === 'date') return date;
  return one.validator.startsWith('weak')
    ? { etag: `W/${tag}`, ...(one.validator === 'weak' ? {} : date) }
    : { etag: tag };
}

/** Serves behaviour n under `/n`. */
export async function proxy(
  all: readonly Behaviour[],
): Promise<{ url: string; close: () => void }> {
  const seen = new Map<string, { asked: number; busy: number }>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, at = '', hops = '0'] = (request.url ?? '').split('/');
    const one = all[Number(at)];
    if (one === undefined) return void response.writeHead(500).end();
    if (Number(hops) < one.redirects)
      return void response.writeHead(302, { location: `/${at}/${Number(hops) + 1}` }).end();
    const state = seen.get(at) ?? { asked: 0, busy: 0 };
    seen.set(at, state);
    await wait(one.millis);
    if (state.busy < one.busy && (one.busyAt === 'first' || state.asked > 0)) {
      state.busy += 1;
      const after =
        one.retryAfter === 'a date' ? new Date(Date.now() + 5000).toUTCString() : one.retryAfter;
      return void response
        .writeHead(one.busyStatus, after === 'absent' ? {} : { 'retry-after': after })
        .end('busy');
    }
    const version = state.asked > 0 ? one.later : 0;
    const file = VERSIONS[version] ?? FIRST;
    const valid = validators(one, version, state.asked);
    state.asked += 1;
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? [];
    const condition = request.headers['if-range'];
    const ranged =
      from !== undefined &&
      one.ranges !== 'ignored' &&
      (condition === undefined || Object.values(valid).includes(String(condition)));
    // As servers do, without an encoding where none is wanted.
    const plain =
      request.headers['accept-encoding'] === 'identity'
        ? { ...one, encoding: 'none' as const }
        : one;
    const reply = ranged ? rangeReply(one, file, Number(from)) : wholeReply(plain, file);
    response.writeHead(reply.status, { 'content-type': one.type, ...valid, ...reply.headers });
    const cut = state.asked <= one.cuts && one.cut < 1;
    const body = cut ? reply.body.subarray(0, Math.floor(reply.body.length * one.cut)) : reply.body;
    const short = !ranged && (one.length === 'long' || plain.encoding === 'gzip, unlabelled');
    if (!cut && !short) return void response.end(body);
    // The reply is flushed before its connection ends.
    response.write(body.length === 0 ? '' : body, () => setImmediate(() => response.destroy()));
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => server.close().closeAllConnections(),
  };
}
