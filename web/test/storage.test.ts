import { openDB } from 'idb';
import { beforeEach, describe, expect, it } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { CHUNK_BYTES } from '../src/worker/storage/database.js';
import { freshOrigin } from './origin.js';

freshOrigin();

const META = {
  step: 3,
  totalSteps: 9,
  loss: 2.5,
  saveTotalLimit: 2,
  environment: { version: '0', adapter: 'none' },
};
const bytesOf = (seed: number, length: number): Uint8Array =>
  new Uint8Array(length).map((_, i) => (i * 7 + seed) & 255);

let run = '';
const registered = (): Promise<void> =>
  new CheckpointStore().registerRun({
    run,
    label: 'label',
    createdAt: 1,
    dataName: 'some.txt',
    driver: '{}',
  });
beforeEach(async () => {
  run = crypto.randomUUID();
  await registered();
});

const streamed = (...files: Uint8Array[]) => {
  const pieces = files.flatMap((file) =>
    Array.from({ length: Math.ceil(file.byteLength / CHUNK_BYTES) }, (_, i) =>
      file.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES),
    ),
  );
  return {
    files: files.map((file, i) => ({ name: `f${i}`, bytes: file.byteLength })),
    next: async () => pieces.shift(),
  };
};
async function save(store: CheckpointStore, seed: number, length = 1000): Promise<void> {
  const { files, next } = streamed(bytesOf(seed, length), bytesOf(seed + 1, 10));
  await store.save({ run, label: 'label', files, next, meta: META });
}
async function contents(store: CheckpointStore, generation?: number): Promise<number[]> {
  const { files } = await store.load(run, generation);
  return [...new Uint8Array((await files.get('f0')?.arrayBuffer()) ?? new ArrayBuffer(0))];
}
const chunkCount = async (): Promise<number> =>
  (
    await (
      await openDB('tabtune')
    ).getAllKeys('chunks', IDBKeyRange.bound([run, 0, 0], [run, 1e9, 0]))
  ).length;
async function damage(generation: number, index: number): Promise<void> {
  const database = await openDB('tabtune');
  const chunk = new Uint8Array(
    ((await database.get('chunks', [run, generation, index])) as ArrayBuffer).slice(0),
  );
  chunk[0] = (chunk[0] ?? 0) ^ 1;
  await database.put('chunks', chunk.buffer, [run, generation, index]);
  database.close();
}

describe('storage', () => {
  it('what_is_saved_is_loaded', async () => {
    const store = new CheckpointStore();
    await save(store, 1, CHUNK_BYTES + 5);
    expect((await store.load(run)).files.get('f0')?.size).toBe(CHUNK_BYTES + 5);
    expect(await chunkCount()).toBe(3);
    expect(await store.list(run)).toMatchObject([
      { run, generation: 1, step: 3, totalSteps: 9, loss: 2.5, bytes: CHUNK_BYTES + 15 },
    ]);
  });
  it('two_generations_are_kept_with_their_chunks', async () => {
    const store = new CheckpointStore();
    for (const seed of [1, 2, 3, 4]) await save(store, seed);
    expect((await store.list(run)).map((info) => info.generation).sort()).toEqual([3, 4]);
    expect(await chunkCount()).toBe(4);
    expect(await contents(store)).toEqual([...bytesOf(4, 1000)]);
    expect(await contents(store, 3)).toEqual([...bytesOf(3, 1000)]);
  });
  it('a_flipped_bit_falls_back_with_a_warning', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    await save(store, 2);
    await damage(2, 0);
    const loaded = await store.load(run);
    expect(loaded.manifest.generation).toBe(1);
    expect(loaded.warnings[0]).toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      detail: { code: 'checkpoint.chunk.hash' },
    });
    await damage(1, 1);
    await expect(store.load(run)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  });
  it('a_missing_chunk_is_detected', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    const database = await openDB('tabtune');
    await database.delete('chunks', [run, 1, 1]);
    database.close();
    await expect(store.load(run)).rejects.toMatchObject({
      detail: { code: 'checkpoint.chunk.missing' },
    });
  });
  it('an_interrupted_save_leaves_the_old_head_and_no_chunks', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    const before = await chunkCount();
    const { files } = streamed(bytesOf(2, 1000));
    await expect(
      store.save({ run, label: 'label', files, next: async () => undefined, meta: META }),
    ).rejects.toMatchObject({ code: 'STORAGE_FAILED', detail: { code: 'storage.stream' } });
    expect(await chunkCount()).toBe(before);
    expect(await contents(store)).toEqual([...bytesOf(1, 1000)]);
  });
  it('sweep_removes_orphans_and_nothing_else', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    const database = await openDB('tabtune');
    await database.put('chunks', new ArrayBuffer(4), [run, 2, 0]);
    database.close();
    const before = await chunkCount();
    await store.sweep();
    expect(await chunkCount()).toBe(before - 1);
    expect(await contents(store)).toEqual([...bytesOf(1, 1000)]);
  });
  it('remove_deletes_one_generation_or_all', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    await save(store, 2);
    await store.remove(run, 2);
    expect((await store.load(run)).manifest.generation).toBe(1);
    await store.remove(run);
    expect(await chunkCount()).toBe(0);
    await expect(store.load(run)).rejects.toMatchObject({ detail: { code: 'checkpoint.none' } });
  });
  it('a_newer_format_is_checkpoint_version', async () => {
    const store = new CheckpointStore();
    await save(store, 1);
    const database = await openDB('tabtune');
    await database.put(
      'manifests',
      { ...((await database.get('manifests', [run, 1])) as object), format: 99 },
      [run, 1],
    );
    database.close();
    await expect(store.load(run)).rejects.toMatchObject({ code: 'CHECKPOINT_VERSION' });
  });
  it('an_empty_file_of_a_checkpoint_survives', async () => {
    const store = new CheckpointStore();
    const { files, next } = streamed(new Uint8Array(), bytesOf(1, 4));
    await store.save({ run, label: 'label', files, next, meta: META });
    expect((await store.load(run)).files.get('f0')?.size).toBe(0);
  });
});
