/** Measurement of a GPU that does not exist. */

import { fake, slices } from './fake-calls.js';

export async function measureGpu(
  timestamps: boolean,
  onProgress: (done: number, total: number) => void,
): Promise<unknown> {
  onProgress(1, 2);
  await slices(4, fake.stepMillis);
  const row = {
    name: 'linear forward',
    shape: '128 × 128 → 128',
    whole: false,
    kernels: ['linear_block'],
    ms: 2,
    gbPerSec: 0.1,
    inStep: 0,
  };
  const kernels = [
    { ...row, gflopPerSec: 2.1, fraction: 0.25, of: 'peak' },
    { ...row, name: 'RMS norm forward', fraction: 0.5, of: 'copy' },
  ];
  return {
    adapter: '',
    driver: '',
    backend: 'webgpu',
    software: true,
    timing: timestamps ? 'device' : 'system',
    peakGflopPerSec: 8.4,
    copyGbPerSec: 1.5,
    kernels,
  };
}
