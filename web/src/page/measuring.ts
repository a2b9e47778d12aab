/** How fast this GPU is, in a worker of its own. */
import type { WorkerCall } from './call.js';
import type { GpuReport } from '../protocol/reports.js';
import { asked } from './own-worker.js';

/**
 * What this GPU does at most, by chains of multiply-adds and by a copy, and how near the kernels of a training step come to it at fixed shapes; a slow device
 * gets a part of a shape. A run in the same tab makes it slower and is made slower by it: pause it first.
 */
export function measureGpu(call: WorkerCall = {}): Promise<GpuReport> {
  return asked('device.measure', undefined, call);
}
