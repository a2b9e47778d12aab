/** The worker where there is none of a browser: a thread of Node. */
import { MessageChannel, Worker as Thread } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { mapped } from './mapped.js';
import { GivenBlobs } from './remote-blobs.js';
import type { Reads } from './remote-blobs.js';

/** The part of a browser's worker that the package uses. */
class ThreadWorker extends EventTarget {
  readonly #thread: Thread;
  readonly #blobs: GivenBlobs;
  readonly #reads: MessagePort;
  /** Number of requests without a reply. */
  #waiting = 0;

  constructor() {
    super();
    const { port1, port2 } = new MessageChannel();
    const state = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const workerData: Reads = { port: port2, state };
    this.#blobs = new GivenBlobs({ port: port1, state });
    this.#reads = port1;
    this.#thread = new Thread(new URL('./node-thread.js', import.meta.url), {
      workerData,
      transferList: [port2],
    });
    this.#thread.on('message', (data: unknown) => {
      this.#count(data, /^(reply|error)$/, -1);
      this.dispatchEvent(new MessageEvent('message', { data }));
    });
    this.#thread.on('messageerror', () => this.dispatchEvent(new Event('messageerror')));
    this.#thread.on('error', ({ message }) =>
      this.dispatchEvent(Object.assign(new Event('error'), { message })),
    );
    this.#thread.on('exit', () => port1.close());
  }

  /** Counts the requests that wait: only they keep a program from ending, not a model that is not disposed. */
  #count(message: unknown, types: RegExp, change: 1 | -1): void {
    if (!types.test(String(Reflect.get(Object(message) as object, 'type')))) return;
    this.#waiting += change;
    for (const each of [this.#thread, this.#reads])
      if (this.#waiting > 0) each.ref();
      else each.unref();
  }

  postMessage(message: unknown, transfer: ArrayBuffer[] = []): void {
    this.#thread.postMessage(mapped(message, this.#blobs.placed), transfer);
    this.#count(message, /^request$/, 1);
  }

  terminate(): void {
    void this.#thread.terminate();
  }
}

/** Starts the package's worker in a thread. */
export const startThread = (): Worker => new ThreadWorker() as unknown as Worker;
