/** A worker without a thread: page and worker in one process, with messages copied as between real ones. */
import type { Scope } from '../src/worker/serve.js';
import { serve } from '../src/worker/serve.js';
import { FakeWorkerState, gpuScope, workers } from './fake-gpu.js';

class End extends EventTarget {
  other: End | undefined;
  closed = false;
  onClose: () => void = () => undefined;
  /** Runs the code that handles an incoming message in its worker. */
  inside: (work: () => void) => void = (work) => work();
  /** Received messages, oldest first. */
  received: unknown[] = [];
  postMessage(message: unknown): void {
    const data = copied(message);
    setTimeout(() => {
      const { other } = this;
      if (this.closed || !other || other.closed) return;
      other.received.push(data);
      other.inside(() => other.dispatchEvent(Object.assign(new Event('message'), { data })));
    }, 0);
  }
  terminate(): void {
    this.closed = true;
    this.onClose();
  }
}

/** Returns a structured clone, except of the tests' own Blobs and folders, which Node cannot clone. */
function copied(value: unknown): unknown {
  if (value instanceof Blob || value instanceof ArrayBuffer) return value;
  if (value instanceof MessagePort) return value;
  if (
    typeof value === 'object' &&
    value !== null &&
    ['directory', 'file'].includes(String(Reflect.get(value, 'kind')))
  )
    return value;
  if (Array.isArray(value)) return value.map(copied);
  if (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype
  ) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copied(inner)]));
  }
  return structuredClone(value);
}

/** The part of a worker's interface that a page uses; the rest is missing. */
export type FakePort = Worker & { received: unknown[] };
const asWorker = (port: End): FakePort => port as unknown as FakePort;

export interface Channel {
  port: FakePort;
  worker: Scope & EventTarget;
}

function ends(): [End, End] {
  const [page, worker] = [new End(), new End()];
  page.other = worker;
  worker.other = page;
  return [page, worker];
}

export function channel(): Channel {
  const [port, worker] = ends();
  return { port: asWorker(port), worker };
}

/** Returns the messages that one end of a channel has received. */
export const received = (end: object): unknown[] => (end as End).received;

/** The states of the workers that a test has started, oldest first. */
export const started: FakeWorkerState[] = [];

/** Returns a page-side port with a served worker behind it. */
export function fakeWorker(): FakePort {
  const [port, worker] = ends();
  const state = new FakeWorkerState();
  started.push(state);
  port.onClose = () => (state.terminated = true);
  const scope = Object.assign(worker, gpuScope(state));
  worker.inside = (work) => workers.run({ state, scope }, work);
  worker.inside(() => serve(scope));
  return asWorker(port);
}
