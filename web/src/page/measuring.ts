/** Measures the speed of this GPU, in its own worker. */
import type { WorkerCall } from './call.js';
import type { GpuReport } from '../protocol/reports.js';
import { askOwnWorker } from './own-worker.js';

/**
 * Measures the peak rates of this GPU, by chains of multiply-adds and by a copy, and how close the kernels of a training step come to them at fixed
 * shapes; a slow device gets a part of a shape. A run in the same tab and the measurement slow each other down: pause the run first.
 */
export function measureGpu(call: WorkerCall = {}): Promise<GpuReport> {
  return askOwnWorker('device.measure', undefined, call);
}
