/** Sees every GPU fault first: wgpu's own handler would panic inside the event callback. */
import { fault, messageOf } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { limited } from '../protocol/limited.js';
import { wait } from '../protocol/wait.js';
import { Nudges, polls } from './nudge.js';

/** The scope that is watched: a worker's global scope. */
export interface WatchedScope {
  GPUAdapter?: typeof GPUAdapter;
  GPUBuffer?: typeof GPUBuffer;
  navigator?: { gpu?: GPU; userAgent?: string };
}

/** Feature that CubeCL requires at its first operation, but uses only for profiling. */
const PRETENDED = 'timestamp-query';
/** Time limit for the browser to find a GPU; its GPU process starts in that time. */
const ADAPTER_MILLIS = 20_000;
/** Maximum number of steps that wait on the GPU behind the running one. */
const MAX_WAITING = 2;
/** Time to wait for the report of a lost device, which comes shortly after the read that the loss broke. */
const LOSS_MILLIS = 100;

/** Returns the features of an adapter or a device as wgpu should see them. */
const withPretended = (features: Iterable<string>): Set<string> =>
  new Set([...features, PRETENDED]);

/** Records the first fault of the device, if any. A step counts only if a later read succeeded without a recorded fault. */
export class DeviceWatch {
  #fault: TabtuneError | undefined;
  #adapter = '';
  #lost: Promise<void> = new Promise(() => undefined);
  #hidden = new Set<string>();
  #queue: GPUQueue | undefined;
  /** Present in a browser that needs them. */
  #nudges: Nudges | undefined;
  #submitted: Promise<unknown>[] = [];
  #scope: WatchedScope = {};
  #onFault: (error: TabtuneError) => void = () => undefined;

  /** Name of the adapter; the core receives none in a browser. */
  get adapter(): string {
    return this.#adapter;
  }

  get fault(): TabtuneError | undefined {
    return this.#fault;
  }

  /** Throws the fault, if there is one. */
  check(): void {
    if (this.#fault) throw this.#fault;
  }

  /** Returns whether the core was shown a feature that the device lacks. */
  hides(feature: string): boolean {
    return this.#hidden.has(feature);
  }

  /** Wraps `requestDevice`, the adapter's features and the reads of Firefox before the core starts. */
  install(scope: WatchedScope, onFault: (error: TabtuneError) => void): void {
    this.#scope = scope;
    this.#onFault = onFault;
    const adapters = scope.GPUAdapter?.prototype;
    if (adapters === undefined) return;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its adapter
    const request = adapters.requestDevice;
    const requested = (adapter: GPUAdapter, descriptor: GPUDeviceDescriptor | undefined) =>
      this.#request(adapter, request, descriptor);
    adapters.requestDevice = function (descriptor) {
      return requested(this, descriptor);
    };
    this.#hastenReads(scope);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its adapter
    const given = Object.getOwnPropertyDescriptor(adapters, 'features')?.get;
    if (!given) return;
    Object.defineProperty(adapters, 'features', {
      configurable: true,
      enumerable: true,
      get(this: GPUAdapter) {
        const features = given.call(this) as GPUSupportedFeatures;
        return features.has(PRETENDED) ? features : withPretended(features);
      },
    });
    this.#real = (adapter) => given.call(adapter) as GPUSupportedFeatures;
  }

  #hastenReads({ GPUBuffer: given, navigator }: WatchedScope): void {
    if (!given || !polls(navigator?.userAgent)) return;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its buffer
    const map = given.prototype.mapAsync;
    const awaited = <T>(asked: Promise<T>): Promise<T> => this.#awaited(asked);
    given.prototype.mapAsync = function (...range) {
      return awaited(map.apply(this, range));
    };
  }

  #awaited<T>(asked: Promise<T>): Promise<T> {
    return this.#nudges?.during(asked) ?? asked;
  }

  #real: (adapter: GPUAdapter) => GPUSupportedFeatures = (adapter) => adapter.features;

  async #request(
    adapter: GPUAdapter,
    request: GPUAdapter['requestDevice'],
    descriptor: GPUDeviceDescriptor | undefined,
  ): Promise<GPUDevice> {
    const lacks = !this.#real(adapter).has(PRETENDED);
    const requiredFeatures = [...(descriptor?.requiredFeatures ?? [])].filter(
      (feature) => !lacks || feature !== PRETENDED,
    );
    let device: GPUDevice;
    try {
      device = await request.call(adapter, { ...descriptor, requiredFeatures });
    } catch (thrown) {
      const reason = messageOf(thrown);
      this.#raise(
        fault(
          'device.no-adapter',
          { found: `it could not be opened, ${reason}` },
          { reason },
          thrown,
        ),
      );
      throw thrown;
    }
    if (lacks) {
      this.#hidden.add(PRETENDED);
      Object.defineProperty(device, 'features', { value: withPretended(device.features) });
    }
    this.#watch(device);
    [this.#queue, this.#submitted] = [device.queue, []];
    if (polls(this.#scope.navigator?.userAgent)) this.#nudges = new Nudges(device.queue);
    return device;
  }

  /** Resolves when at most two of the earlier steps are still on the GPU: without reads nothing else would hold the next one back. */
  async unhurried(): Promise<void> {
    if (this.#queue)
      this.#submitted.push(this.#awaited(this.#queue.onSubmittedWorkDone()).catch(() => undefined));
    if (this.#submitted.length > MAX_WAITING) await this.#submitted.shift();
  }

  #raise(error: TabtuneError): void {
    if (this.#fault) return;
    this.#fault = error;
    this.#onFault(error);
  }

  #watch(device: GPUDevice): void {
    // Absent before Chrome 133 and Firefox 141.
    const info: GPUAdapterInfo | undefined = device.adapterInfo;
    if (info)
      this.#adapter =
        info.description || [info.vendor, info.architecture].filter(Boolean).join(' ');
    this.#lost = device.lost.then(({ reason, message }) => {
      this.#raise(fault('device.lost', { found: message || reason }, { reason }));
    });
    device.addEventListener('uncapturederror', (event) => {
      event.stopImmediatePropagation();
      this.#raise(classify(event.error));
    });
  }

  /** Refuses a missing adapter before the core requests one, because the core would panic. */
  async present(): Promise<void> {
    const gpu = this.#scope.navigator?.gpu;
    const asked = gpu?.requestAdapter({ powerPreference: 'high-performance' });
    const late = (): never => {
      throw fault('device.no-adapter', {
        found: `WebGPU did not answer within ${ADAPTER_MILLIS / 1000} seconds, so its process may hang`,
        hint: 'restart the browser',
      });
    };
    if (asked && (await limited(asked, ADAPTER_MILLIS, late)) === null) {
      throw fault('device.no-adapter', {
        found: 'its process may have stopped, or the browser gave it up',
        hint: 'restart the browser',
      });
    }
  }

  /** Returns the cause of a failed read. */
  async explain(error: TabtuneError): Promise<TabtuneError> {
    if (this.#fault) return this.#fault;
    if (error.code !== 'DEVICE_LOST' && error.code !== 'WORKER_CRASHED') return error;
    await Promise.race([this.#lost, wait(LOSS_MILLIS)]);
    return this.#fault ?? error;
  }
}

function classify(error: GPUError): TabtuneError {
  const reason = error.message;
  if (error.constructor.name === 'GPUOutOfMemoryError') {
    return fault('device.out-of-memory', {}, { reason });
  }
  const kernel = /"([a-z0-9_/]+)"/.exec(reason)?.[1];
  return fault('device.uncaptured', { found: reason }, { reason, kernel });
}
