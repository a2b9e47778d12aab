/** `measureGpu`: in its own worker, with the properties that the device reports. */
import { describe, expect, it } from 'vitest';

import { measureGpu } from '../src/index.js';
import type { Progress } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { gpu } from '../src/testing/fake-gpu.js';

describe('measuring this GPU', () => {
  it('reports_the_name_of_the_gpu_and_progress', async () => {
    const heard: unknown[] = [];
    const { adapter, timing, kernels, peakGflopPerSec } = await measureGpu({
      worker: fakeWorker,
      onProgress: ({ phase, loaded, total }: Progress) => heard.push([phase, loaded, total]),
    });
    expect([adapter, timing, peakGflopPerSec]).toEqual(['Fake adapter', 'device', 8.4]);
    expect(kernels.map(({ gflopPerSec, fraction, of }) => [gflopPerSec, fraction, of])).toEqual([
      [2.1, 0.25, 'peak'],
      [undefined, 0.5, 'copy'],
    ]);
    expect(heard).toEqual([['measure', 1, 2]]);
  });
  it('takes_the_host_clock_where_there_are_no_timestamps', async () => {
    gpu.features = new Set();
    expect((await measureGpu({ worker: fakeWorker })).timing).toBe('system');
  });
  it('ends_with_its_signal_and_refuses_what_it_does_not_know', async () => {
    fake.stepMillis = 200;
    const controller = new AbortController();
    const going = measureGpu({ worker: fakeWorker, signal: controller.signal });
    setTimeout(() => controller.abort(), 5);
    await expect(going).rejects.toMatchObject({ name: 'AbortError' });
    await expect(measureGpu({ worker: fakeWorker, quick: true } as object)).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'quick' },
    });
    gpu.absent = true;
    await expect(measureGpu({ worker: fakeWorker })).rejects.toMatchObject({ code: 'NO_ADAPTER' });
  });
});
