// A static server on localhost for the built package, the built demo and an empty page to run scenarios in.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { DEMO_POLICY, POLICY } from '../../web/policy.mjs';
import { root } from '../../web/toolchain.mjs';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};
const EMPTY =
  '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>tabtune scenario</title>';

/**
 * A text, or a function that runs in a worker before the package's; `millis` delays it, `bare` leaves out the additional headers.
 * @typedef {{ text?: string, work?: () => unknown, millis?: number, bare?: boolean }} Script
 */
/** @typedef {{ policy?: string | null, scripts?: Record<string, Script>, [header: string]: unknown }} Options */
/** @typedef {Awaited<ReturnType<typeof serve>>} Site */

/** A script's text. @param {string} path @param {Script} script @param {boolean} worksFirst True in the module that works first. */
function textOf(path, { text, work }, worksFirst) {
  if (worksFirst) return `(${work})();`;
  return text ?? `${work ? `import '${path}?first';` : ''}import '/dist/worker.js';`;
}

/**
 * Serves the package, the demo, the modules that tests run in pages, `folders` (address prefix → folder, of the repository
 * or absolute), and an empty page at `/`. Every response, including those to workers, carries the policy of the demo or, for
 * all else, that of the package, unless another one or null is given, and the headers `more`. `scripts` are by their addresses.
 * @param {Record<string, string>} folders @param {Options} options
 * @returns {Promise<{ url: string, ranges: [string, number, number][], close: () => Promise<unknown> }>}
 */
export function serve(folders = {}, { policy: given, scripts = {}, ...more } = {}) {
  /** Requested ranges, as `[path, first byte, bytes]`. @type {[string, number, number][]} */
  const ranges = [];
  /** @type {Record<string, string>} */
  const all = {
    '/dist/': built.package,
    '/demo/': built.demo,
    '/browser/': 'tests/browser',
    ...folders,
  };
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
    // As on package servers, which let browsers cache large files, together with their compiled code.
    const headers = {
      'cache-control': pathname.endsWith('.wasm') ? 'max-age=3600' : 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      ...more,
    };
    const usual = pathname.startsWith('/demo/') ? DEMO_POLICY : POLICY;
    const policy = given === undefined ? usual : given;
    if (policy !== null) headers['content-security-policy'] = policy;
    if (pathname === '/') {
      response.writeHead(200, { ...headers, 'content-type': TYPES['.html'] }).end(EMPTY);
      return;
    }
    const script = scripts[pathname];
    if (script) {
      const { millis = 0, bare = false } = script;
      const text = textOf(pathname, script, search === '?first');
      const own = {
        'content-type': TYPES[extname(pathname)],
        'content-length': Buffer.byteLength(text),
        'content-security-policy': policy ?? '',
      };
      setTimeout(
        () => response.writeHead(200, bare ? own : { ...headers, ...own }).end(text),
        millis,
      );
      return;
    }
    const prefix = Object.keys(all).find((each) => pathname.startsWith(each));
    const below = normalize(
      decodeURIComponent(pathname.slice(prefix?.length ?? 0)) || 'index.html',
    );
    const file =
      prefix && !below.startsWith('..') ? join(resolve(root, all[prefix]), below) : undefined;
    const stat = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (file === undefined || !stat?.isFile()) {
      response.writeHead(404, headers).end();
      return;
    }
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (from !== undefined && Number(from) < stat.size) {
      const [start, end] = [Number(from), Math.min(Number(to), stat.size - 1)];
      ranges.push([pathname, start, end - start + 1]);
      const part = {
        'content-range': `bytes ${start}-${end}/${stat.size}`,
        'content-length': end - start + 1,
        etag: `"${stat.size}-${stat.mtimeMs}"`,
      };
      response.writeHead(206, { ...headers, ...part, 'content-type': 'application/octet-stream' });
      createReadStream(file, { start, end }).pipe(response);
      return;
    }
    response.writeHead(200, {
      ...headers,
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'content-length': stat.size,
    });
    if (request.method === 'HEAD') response.end();
    else createReadStream(file).pipe(response);
  });
  return new Promise((ready) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      ready({
        url: `http://127.0.0.1:${port}`,
        ranges,
        close: () => new Promise((done) => server.close(done)),
      });
    });
  });
}
