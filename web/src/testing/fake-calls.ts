/** Knobs of the fake core, and what happens before each of its calls. */
import { currentWorker } from './fake-gpu.js';
import type { FakeWorkerState } from './fake-gpu.js';

export type CallName =
  | 'init'
  | 'create'
  | 'resume'
  | 'step'
  | 'evaluate'
  | 'token'
  | 'score'
  | 'load'
  | 'confirm'
  | 'chunk'
  | 'export';
export interface Called {
  call: CallName;
  /** Number of the step, token or piece. */
  at: number;
  worker: FakeWorkerState;
}

/** A failure that happens once, in the first such call at or after `at`. */
export interface Failure {
  call: CallName | 'open';
  at: number;
  /** Fails the call, or what it runs on. */
  happen: (worker: FakeWorkerState) => unknown;
}

/** State of the fake. `failAt` throws once at that step, a bad batch throws whenever it is reached; `onCall` sees every call before it is made. */
export const fake = {
  stepMillis: 12,
  failAt: 0,
  failWith: undefined as unknown,
  badBatches: [] as number[],
  /** Batches that were trained on. */
  batches: [] as number[],
  /** The overrides of each resume. */
  overrides: [] as string[][],
  /** The base of each resume: names, and numbers of pieces whose checksums are known. */
  bases: [] as string[],
  checkpointBytes: 20_000_000,
  exportBytes: 1_000_000,
  /** Number of bytes in a piece of a file. */
  pieceBytes: 8 << 20,
  loads: 0,
  /** Source of the last core. */
  source: undefined as unknown,
  /** Number of sessions that were created and not freed. */
  sessions: 0,
  /** Number of models whose weights are on the device. */
  loaded: 0,
  /** The tokenizer.json of the last new model. */
  tokenizer: undefined as Uint8Array | undefined,
  /** Requests to generate and score, as JSON values. */
  asked: [] as unknown[],
  /** Number of export streams that were created and not freed. */
  streams: 0,
  /** Makes the next pieces empty. */
  cut: false,
  /** Properties that override the core's usual reply in the next inspections of files. */
  inspection: {} as object,
  /** Settings that the core chose for the next run. */
  chosen: [] as { setting: string; value: unknown; reason: string }[],
  gpuBytes: undefined as number | undefined,
  nonFinite: false,
  /** The losses of evaluations. */
  evaluation: undefined as ((step: number) => number) | undefined,
  /** True if no data are kept for evaluation. */
  nothingKept: false,
  /** True if the files of a model cannot be read. */
  unreadable: false,
  /** Failures that have not happened yet. */
  failures: [] as Failure[],
  /** The loss of a step, instead of one that depends on the rates and batches before it. */
  loss: undefined as ((step: number) => number) | undefined,
  onCall: undefined as ((called: Called) => unknown) | undefined,
};
const DEFAULTS = structuredClone(fake);

/** Resets all knobs; steps then take no time, and files are small. */
export const resetFake = (): void =>
  void Object.assign(fake, structuredClone(DEFAULTS), { stepMillis: 0, checkpointBytes: 1000 });

export const wait = (millis: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, millis));
export const refuse = (kind: string, code: string, message: string, more: object = {}): never => {
  // The core throws plain objects, and so does its stand-in.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw { kind, code, message, ...more };
};

/** Refuses reads of a lost device. */
export function unlessLost(): void {
  if (currentWorker().state.device?.isLost === true)
    refuse('DEVICE_LOST', 'device.lost', 'the device is poisoned');
}

/** Reports the message of a panic; its promise never settles. */
export const panic = (worker: FakeWorkerState, words = 'index out of bounds'): Promise<never> => {
  worker.onPanic(`panicked at src/train.rs:7: ${words}`);
  return new Promise(() => undefined);
};

/** Lets the failure that waits for this call happen. */
export function failed(call: Failure['call'], at = 0): unknown {
  const failure = fake.failures.find((waiting) => waiting.call === call && at >= waiting.at);
  if (!failure) return undefined;
  fake.failures.splice(fake.failures.indexOf(failure), 1);
  return failure.happen(currentWorker().state);
}

export async function called(call: CallName, at = 0): Promise<void> {
  const worker = currentWorker().state;
  await fake.onCall?.({ call, at, worker });
  await failed(call, at);
  unlessLost();
}

/** Does work in parts, between which an abort is noticed. */
export async function slices(count: number, millis: number): Promise<void> {
  for (let part = 0; part < count; part++) {
    await wait(millis);
    unlessLost();
    if (currentWorker().state.abortAsked)
      refuse('ABORTED', 'call.aborted', 'the call was given up');
  }
}
