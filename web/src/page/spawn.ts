import { VERSION, WASM_HASH } from '../protocol/build.js';
import { badOption, fault, TabtuneError } from '../protocol/errors.js';
import { PROTOCOL } from '../protocol/protocol.js';
import { Connection } from './rpc.js';

/** Where the worker and the wasm come from; by default they lie beside this module. */
export interface WorkerOptions {
  wasmUrl?: string | URL;
  wasmBinary?: ArrayBuffer;
  /** A URL of another origin is imported by a worker made from a Blob, which needs `worker-src blob:`. */
  workerUrl?: string | URL;
  /** A ready worker, which is not terminated by us, or a function that starts one. */
  worker?: Worker | (() => Worker);
}

/** Time limit for the first message: a worker whose script does nothing, because a bundler dropped it or it never loads, sends no error. */
const HELLO_MILLIS = 30_000;

const KEYS = ['wasmUrl', 'wasmBinary', 'workerUrl', 'worker'];

/** @internal The given options, if all of them are known. */
export function workerOptions(given: WorkerOptions): WorkerOptions {
  const extra = Object.keys(given).find((key) => !KEYS.includes(key));
  if (extra !== undefined) throw badOption(extra, `one of ${KEYS.join(', ')}`, extra);
  return given;
}

function startWorker(workerUrl: string | URL | undefined): Worker {
  if (typeof Worker === 'undefined') throw fault('browser.worker', 'module workers are needed: run this in a browser page');
  if (workerUrl === undefined) return new Worker(new URL(/* @vite-ignore */ './worker.js', import.meta.url), { type: 'module', name: 'tabtune' });
  const url = new URL(workerUrl, location.href);
  if (url.origin === location.origin) return new Worker(url, { type: 'module', name: 'tabtune' });
  const shim = URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)};`], { type: 'text/javascript' }));
  const worker = new Worker(shim, { type: 'module', name: 'tabtune' });
  URL.revokeObjectURL(shim);
  return worker;
}

/** @internal A worker of the same build, ready for requests. */
export async function spawn(options: WorkerOptions): Promise<Connection> {
  const { worker } = options;
  const port = typeof worker === 'function' ? worker() : (worker ?? startWorker(options.workerUrl));
  const connection = new Connection(port, typeof worker !== 'object');
  const hello = { protocol: PROTOCOL, version: VERSION, wasmHash: WASM_HASH };
  const wasmUrl = options.wasmUrl === undefined ? undefined : new URL(options.wasmUrl, location.href).href;
  const silent = setTimeout(() => {
    connection.close(fault('worker.silent', `the worker did not answer within ${HELLO_MILLIS / 1000} seconds. Check that its script imports tabtune/worker and is served.`));
  }, HELLO_MILLIS);
  try {
    await connection.call('worker.hello', { ...hello, wasmUrl, wasmBinary: options.wasmBinary });
  } catch (thrown) {
    if (thrown instanceof TabtuneError) connection.close(thrown);
    throw thrown;
  } finally {
    clearTimeout(silent);
  }
  return connection;
}
