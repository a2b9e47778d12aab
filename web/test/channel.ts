/** A worker without a thread: page and worker in one process, with messages copied as between real ones. */
import type { Port } from '../src/rpc.js';
import type { Scope } from '../src/serve.js';
import { serve } from '../src/serve.js';

class End extends EventTarget {
  other: End | undefined;
  closed = false;
  postMessage(message: unknown): void {
    const data = copied(message);
    setTimeout(() => {
      if (!this.closed && this.other && !this.other.closed) this.other.dispatchEvent(Object.assign(new Event('message'), { data }));
    }, 0);
  }
  terminate(): void {
    this.closed = true;
  }
}

/** Structured clone, except for the tests' own Blobs, which Node cannot clone. */
function copied(value: unknown): unknown {
  if (value instanceof Blob || value instanceof ArrayBuffer) return value;
  if (Array.isArray(value)) return value.map(copied);
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copied(inner)]));
  }
  return structuredClone(value);
}

export interface Channel {
  port: Port & EventTarget;
  worker: Scope & EventTarget;
}

export function channel(): Channel {
  const [page, worker] = [new End(), new End()];
  page.other = worker;
  worker.other = page;
  return { port: page, worker };
}

/** A page-side port with a served worker behind it. */
export function fakeWorker(): Port & EventTarget {
  const { port, worker } = channel();
  serve(worker);
  return port;
}
