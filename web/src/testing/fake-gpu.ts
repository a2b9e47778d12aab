/** The GPU of one fake worker: an adapter that can be hidden, a device that can be lost or report errors. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { WatchedScope } from '../worker/device.js';

export class FakeDevice extends EventTarget {
  readonly adapterInfo = { description: gpu.adapter, vendor: '', architecture: '' };
  features = new Set<string>();
  isLost = false;
  readonly lost: Promise<{ reason: string; message: string }>;
  #lose: (info: { reason: string; message: string }) => void = () => undefined;
  constructor() {
    super();
    this.lost = new Promise((resolve) => (this.#lose = resolve));
  }
  destroy(): void {
    this.isLost = true;
    this.#lose({ reason: 'destroyed', message: '' });
  }
  /** Reports a fault after which reads still succeed, with wrong bytes. */
  complain(kind: 'GPUOutOfMemoryError' | 'GPUValidationError', message: string): void {
    const error = { message, constructor: { name: kind } };
    this.dispatchEvent(
      Object.assign(new Event('uncapturederror', { cancelable: true }), { error }),
    );
  }
}

/** State of one worker: its GPU, and the calls that its core received. */
export class FakeWorkerState {
  device: FakeDevice | undefined;
  onPanic: (message: string) => void = () => undefined;
  abortAsked = false;
  initialised = 0;
  terminated = false;
}

export const workers = new AsyncLocalStorage<{ state: FakeWorkerState; scope: WatchedScope }>();
/** Returns the worker whose core is being called. */
export function currentWorker(): { state: FakeWorkerState; scope: WatchedScope } {
  const worker = workers.getStore();
  if (!worker) throw new Error('no fake worker is running');
  return worker;
}

/** Knobs that outlive a worker. */
export const gpu = {
  /** True if no adapter is available. */
  absent: false,
  /** Name of the adapter. */
  adapter: 'Fake adapter',
  /** Features of the adapter. */
  features: new Set<string>(['timestamp-query']),
  /** Features with which devices were requested, newest last. */
  requested: [] as string[][],
};

export const resetGpu = (): void =>
  void Object.assign(gpu, { absent: false, features: new Set(['timestamp-query']), requested: [] });

/** Returns a worker's own `GPUAdapter` and `navigator.gpu`. */
export function gpuScope(state: FakeWorkerState): WatchedScope {
  class Adapter {
    get features(): Set<string> {
      return gpu.features;
    }
    async requestDevice(descriptor?: { requiredFeatures?: Iterable<string> }): Promise<FakeDevice> {
      const asked = [...(descriptor?.requiredFeatures ?? [])];
      gpu.requested.push(asked);
      if (asked.some((feature) => !gpu.features.has(feature)))
        throw new TypeError('a feature that the adapter lacks');
      state.device = new FakeDevice();
      state.device.features = new Set(asked);
      return state.device;
    }
  }
  const adapter = Adapter as unknown as typeof GPUAdapter;
  const requestAdapter = async (): Promise<unknown> => (gpu.absent ? null : new Adapter());
  return { GPUAdapter: adapter, navigator: { gpu: { requestAdapter } as unknown as GPU } };
}
