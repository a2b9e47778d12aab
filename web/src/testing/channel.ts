/** A worker without a thread: page and worker in one process, with messages copied as between real ones. */
import { isOf } from '../protocol/brand.js';
import { isHandle, mapped } from '../node/mapped.js';
import type { Scope } from '../worker/serve.js';
import { serve } from '../worker/serve.js';
import { inMemory, isInMemory } from './environment.js';
import { FakeWorkerState, gpuScope, workers } from './fake-gpu.js';

class End extends EventTarget {
  other: End | undefined;
  closed = false;
  onClose: () => void = () => undefined;
  /** Runs the code that handles an incoming message in its worker. */
  inside: (work: () => void) => void = (work) => work();
  /** Received messages, oldest first. */
  received: unknown[] = [];
  /** The last message that waits for the bytes of a Blob; later ones must not overtake it. */
  #waiting: Promise<void> | undefined;

  postMessage(message: unknown): void {
    const data = mapped(message, copied);
    const blobs: Blob[] = [];
    mapped(data, (value) => {
      if (isOf(value, 'Blob') && !isInMemory(value)) blobs.push(value);
      return value;
    });
    if (this.#waiting === undefined && blobs.length === 0) return this.#deliver(data);
    const last = Promise.all([Promise.all(blobs.map(inMemory)), this.#waiting]).then(([read]) => {
      if (this.#waiting === last) this.#waiting = undefined;
      const copies = new Map<unknown, Blob>(read.map((copy, index) => [blobs[index], copy]));
      this.#deliver(mapped(data, (value) => copies.get(value) ?? value));
    });
    this.#waiting = last;
  }

  #deliver(data: unknown): void {
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

/** Returns a structured clone, except of what Node cannot clone and of what is handed over anyway. */
function copied(value: unknown): unknown {
  if (isOf(value, 'Blob') || isOf(value, 'MessagePort')) return value;
  if (typeof value === 'object' && value !== null && isHandle(value)) return value;
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

const ports = new Set<End>();

/** Ends all workers. */
export function endWorkers(): void {
  for (const port of ports) port.terminate();
  started.length = 0;
}

/** Returns a page-side port with a served worker behind it. */
export function fakeWorker(): FakePort {
  const [port, worker] = ends();
  ports.add(port);
  const state = new FakeWorkerState();
  started.push(state);
  port.onClose = () => {
    state.terminated = true;
    ports.delete(port);
  };
  const scope = Object.assign(worker, gpuScope(state));
  worker.inside = (work) => workers.run({ state, scope }, work);
  worker.inside(() => serve(scope));
  return asWorker(port);
}
