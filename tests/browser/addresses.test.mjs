// Downloads in a real browser, from the page's origin and from another one: the bytes are the file's, or the download is refused.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { deflateSync, gzipSync } from 'node:zlib';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';
import { Browser } from './chromium.mjs';
import { SHAPE } from './scenario.mjs';

const TEXT = Array.from({ length: 600 }, (_, at) => `Row ${at} of ${(at * 7919) % 1000}.\n`).join(
  '',
);
const FILE = Buffer.from(TEXT);
const HALF = FILE.subarray(0, 5000);
const TAG = { etag: '"one"' };
const EXPOSED = 'etag, content-range, retry-after';
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm' };

/** @typedef {import('node:http').ServerResponse} Response @typedef {{ from: number | undefined, asked: number, url: string }} Asked */

/** @param {Response} response @param {number} status @param {Buffer} body @param {object} headers */
const whole = (response, status, body, headers = {}) =>
  response.writeHead(status, { 'content-length': body.length, ...headers }).end(body);
/** @param {Response} response @param {number} from */
const rest = (response, from, file = FILE, headers = TAG) =>
  whole(response, 206, file.subarray(from), {
    'content-range': `bytes ${from}-${file.length - 1}/${file.length}`,
    ...headers,
  });
/** Ends the connection in the middle of the body. @param {Response} response @param {object} headers */
const cut = (response, headers = {}, body = HALF) => {
  response.writeHead(200, { 'content-length': FILE.length, ...headers });
  response.write(body, () => setTimeout(() => response.destroy(), 150));
};
/** @param {Buffer} body @param {object} headers */
const encoded =
  (body, headers = { 'content-encoding': 'gzip' }) =>
  (/** @type {Response} */ response, /** @type {Asked} */ { from }) =>
    from === undefined ? whole(response, 200, body, headers) : rest(response, from);

/** Servers' behaviours with what must come of them: `loaded` or the code of the refusal. @type {Record<string, [string, (response: Response, asked: Asked) => unknown]>} */
const BEHAVIOURS = {
  plain: ['loaded', (response) => whole(response, 200, FILE)],
  unmeasured: ['loaded', (response) => response.writeHead(200).end(FILE)],
  packed: ['loaded', encoded(gzipSync(FILE))],
  deflated: ['loaded', encoded(deflateSync(FILE), { 'content-encoding': 'deflate' })],
  // Its length is more than that of the file; of another origin, only the length can be seen.
  grown: [
    'loaded',
    (response) =>
      whole(response, 200, gzipSync(FILE, { level: 0 }), { 'content-encoding': 'gzip' }),
  ],
  packedHalf: ['source.truncated', encoded(gzipSync(FILE).subarray(0, 2000))],
  mislabelled: ['source.truncated', encoded(FILE)],
  // Where the page sees no bytes before the end, all of the file is requested.
  unlabelled: [
    'loaded|source.changed',
    (response, { from }) =>
      from === undefined ? cut(response, TAG, gzipSync(FILE)) : rest(response, from),
  ],
  part: [
    'source.range',
    (response) => whole(response, 206, HALF, { 'content-range': `bytes 0-4999/${FILE.length}` }),
  ],
  wholePart: ['loaded', (response) => rest(response, 0)],
  nothing: ['source.download', (response) => response.writeHead(204).end()],
  continued: [
    'loaded',
    (response, { from }) => (from === undefined ? cut(response, TAG) : rest(response, from)),
  ],
  again: [
    'loaded',
    (response, { asked }) => (asked === 0 ? cut(response, TAG) : whole(response, 200, FILE, TAG)),
  ],
  stopped: ['source.truncated', (response) => cut(response)],
  other: [
    'source.changed',
    (response, { from }) =>
      from === undefined ? cut(response, TAG) : rest(response, from, FILE, { etag: '"two"' }),
  ],
  shifted: [
    'source.range',
    (response, { from }) => (from === undefined ? cut(response, TAG) : rest(response, from - 1)),
  ],
  busy: [
    'loaded',
    (response, { asked }) =>
      asked < 2
        ? whole(response, asked === 0 ? 503 : 429, HALF, { 'retry-after': '1' })
        : whole(response, 200, FILE),
  ],
  closed: ['source.download', (response) => whole(response, 503, HALF, { 'retry-after': '3600' })],
  redirected: [
    'loaded',
    (response, { asked, url }) =>
      asked < 1 ? response.writeHead(302, { location: url }).end() : whole(response, 200, FILE),
  ],
  moved: [
    'loaded',
    (response, { asked, url }) =>
      asked < 3 ? response.writeHead(302, { location: url }).end() : whole(response, 200, FILE),
  ],
  page: [
    'loaded, source.served',
    (response) => whole(response, 200, FILE, { 'content-type': 'text/html' }),
  ],
};

/** Serves the package, an empty page, the behaviours, and `/echo`, which replies with the request. */
async function lossy() {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const server = createServer(async (request, response) => {
    const url = request.url ?? '/';
    const [, first, name = ''] = url.split('/');
    response
      .setHeader('access-control-allow-origin', '*')
      .setHeader('access-control-expose-headers', EXPOSED)
      .setHeader('cache-control', 'no-store');
    if (request.method === 'OPTIONS')
      return response.setHeader('access-control-allow-headers', '*').writeHead(204).end();
    if (url === '/')
      return whole(response, 200, Buffer.from('<!doctype html><link rel="icon" href="data:,">'), {
        'content-type': 'text/html',
      });
    if (first === 'dist') {
      response.writeHead(200, { 'content-type': TYPES[extname(name)] });
      return createReadStream(join(root, built.package, name)).pipe(response);
    }
    if (first === 'echo') {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const { 'x-key': key, referer = '' } = request.headers;
      return whole(
        response,
        200,
        Buffer.from(`${request.method} ${key} ${referer} ${Buffer.concat(pieces)}. `.repeat(40)),
      );
    }
    const asked = counts.get(url) ?? 0;
    counts.set(url, asked + 1);
    const from = /^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1];
    return BEHAVIOURS[name]?.[1](response, {
      from: from === undefined ? undefined : Number(from),
      asked,
      url,
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, close: () => server.close().closeAllConnections() };
}

test('downloads give the whole file or are refused, and a Request is sent unchanged', async () => {
  const [here, there, browser] = await Promise.all([lossy(), lossy(), Browser.launch()]);
  try {
    const { page } = await browser.open(`${here.url}/`);
    const integrity = `sha256-${createHash('sha256').update(FILE).digest('base64')}`;
    const seen = await page.evaluate(
      async ({ origins, names, text, shape, integrity }) => {
        const tabtune = await import('/dist/index.js');
        const [own, other] = origins;
        // The slowest, since it is repeated.
        const mistaken = new Request(`${own}/file/plain`, { integrity: 'sha256-AAAA' });
        const refusal = tabtune.inspectData(mistaken).catch(({ message }) => message);
        const model = await tabtune.newModel(shape, {
          text: String.fromCharCode(10, ...Array.from({ length: 95 }, (_, at) => 32 + at)).repeat(
            9,
          ),
        });
        const digest = async (/** @type {import('tabtune').DataInput} */ data) =>
          (await tabtune.inspectData(data, { model, seqLen: 32 })).report;
        const truth = (await digest({ text })).digest;
        const outcome = async (/** @type {import('tabtune').DataInput} */ data) => {
          try {
            const report = await digest(data);
            return [
              report.digest === truth ? 'loaded' : 'other bytes',
              ...report.warnings.map(({ code }) => code),
            ].join(', ');
          } catch (/** @type {any} */ thrown) {
            return thrown instanceof tabtune.TabtuneError
              ? (thrown.detail.code ?? thrown.code)
              : `raw: ${thrown}`;
          }
        };
        const echoed = /** @type {const} */ ({
          method: 'POST',
          headers: { 'x-key': 'key' },
          body: 'the body',
          referrer: '/the/page',
          mode: 'same-origin',
          redirect: 'error',
        });
        const named = {
          integrity: new Request(`${own}/file/plain`, { integrity }),
          elsewhere: new Request(`${other}/file/plain`, { mode: 'same-origin' }),
          redirected: new Request(`${own}/request/redirected`, { redirect: 'error' }),
        };
        const loads = async (/** @type {[string, import('tabtune').DataInput][]} */ all) =>
          Object.fromEntries(
            await Promise.all(all.map(async ([name, data]) => [name, await outcome(data)])),
          );
        const at = (/** @type {string} */ origin) =>
          loads(names.map((name) => [name, new URL(`${origin}/file/${name}`)]));
        const [same, cross, requests, echo] = await Promise.all([
          at(own),
          at(other),
          loads(Object.entries(named)),
          digest(new Request(`${own}/echo`, echoed)).then((report) => report.digest),
        ]);
        const expected = (await digest({ text: `POST key ${own}/the/page the body. `.repeat(40) }))
          .digest;
        return { same, cross, requests, echo: echo === expected, refusal: await refusal };
      },
      {
        origins: [here.url, there.url],
        names: Object.keys(BEHAVIOURS),
        text: TEXT,
        shape: SHAPE,
        integrity,
      },
    );
    for (const outcomes of [seen.same, seen.cross]) {
      const wrong = Object.entries(BEHAVIOURS).filter(
        ([name, [expected]]) => !expected.split('|').includes(outcomes[name]),
      );
      assert.deepEqual(wrong, [], JSON.stringify(outcomes));
    }
    assert.deepEqual(seen.requests, {
      integrity: 'loaded',
      elsewhere: 'source.download',
      redirected: 'source.download',
    });
    assert.ok(seen.echo);
    assert.match(seen.refusal, /its bytes are not those that integrity states/);
  } finally {
    await browser.close();
    here.close();
    there.close();
  }
});
