/** tabtune/files in Node: the same calls, whose worker is a thread. */
import * as files from './files.js';
import { startThread } from './node/thread-worker.js';

export * from './files.js';

/** Returns options with a thread as the worker, unless they name another one, or there are workers as in browsers. */
function threaded<T extends files.WorkerOptions>(options: T | undefined): T | undefined {
  if (typeof Worker !== 'undefined') return options;
  const { worker, workerUrl } = Object(options) as files.WorkerOptions;
  const isOther = worker !== undefined || workerUrl !== undefined;
  // Anything but an object is refused by the call.
  if (isOther || typeof (options ?? {}) !== 'object') return options;
  return { ...options, worker: startThread } as T;
}

export const inspectFiles: typeof files.inspectFiles = (input, options) =>
  files.inspectFiles(input, threaded(options));
// The overloads are those of the original.
export const inspectData = ((input: files.DataInput, options?: files.DataOptions) =>
  files.inspectData(input, threaded(options) as never)) as typeof files.inspectData;
export const verifyFiles: typeof files.verifyFiles = (input, options) =>
  files.verifyFiles(input, threaded(options));
export const readTensor: typeof files.readTensor = (input, name, options) =>
  files.readTensor(input, name, threaded(options));
export const openModel: typeof files.openModel = (input, options) =>
  files.openModel(input, threaded(options));
export const extractAdapter: typeof files.extractAdapter = (options) =>
  files.extractAdapter(threaded(options) ?? options);
export const deriveDelta: typeof files.deriveDelta = (base, target, options) =>
  files.deriveDelta(base, target, threaded(options));
export const applyDelta: typeof files.applyDelta = (base, delta, options) =>
  files.applyDelta(base, delta, threaded(options));
export const removeDelta: typeof files.removeDelta = (target, delta, options) =>
  files.removeDelta(target, delta, threaded(options));
