// A double of the Hugging Face Hub for tests, which cannot reach it: its API, its files and a second origin for large ones, in the shape of
// hub-answers.json.
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

/** Answers that were recorded. */
export const ANSWERS = JSON.parse(
  readFileSync(new URL('hub-answers.json', import.meta.url), 'utf8'),
);

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */
/**
 * `token` lets a gated repository be read, and `outsider` is one that is refused. The revisions of a repository are lists of files by path.
 * @typedef {{ revisions: Record<string, Record<string, Buffer>>, token?: string, outsider?: string }} Repository
 */
/** @typedef {{ origin: 'hub' | 'storage', path: string, range: string | undefined, token: string | undefined, referer: string | undefined, bytes: number }} Asked */

const LARGE = /\.(safetensors|gguf|parquet|bin)$|(^|\/)tokenizer\.json$/;

/** @param {string} kind @param {string | Buffer} bytes */
const sum = (kind, bytes) => createHash(kind).update(bytes).digest('hex');
/** @param {Buffer} bytes */
const gitId = (bytes) => sum('sha1', Buffer.concat([Buffer.from(`blob ${bytes.length}\0`), bytes]));
/** The commit of some files. @param {Record<string, Buffer>} files */
export const commitOf = (files) =>
  sum('sha1', JSON.stringify(Object.entries(files).map(([path, bytes]) => [path, gitId(bytes)])));

/** @param {Record<string, Buffer>} files */
const siblings = (files) =>
  Object.entries(files).map(([path, bytes]) =>
    LARGE.test(path)
      ? {
          rfilename: path,
          blobId: sum('sha1', path),
          size: bytes.length,
          lfs: { sha256: sum('sha256', bytes), size: bytes.length, pointerSize: 134 },
        }
      : { rfilename: path, blobId: gitId(bytes), size: bytes.length },
  );

/** Sends a file or the range of it that is asked for. @param {Request} request @param {Response} response @param {Buffer} bytes @param {object} headers */
function send(request, response, bytes, headers, cut = Infinity) {
  const [, first, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const from = Number(first ?? 0);
  const to = Math.min(last === '' ? Infinity : Number(last), bytes.length - 1);
  const body = bytes.subarray(from, to + 1);
  const range = first && { 'content-range': `bytes ${from}-${to}/${bytes.length}` };
  const all = { 'content-length': body.length, 'accept-ranges': 'bytes', ...range, ...headers };
  response.writeHead(first ? 206 : 200, all);
  if (body.length <= cut) response.end(body);
  else response.write(body.subarray(0, cut), () => setTimeout(() => response.destroy(), 50));
  return Math.min(cut, body.length);
}

/**
 * Starts a hub and the second origin of its large files. `flaws` change its answers: `busy` and `page` those of the API, `shown` lets pages read when to ask again, `cut` ends bodies of large files
 * after some bytes, and `wrong` flips a bit in the files with this ending.
 * @param {Record<string, Repository>} repositories By name; those of data sets begin with `datasets/`.
 */
export async function hubDouble(repositories) {
  /** @type {Asked[]} */
  const asked = [];
  /** @type {{ busy?: boolean, shown?: boolean, page?: boolean, cut?: number, wrong?: string }} */
  const flaws = {};
  /** Signed addresses, each of which serves once. @type {Map<string, { bytes: Buffer, path: string }>} */
  const signed = new Map();
  /** @param {string} path @param {Buffer} bytes */
  const flawed = (path, bytes) => {
    if (flaws.wrong === undefined || !path.endsWith(flaws.wrong)) return bytes;
    const other = Buffer.from(bytes);
    other[other.length - 1] ^= 1;
    return other;
  };
  /** @param {'hub' | 'storage'} origin @param {Request} request */
  const record = (origin, request) => {
    const { range, authorization: token, referer } = request.headers;
    const entry = { origin, path: request.url ?? '', range, token, referer, bytes: 0 };
    if (request.method !== 'OPTIONS') asked.push(entry);
    return entry;
  };
  const storage = createServer((request, response) => {
    const entry = record('storage', request);
    const key = request.url ?? '';
    const found = signed.get(key);
    signed.delete(key);
    if (request.method === 'OPTIONS') return response.writeHead(403).end();
    if (!found) return response.writeHead(403, ANSWERS.storageHeaders).end('expired');
    const bytes = flawed(found.path, found.bytes);
    const etag = `"${sum('md5', bytes)}"`;
    entry.bytes = send(request, response, bytes, { ...ANSWERS.storageHeaders, etag }, flaws.cut);
  });
  const hub = createServer((request, response) => {
    const entry = record('hub', request);
    const origin = request.headers.origin ?? 'https://huggingface.co';
    const headers = { ...ANSWERS.headers, 'access-control-allow-origin': origin };
    if (request.method === 'OPTIONS')
      return response
        .writeHead(204, {
          ...headers,
          'access-control-allow-headers': 'authorization, range',
          'access-control-allow-methods': 'GET',
        })
        .end();
    /** @param {string} kind */
    const refuse = (kind) => {
      const { status, error, headers: own } = ANSWERS.refusals[kind];
      const more = flaws.shown ? { ...own, 'access-control-expose-headers': '*' } : own;
      response.writeHead(status, { ...headers, ...more, 'x-error-message': error });
      return response.end(JSON.stringify({ error }));
    };
    const path = decodeURIComponent((request.url ?? '').replace(/\?.*/, ''));
    const name = Object.keys(repositories).find(
      (each) =>
        path.startsWith(`/${each}/resolve/`) ||
        path.startsWith(`/api/${each.startsWith('datasets/') ? '' : 'models/'}${each}/revision/`),
    );
    if (flaws.busy) return refuse('busy');
    if (path.startsWith('/api/') && flaws.page)
      return response.writeHead(200, headers).end('<!doctype html>');
    const repository = repositories[name ?? ''];
    if (!repository) return refuse('unknown');
    const { revisions, token, outsider } = repository;
    const rest = path.slice(path.indexOf(`${name}/`) + String(name).length);
    const [, kind, ...more] = rest.split('/');
    const inside = `${more.join('/')}/`;
    const [found] = Object.entries(revisions).flatMap(([revision, files]) =>
      [revision, commitOf(files)]
        .filter((each) => inside.startsWith(`${each}/`))
        .map((each) => ({ files, file: inside.slice(each.length + 1, -1) })),
    );
    const { files, file = '' } = found ?? {};
    if (!files) return refuse('revision');
    if (kind === 'revision') {
      const { siblings: _, ...about } = ANSWERS.listing;
      const body = { ...about, id: name, sha: commitOf(files), siblings: siblings(files) };
      return response.writeHead(200, headers).end(JSON.stringify(body));
    }
    if (token !== undefined && entry.token !== `Bearer ${token}`)
      return refuse(entry.token === `Bearer ${outsider}` ? 'unaccepted' : 'gated');
    const bytes = files[file];
    if (!bytes) return refuse('file');
    if (LARGE.test(file)) {
      const key = `/xet/${randomUUID()}?Expires=1&Signature=x`;
      signed.set(key, { bytes, path: file });
      return response.writeHead(302, { ...headers, location: `${addressOf(storage)}${key}` }).end();
    }
    const etag = `"${gitId(bytes)}"`;
    entry.bytes = send(request, response, flawed(file, bytes), { ...headers, etag });
  });
  /** @param {import('node:http').Server} server */
  const addressOf = (server) => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    return `http://127.0.0.1:${port}`;
  };
  for (const server of [hub, storage])
    await new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(undefined)));
  return {
    url: addressOf(hub),
    asked,
    flaws,
    repositories,
    /** Stops both, as without a network. */
    close: () => [hub, storage].forEach((server) => server.close().closeAllConnections()),
  };
}
