/** Adapters extracted from two models: the requests to the core, and the destination of its files. */
import { describe, expect, it } from 'vitest';

import { extractAdapter } from '../src/index.js';
import type { ExportTarget, Progress } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { Origin, StoredFolder } from './origin.js';

describe('an adapter of two models', () => {
  const [tuned, base] = ['tuned.gguf', '__proto__'].map((name) => new File(['GGUF....'], name));
  const made = (more: object = {}): ReturnType<typeof extractAdapter> =>
    extractAdapter({ tuned: tuned as File, base: base as File, r: 3, worker: fakeWorker, ...more });

  it('is_returned_as_files_with_its_report', async () => {
    const heard: unknown[] = [];
    const { files, receipt, report } = await made({
      targetModules: ['q_proj'],
      onProgress: ({ phase, fraction }: Progress) => heard.push([phase, fraction]),
    });
    expect(JSON.parse((await files[0]?.blob.text()) ?? '')).toEqual({
      r: 3,
      target_modules: ['q_proj'],
    });
    expect([Object.keys(report.tensors), report.rank, receipt?.['operation']]).toEqual([
      ['tuned.gguf', '__proto__'],
      3,
      'export',
    ]);
    expect(heard).toContainEqual(['read', 0.5]);
    expect(heard).toContainEqual(['export', 1]);
    expect(JSON.parse((await (await made()).files[0]?.blob.text()) ?? '')).toEqual({
      r: 3,
      target_modules: 'all-linear',
    });
  });
  it('is_written_to_a_target_or_refused', async () => {
    const place = new StoredFolder('picked', new Origin()) as unknown as ExportTarget &
      StoredFolder;
    expect((await made({ to: place })).files).toEqual([]);
    expect(await place.getFileHandle('tabtune.receipt.json')).toBeDefined();
    for (const [path, more] of [
      ['r', { r: 0.5 }],
      ['to', { to: 'here' }],
      ['targetModules', { targetModules: 7 }],
      ['base', { base: [] }],
      ['rank', { rank: 3 }],
    ] as const) {
      await expect(made(more)).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path } });
    }
    const chunks: Uint8Array[] = [];
    const stream = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk) });
    const controller = new AbortController();
    const going = made({ to: stream, signal: controller.signal });
    setTimeout(() => controller.abort(), 5);
    await expect(going).rejects.toMatchObject({ name: 'AbortError' });
    expect(chunks).toEqual([]);
    expect(fake.streams).toBe(0);
  });
});
