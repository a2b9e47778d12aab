/** tabtune/testing: an app's tests without a browser and a GPU. The worker is the package's own, its core is a fake: what it computes is arithmetic, not a model. */
import { ERROR_CODES, TabtuneError } from './index.js';
import type { ErrorCode, ErrorDetail } from './index.js';
import { endWorkers, fakeWorker } from './testing/channel.js';
import { completeBlobs, emptyStorage, room } from './testing/environment.js';
import { fake, panic, resetFake } from './testing/fake-calls.js';
import type { Failure } from './testing/fake-calls.js';
import { gpu, resetGpu } from './testing/fake-gpu.js';
import type { FakeWorkerState } from './testing/fake-gpu.js';

/** How the fake core behaves, until it is configured differently. */
export interface TestingOptions {
  /** The loss of each step; one that is not finite makes the step fail as NON_FINITE. By default it falls slowly, by the settings. */
  loss?: ((step: number) => number) | undefined;
  /** The loss of an evaluation after this step. */
  evalLoss?: ((step: number) => number) | undefined;
  /** Milliseconds that each step takes; 0 by default. */
  stepMillis?: number | undefined;
  /** Bytes that the storage can still take: with 0, saves fail as QUOTA_EXCEEDED. No limit by default. */
  freeBytes?: number | undefined;
  /** False if there is no GPU: calls that need one fail as NO_ADAPTER. */
  gpu?: boolean | undefined;
}

/** A call that can be made to fail: `openModel`, the start of a run, its continuation from a checkpoint, a step, and so on. */
export type TestedCall = 'open' | 'create' | 'resume' | 'step' | 'evaluate' | 'sample' | 'export';

/** A failure that happens once. */
export interface TestFailure {
  /**
   * Code of the error. DEVICE_LOST, OUT_OF_MEMORY, SHADER_FAILED and WORKER_CRASHED happen to the GPU or to the worker, and the package recovers as it
   * does in a browser, or gives up; every other code is that of the error that the call throws.
   */
  code: ErrorCode;
  /** The step, or the token of a sample counted from 0, at which it happens, or the next one after it; the next call by default. */
  at?: number | undefined;
  /** Message of the error that the call throws. */
  message?: string | undefined;
  /** Details of that error, such as the `path` of a refused option. */
  detail?: ErrorDetail | undefined;
}

/** A fake worker, with storage in memory. */
export interface Testing extends AsyncDisposable {
  /** Starts a worker in this process; the `worker` of `openModel`, `newModel`, `Trainer.resume` and every other call with that option. */
  readonly worker: () => Worker;
  /** Changes how the fake core behaves from now on; what is not named stays. */
  configure(options: TestingOptions): void;
  /** Makes the next such call fail, once; several failures can wait at the same time. */
  fail(call: TestedCall, failure: TestFailure): void;
  /** Ends all workers and forgets what they have stored; trainers are disposed before it. */
  close(): Promise<void>;
}

const CALLS = {
  open: 'open',
  create: 'create',
  resume: 'resume',
  step: 'step',
  evaluate: 'evaluate',
  sample: 'token',
  export: 'export',
} as const satisfies Record<TestedCall, Failure['call']>;

/** Effects on a GPU or a worker, by code; the fake core then behaves as the real one. */
const ACCIDENTS: Partial<Record<ErrorCode, (worker: FakeWorkerState, message: string) => unknown>> =
  {
    DEVICE_LOST: ({ device }, message) =>
      device ? device.destroy() : refuse('DEVICE_LOST', message),
    OUT_OF_MEMORY: ({ device }, message) => device?.complain('GPUOutOfMemoryError', message),
    SHADER_FAILED: ({ device }, message) => device?.complain('GPUValidationError', message),
    WORKER_CRASHED: (worker, message) => panic(worker, message),
  };

/** Throws what the core throws. */
function refuse(kind: ErrorCode, message: string, detail: ErrorDetail = {}): never {
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw { kind, message, ...detail };
}

const MESSAGE = 'a test has asked for this failure';

const KINDS = {
  loss: 'function',
  evalLoss: 'function',
  stepMillis: 'number',
  freeBytes: 'number',
  gpu: 'boolean',
} as const satisfies Record<keyof TestingOptions, string>;

function badOption(path: string, expected: string, found: unknown): TabtuneError {
  const word = typeof found === 'function' ? 'a function' : (JSON.stringify(found) ?? 'undefined');
  return new TabtuneError('BAD_OPTION', `${path}: expected ${expected}, found ${word}`, {
    code: 'option.invalid',
    path,
  });
}

function configure(options: TestingOptions): void {
  for (const [path, value] of Object.entries(options) as [string, unknown][]) {
    if (!Object.hasOwn(KINDS, path))
      throw badOption(path, `one of ${Object.keys(KINDS).join(', ')}`, path);
    const kind = KINDS[path as keyof TestingOptions];
    const valid = kind === 'number' ? Number(value) >= 0 : true;
    if (value !== undefined && (typeof value !== kind || !valid))
      throw badOption(path, kind === 'number' ? 'a number, 0 or more' : `a ${kind}`, value);
  }
  if (Object.hasOwn(options, 'loss')) fake.loss = options.loss;
  if (Object.hasOwn(options, 'evalLoss')) fake.evaluation = options.evalLoss;
  if (Object.hasOwn(options, 'stepMillis')) fake.stepMillis = options.stepMillis ?? 0;
  if (Object.hasOwn(options, 'freeBytes')) room.bytes = options.freeBytes;
  if (Object.hasOwn(options, 'gpu')) gpu.absent = options.gpu === false;
}

function fail(call: TestedCall, failure: TestFailure): void {
  if (!Object.hasOwn(CALLS, call))
    throw badOption('call', `one of ${Object.keys(CALLS).join(', ')}`, call);
  const { code, at = 0, message = MESSAGE, detail = {} } = failure;
  if (!ERROR_CODES.includes(code)) throw badOption('code', 'a code of a TabtuneError', code);
  if (typeof at !== 'number' || !(at >= 0)) throw badOption('at', 'a number, 0 or more', at);
  const accident = ACCIDENTS[code];
  if (accident && call === 'open')
    throw badOption('code', 'the code of an error in a file, as nothing runs on a GPU yet', code);
  fake.failures.push({
    call: CALLS[call],
    at,
    happen: (worker) => (accident ? accident(worker, message) : refuse(code, message, detail)),
  });
}

let open = false;

function reset(): void {
  resetFake();
  resetGpu();
  emptyStorage();
}

/**
 * Starts testing: `worker` of what it returns runs the package's worker in this process, on a fake core. One at a time in a process; test runners run
 * each file in its own. Where Node has no Web Locks, trainers warn that their run is not locked (`run.unlocked`).
 */
export function startTesting(options: TestingOptions = {}): Testing {
  if (open)
    throw new TabtuneError(
      'BUSY',
      'Testing was started before in this process, and it can be started once at a time. Close it first.',
    );
  completeBlobs();
  reset();
  configure(options);
  open = true;
  const close = async (): Promise<void> => {
    if (!open) return;
    open = false;
    endWorkers();
    reset();
  };
  return { worker: fakeWorker, configure, fail, close, [Symbol.asyncDispose]: close };
}
