/** One request in a worker of its own, which ends with it. */
import type { WorkerCall } from './call.js';
import { aborted } from '../protocol/errors.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { CallOptions } from './rpc.js';
import { spawn, workerOptions } from './spawn.js';

/** The core reads a file, or waits for the GPU, without a pause, so an abort ends its worker. */
const GRACE_MILLIS = 50;

/** @internal */
export async function asked<T extends Tag>(tag: T, ask: Ask<T>, { signal, onProgress, ...worker }: WorkerCall, moved: CallOptions = {}): Promise<Reply<T>> {
  const connection = await spawn(workerOptions(worker));
  try {
    return await connection.call(tag, ask, { signal, onProgress, graceMillis: GRACE_MILLIS, ...moved });
  } finally {
    connection.close(aborted(tag));
  }
}
