/** Sees every GPU fault first (platform.md §10): wgpu's own handler would panic inside the event callback. */
import { TabtuneError } from './errors.js';

/** The first fault of the device, if any. A step counts only if a later read succeeded and this is still empty. */
export class DeviceWatch {
  #fault: TabtuneError | undefined;
  #adapter = '';
  #lost: Promise<void> = new Promise(() => undefined);

  /** The adapter's own words; the core sees none in a browser. */
  get adapter(): string {
    return this.#adapter;
  }

  get fault(): TabtuneError | undefined {
    return this.#fault;
  }

  /** Wraps `requestDevice` before the core starts. */
  install(): void {
    if (typeof GPUAdapter === 'undefined') return;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its adapter below
    const request = GPUAdapter.prototype.requestDevice;
    const watch = (device: GPUDevice): void => this.#watch(device);
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await request.call(this, descriptor);
      watch(device);
      return device;
    };
  }

  #watch(device: GPUDevice): void {
    // Absent before Chrome 133 and Firefox 141.
    const info: GPUAdapterInfo | undefined = device.adapterInfo;
    if (info) this.#adapter = info.description || [info.vendor, info.architecture].filter(Boolean).join(' ');
    this.#lost = device.lost.then((info) => {
      this.#fault ??= new TabtuneError(
        'DEVICE_LOST',
        `the GPU was lost (${info.message || info.reason}). Training can go on from the last checkpoint.`,
        { code: 'device.lost', reason: info.reason },
      );
    });
    device.addEventListener('uncapturederror', (event) => {
      event.stopImmediatePropagation();
      this.#fault ??= classify(event.error);
    });
  }

  /** Names a failed read: the loss of the device is reported shortly after the read that it broke. */
  async explain(error: TabtuneError): Promise<TabtuneError> {
    if (this.#fault) return this.#fault;
    if (error.code !== 'DEVICE_LOST' && error.code !== 'WORKER_CRASHED') return error;
    await Promise.race([this.#lost, new Promise((resolve) => setTimeout(resolve, 100))]);
    return this.#fault ?? error;
  }
}

function classify(error: GPUError): TabtuneError {
  if (error instanceof GPUOutOfMemoryError) {
    return new TabtuneError('OUT_OF_MEMORY', 'the GPU is out of memory. Use a smaller batchSize or seqLen, or precision bf16.', {
      code: 'device.out-of-memory',
      reason: error.message,
    });
  }
  return new TabtuneError('SHADER_FAILED', `the GPU refused a command: ${error.message}`, { code: 'device.uncaptured', reason: error.message });
}
