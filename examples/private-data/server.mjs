// Serves a page that trains on private data, with a policy under which nothing can leave: the browser
// itself refuses every request to another origin, from the page and from the worker. A worker takes its
// policy from the response of its own script, so every response carries it.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

/**
 * - `'wasm-unsafe-eval'` lets the worker compile the WebAssembly, and allows no eval.
 * - `blob:` in `worker-src` lets an open tab outlive a deployment; without it everything else works.
 * - `connect-src 'self'` is what keeps data here: `fetch` reaches this server alone.
 * - `form-action` and `frame-ancestors` do not follow `default-src`.
 */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self' blob:",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
};

/** Serves a folder, such as the one that `npx vite build` writes. It takes GET alone: nothing can be sent to it. */
export const serveFolder = (folder) =>
  createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = normalize(pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    const file = join(folder, path);
    const found = await stat(file).catch(() => undefined);
    const status = request.method !== 'GET' ? 405 : found?.isFile() ? 200 : 404;
    response.writeHead(status, {
      'content-security-policy': POLICY,
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    if (status === 200) createReadStream(file).pipe(response);
    else response.end();
  });

if (import.meta.filename === process.argv[1])
  serveFolder(process.argv[2] ?? 'dist').listen(8080, () => console.log('http://localhost:8080'));
