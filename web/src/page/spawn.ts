import { addressOf, refusedWorker, trusted } from './addresses.js';
import type { Address, TrustedAddress } from './addresses.js';
import { allOf, refuseUnknown } from './checks.js';
import { callable, listening, ownFields } from './given.js';
import { cores, scripts } from './kept.js';
import { Loading } from './loading.js';
import { isOf } from '../protocol/brand.js';
import { VERSION, WASM_HASH } from '../protocol/build.js';
import { badOption, fault, messageOf, toTabtuneError } from '../protocol/errors.js';
import { PROTOCOL } from '../protocol/protocol.js';
import { Connection } from './rpc.js';
import type { Port } from './rpc.js';

/** Locations of the worker and the wasm file; by default they are next to this module. */
export interface WorkerOptions {
  /** URL of the wasm file. */
  wasmUrl?: string | URL | undefined;
  /** Bytes of the wasm file, which is then not requested. */
  wasmBinary?: ArrayBuffer | undefined;
  /**
   * URL of the worker script. One of another origin is imported by a worker made from a Blob, which requires `worker-src blob:`. A TrustedScriptURL
   * is used as it is.
   */
  workerUrl?: string | URL | TrustedAddress | undefined;
  /** A running worker, which the package does not terminate, or a function that starts one. */
  worker?: Worker | (() => Worker) | undefined;
}

/**
 * Time limit for the first message once the script is loaded: a worker whose script does nothing, because a bundler dropped its contents, sends no
 * error.
 */
const HELLO_MILLIS = 30_000;
/** The same limit if the page has kept a script that can take its place. */
const SPARE_MILLIS = 10_000;
/** The same limit if it is not known when the script is loaded. */
const UNKNOWN_MILLIS = 120_000;

const KEYS = ['wasmUrl', 'wasmBinary', 'workerUrl', 'worker'];
/** Address of this module. */
const HERE = import.meta.url;
/** Address of the worker next to this module, if both are served unbundled: bundlers rename this module or replace its address by that of a file. */
const BESIDE = /^https?:[^?#]*\/index\.js([?#].*)?$/.test(HERE)
  ? new URL('./worker.js', HERE).href
  : undefined;
const KIND = { type: 'module', name: 'tabtune' } as const;

const isWorker = (given: unknown): given is Worker =>
  typeof given === 'object' &&
  given !== null &&
  ['postMessage', 'addEventListener'].every(
    (method) => typeof Reflect.get(given, method) === 'function',
  );

/**
 * @internal Returns the given options after checking that all are known and of the right kind. `others` are the names of the call's other options,
 * which the caller may have meant.
 */
export function workerOptions(all: WorkerOptions, others: readonly string[] = []): WorkerOptions {
  const given = ownFields(all);
  const { wasmUrl, wasmBinary, workerUrl, worker } = given;
  allOf(
    () => refuseUnknown(given, KEYS, others),
    () => wasmUrl === undefined || addressOf(wasmUrl, 'wasmUrl'),
    () => workerUrl === undefined || addressOf(workerUrl, 'workerUrl'),
    () => {
      if (wasmBinary !== undefined && !isOf(wasmBinary, 'ArrayBuffer'))
        throw badOption('wasmBinary', 'an ArrayBuffer', wasmBinary);
    },
    () => {
      if (worker !== undefined && typeof worker !== 'function' && !isWorker(worker))
        throw badOption('worker', 'a Worker, or a function that starts one', worker);
    },
  );
  return given;
}

/** Starts a worker from a Blob. */
function blobWorker(text: string): Worker {
  const href = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  try {
    return new Worker(trusted({ href, given: href }), KIND);
  } finally {
    URL.revokeObjectURL(href);
  }
}

/** Returns whether a worker can be made from this address; one of another origin can only be imported. */
const isOwn = ({ href }: Address): boolean => new URL(href).origin === globalThis.origin;

/** Starts a worker from the given script, or the package's own worker. */
function startWorker(given: Address | undefined): Worker {
  const address = given ?? (BESIDE === undefined ? undefined : { href: BESIDE, given: BESIDE });
  try {
    // The form that bundlers recognise, including the literal options.
    if (address === undefined)
      return new Worker(new URL(/* @vite-ignore */ './worker.js', import.meta.url), {
        type: 'module',
        name: 'tabtune',
      });
    return isOwn(address)
      ? new Worker(trusted(address), KIND)
      : blobWorker(`import ${JSON.stringify(address.href)};`);
  } catch (thrown) {
    throw refusedWorker(thrown);
  }
}

/** Starts a worker with the caller's function. */
function givenWorker(start: () => Worker): Worker {
  let worker: unknown;
  try {
    worker = start();
  } catch (thrown) {
    throw fault(
      'worker.failed',
      { found: `the function given as worker threw: ${messageOf(thrown)}`, hint: '' },
      { path: 'worker' },
      thrown,
    );
  }
  if (isWorker(worker)) return worker;
  throw badOption('worker', 'a function that returns a Worker', worker);
}

function portOf({ worker }: WorkerOptions, address: Address | undefined): Port {
  if (typeof worker === 'object') return worker;
  if (worker !== undefined) return givenWorker(worker);
  if (typeof Worker === 'undefined') throw fault('browser.worker');
  return startWorker(address);
}

/** Codes of a worker that did not start, as after its site has changed. */
const UNSTARTED: readonly unknown[] = ['worker.failed', 'worker.silent', 'protocol.invalid'];

/**
 * @internal Starts a worker of the same build and returns once it is ready for requests. If its script can no longer be loaded, or has become that of
 * another build, the script that the page has kept takes its place. On any failure the started worker is ended.
 */
export async function spawn(options: WorkerOptions, signal?: AbortSignal): Promise<Connection> {
  callable(
    options.worker === undefined || typeof options.worker === 'object' ? undefined : options.worker,
    'worker',
  );
  listening(signal, 'the start of the worker');
  if (typeof isSecureContext === 'boolean' && !isSecureContext) throw fault('browser.insecure');
  if (globalThis.origin === 'null') throw fault('browser.origin');
  const address =
    options.workerUrl === undefined ? undefined : addressOf(options.workerUrl, 'workerUrl');
  const known = options.worker === undefined ? (address?.href ?? BESIDE) : undefined;
  const script = typeof options.worker === 'object' ? undefined : scripts.get(known);
  try {
    return await greeted(options, () => portOf(options, address), {
      known,
      spare: script !== undefined,
      signal,
    });
  } catch (thrown) {
    const error = toTabtuneError(thrown);
    // A function of the caller that throws is one to mend.
    if (
      script === undefined ||
      error.detail.path === 'worker' ||
      !UNSTARTED.includes(error.detail.code)
    )
      throw error;
    return greeted(options, () => blobWorker(script), {
      known: undefined,
      spare: false,
      signal,
    }).catch(() => {
      throw error;
    });
  }
}

interface Start {
  /** Address of the script, if it is known. */
  known: string | undefined;
  /** True if another script can take its place, so that a slow one need not be waited for. */
  spare: boolean;
  signal: AbortSignal | undefined;
}

/** Starts a worker, and returns once it has answered. */
async function greeted(
  options: WorkerOptions,
  start: () => Port,
  { known, spare, signal }: Start,
): Promise<Connection> {
  const wasmUrl =
    options.wasmUrl === undefined ? undefined : addressOf(options.wasmUrl, 'wasmUrl').href;
  const loading = new Loading(known);
  let connection: Connection | undefined;
  let waiting = true;
  let silent: ReturnType<typeof setTimeout> | undefined;
  const after = (millis: number, act: () => void): void => void (silent = setTimeout(act, millis));
  const end = (): void =>
    connection?.close(
      fault('worker.silent', {
        found: `within ${HELLO_MILLIS / 1000} seconds`,
        hint: 'check that its script imports tabtune/worker and is served',
      }),
    );
  const look = async (): Promise<void> => {
    // A script that is still being loaded is not a silent one.
    await loading.loaded();
    if (waiting) after(HELLO_MILLIS, end);
  };
  try {
    const opened = new Connection(start(), typeof options.worker !== 'object', () => loading.why());
    connection = opened;
    if (spare) after(SPARE_MILLIS, end);
    else if (known !== undefined) after(HELLO_MILLIS, () => void look());
    else after(typeof options.worker === 'function' ? UNKNOWN_MILLIS : HELLO_MILLIS, end);
    const { wasmBinary } = options;
    // Bytes have no address by which their compiled core could be found.
    const core = wasmBinary === undefined ? cores.get(wasmUrl) : undefined;
    opened.onKept = (kept) => {
      if (kept.core && wasmBinary === undefined) cores.set(wasmUrl, kept.core);
      if (kept.script !== undefined) scripts.set(known, kept.script);
    };
    const hello = {
      protocol: PROTOCOL,
      version: VERSION,
      wasmHash: WASM_HASH,
      wasmUrl,
      wasmBinary,
      core,
      script: known,
    };
    await opened.call('worker.hello', hello, { signal, graceMillis: 0 });
    return opened;
  } catch (thrown) {
    const error = toTabtuneError(thrown);
    connection?.close(error);
    throw error;
  } finally {
    waiting = false;
    clearTimeout(silent);
    loading.end();
  }
}
