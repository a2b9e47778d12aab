/** After a lost GPU: a new worker, a new adapter, the newest whole checkpoint (browser.md §2). */
import { aborted, TabtuneError } from './errors.js';
import type { Ask, SessionInfo } from './protocol.js';
import type { Connection } from './rpc.js';
import { spawn } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

/** A GPU process that died twice needs more than five seconds; a minute in all is enough to know. */
const DELAYS_SECS = [0, 1, 2, 4, 8, 16, 29];
/** A second loss so soon after the first is not retried at once. */
const SOON_MILLIS = 60_000;

export interface Recovered {
  connection: Connection;
  info: SessionInfo;
}

export class Recovery {
  #lastLoss = -Infinity;

  constructor(
    private ask: Ask<'trainer.resume'>,
    private readonly workerOptions: WorkerOptions,
  ) {}

  /** From now on the newest checkpoint has the settings that the run was resumed with, and what was set by hand since. */
  saved(): void {
    this.ask = { ...this.ask, config: undefined, override: undefined };
  }

  /** The run, open again in another worker. Without a checkpoint, or with a worker that is not ours, `lost` is final. */
  async again(lost: TabtuneError, signal: AbortSignal | undefined): Promise<Recovered> {
    if (typeof this.workerOptions.worker === 'object') throw lost;
    const now = performance.now();
    const delays = now - this.#lastLoss < SOON_MILLIS ? DELAYS_SECS.slice(1) : DELAYS_SECS;
    this.#lastLoss = now;
    for (const secs of delays) {
      await sleep(secs * 1000, signal);
      const connection = await spawn(this.workerOptions);
      try {
        return { connection, info: await connection.call('trainer.resume', this.ask, { signal }) };
      } catch (thrown) {
        connection.close(aborted('the recovery'));
        if (!(thrown instanceof TabtuneError)) throw thrown;
        if (thrown.detail.code === 'checkpoint.none') throw lost;
        if (thrown.code !== 'DEVICE_LOST' && thrown.code !== 'NO_ADAPTER') throw thrown;
      }
    }
    throw new TabtuneError('GPU_UNAVAILABLE', 'the GPU did not come back. The last checkpoint is whole: reload the page and resume it.', { code: 'device.unavailable' }, lost);
  }
}

function sleep(millis: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(aborted('the recovery'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, millis);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
