/** Sends one request to a new worker, which ends with it. */
import type { WorkerCall } from './call.js';
import { aborted } from '../protocol/errors.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { CallOptions } from './rpc.js';
import { optionsOf, ownFields } from './given.js';
import { spawn, workerOptions } from './spawn.js';

/** Time after an abort before the worker is ended: short, because the core does not pause while it reads a file or waits for the GPU. */
const GRACE_MILLIS = 50;

/**
 * @internal Returns the options of a call that starts its own worker, checked before anything is read or started. `others` are the names of the call's
 * other options.
 */
export function workerCall<T extends WorkerCall>(call: T, others?: readonly string[]): T {
  const { signal: _, onProgress: __, ...worker } = ownFields(call);
  workerOptions(worker, [...(others ?? []), 'signal', 'onProgress']);
  return ownFields(call);
}

/** @internal Sends one request to a new worker and returns the reply. */
export async function askOwnWorker<T extends Tag>(
  tag: T,
  ask: Ask<T>,
  call: WorkerCall,
  moved: CallOptions = {},
): Promise<Reply<T>> {
  const { signal, onProgress, ...worker } = optionsOf(call, tag);
  const connection = await spawn(workerOptions(worker, ['signal', 'onProgress']), signal);
  try {
    return await connection.call(tag, ask, {
      signal,
      onProgress,
      graceMillis: GRACE_MILLIS,
      ...moved,
    });
  } finally {
    connection.close(aborted(tag));
  }
}
