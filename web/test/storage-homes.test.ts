import { IDBFactory } from 'fake-indexeddb';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin, StoredFile, StoredFolder } from './origin.js';
import { bytesOf, flip, keysOf, modelOf, requestOf, stepEntry } from './saves.js';

const origin = freshOrigin();
const data = new TextEncoder().encode('words to learn from');
let run = '';
let store = new CheckpointStore();
beforeEach(async () => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  run = crypto.randomUUID();
  store = new CheckpointStore();
  await store.registerRun(
    { run, label: 'mine', createdAt: 1, dataName: 'some.txt', driver: '{"logEvery":8}' },
    { bytes: data.byteLength, next: async () => data },
  );
  await store.save(requestOf(run, 3, { history: [stepEntry(1), stepEntry(2), stepEntry(3, NaN)] }));
});
const folder = (): string[] => {
  const home = origin.now.files.at('tabtune', run);
  return home instanceof StoredFolder ? [...home.entries.keys()].sort() : [];
};
/** Makes the browser forget the database, but not the files. */
const forget = (): CheckpointStore => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  return new CheckpointStore();
};

describe('the second home', () => {
  it('is_a_checkpoint_folder_whose_checkpoint_json_comes_last', async () => {
    expect(await store.mirror(run, false)).toBe(true);
    expect(folder()).toEqual(['1', 'data']);
    const inner = origin.now.files.at('tabtune', run, '1');
    expect(inner instanceof StoredFolder && [...inner.entries.keys()].sort()).toEqual([
      'checkpoint.json',
      'model.safetensors',
      'tabtune.json',
    ]);
    expect(origin.now.flushed.at(-1)).toBe('checkpoint.json');
    const model = origin.now.files.at('tabtune', run, '1', 'model.safetensors');
    expect(model instanceof StoredFile && [...model.content]).toEqual([...bytesOf(3, 1000)]);
  });
  it('has_only_the_newest_and_is_written_every_ten_minutes', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(5000);
    expect(await store.mirror(run, false)).toBe(true);
    await store.save(requestOf(run, 4));
    now.mockReturnValue(5000 + 599_000);
    expect(await store.mirror(run, false)).toBe(false);
    expect(folder()).toEqual(['1', 'data']);
    expect(await store.mirror(run, true)).toBe(true);
    expect(folder()).toEqual(['2', 'data']);
    await store.save(requestOf(run, 5));
    now.mockReturnValue(5000 + 599_000 + 600_000);
    expect(await store.mirror(run, false)).toBe(true);
    expect(folder()).toEqual(['3', 'data']);
    now.mockRestore();
  });
  it('is_written_only_where_there_is_room_for_two', async () => {
    Object.assign(origin.now, { quota: 2 * 1010 - 1, usage: 0 });
    expect(await store.mirror(run, true)).toBe(false);
    origin.now.quota = 2 * 1010;
    expect(await store.mirror(run, true)).toBe(true);
  });
  it('is_not_left_incomplete_by_a_full_disk', async () => {
    await store.mirror(run, true);
    await store.save(requestOf(run, 4));
    origin.now.onWrite = (name) => {
      if (name === 'checkpoint.json') throw new DOMException('full', 'QuotaExceededError');
    };
    expect(await store.mirror(run, true)).toBe(false);
    expect(folder()).toEqual(['1', 'data']);
  });
  it('restores_a_run_when_the_database_is_gone', async () => {
    await store.mirror(run, true);
    const fresh = forget();
    expect(await fresh.list()).toMatchObject([
      {
        run,
        generation: 1,
        step: 3,
        label: 'label',
        home: 'opfs',
        hasData: true,
        dataName: 'some.txt',
      },
    ]);
    await fresh.sweep();
    const loaded = await fresh.load(run);
    expect(loaded).toMatchObject({
      home: 'opfs',
      manifest: { generation: 1, step: 3 },
      warnings: [{ code: 'CHECKPOINT_CORRUPT', detail: { code: 'checkpoint.none' } }],
    });
    expect([
      ...new Uint8Array(
        (await loaded.files.get('model.safetensors')?.arrayBuffer()) ?? new ArrayBuffer(0),
      ),
    ]).toEqual([...bytesOf(3, 1000)]);
    expect(await (await fresh.runData(run))?.text()).toBe('words to learn from');
    expect(await fresh.runRecord(run)).toMatchObject({ label: 'mine', driver: '{"logEvery":8}' });
    expect(await fresh.history(run, 3)).toEqual([stepEntry(1), stepEntry(2), stepEntry(3, NaN)]);
    // The run continues in the database, with the next number.
    expect(await keysOf(run)).toEqual({
      chunks: ['0/0'],
      manifests: [],
      heads: [],
      runs: [''],
      history: ['1'],
    });
    await fresh.sweep();
    expect((await fresh.save(requestOf(run, 4, { history: [stepEntry(4)] }))).generation).toBe(2);
    expect((await fresh.load(run)).home).toBe('indexeddb');
    expect(await fresh.history(run, 4)).toHaveLength(4);
  });
  it('is_used_after_all_generations_of_the_database_with_a_warning_for_each', async () => {
    await store.mirror(run, true);
    await store.save(requestOf(run, 4));
    await flip(run, 1, 0);
    await flip(run, 2, 0);
    const { home, manifest, warnings } = await store.load(run);
    expect([home, manifest.generation, warnings.map(({ detail }) => detail.code)]).toEqual([
      'opfs',
      1,
      ['checkpoint.chunk.hash', 'checkpoint.chunk.hash'],
    ]);
  });
  it('is_used_when_the_database_cannot_be_opened', async () => {
    await store.mirror(run, true);
    vi.stubGlobal('indexedDB', {
      open: () => {
        throw new DOMException('Internal error opening backing store', 'UnknownError');
      },
    });
    const fresh = new CheckpointStore();
    expect(await fresh.list()).toMatchObject([{ run, home: 'opfs' }]);
    expect(await fresh.load(run)).toMatchObject({
      home: 'opfs',
      warnings: [{ code: 'STORAGE_FAILED', detail: { code: 'storage.failed' } }],
    });
    expect((await fresh.runRecord(run)).label).toBe('mine');
    expect(await (await fresh.runData(run))?.text()).toBe('words to learn from');
    expect(await fresh.history(run, 2)).toEqual([stepEntry(1), stepEntry(2)]);
    expect(await modelOf(fresh, run)).toEqual([...bytesOf(3, 1000)]);
  });
  it('with_a_flipped_bit_is_refused', async () => {
    await store.mirror(run, true);
    const model = origin.now.files.at('tabtune', run, '1', 'model.safetensors');
    if (model instanceof StoredFile) model.content[7] = (model.content[7] ?? 0) ^ 1;
    await expect(forget().load(run)).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      detail: { code: 'checkpoint.chunk.hash' },
    });
  });
  it('is_removed_with_the_run_and_with_its_generation', async () => {
    await store.mirror(run, true);
    await store.save(requestOf(run, 4));
    await store.remove(run, 1);
    expect(folder()).toEqual(['data']);
    await store.mirror(run, true);
    await store.remove(run);
    expect(folder()).toEqual([]);
    expect(await store.list()).toEqual([]);
  });
  it('that_is_incomplete_is_swept_and_never_listed', async () => {
    await store.mirror(run, true);
    const inner = origin.now.files.at('tabtune', run, '1');
    if (inner instanceof StoredFolder) inner.entries.delete('checkpoint.json');
    const fresh = forget();
    expect(await fresh.list()).toEqual([]);
    await fresh.sweep();
    expect(folder()).toEqual([]);
  });
  it('gives_number_and_history_to_the_next_generation_after_the_database_was_deleted', async () => {
    await store.mirror(run, true);
    const fresh = forget();
    await fresh.registerRun({ run, label: 'mine', createdAt: 1, dataName: '', driver: '{}' });
    expect((await fresh.save(requestOf(run, 4, { history: [stepEntry(4)] }))).generation).toBe(2);
    expect(await fresh.history(run, 4)).toEqual([
      stepEntry(1),
      stepEntry(2),
      stepEntry(3, NaN),
      stepEntry(4),
    ]);
  });
  it('exports_and_forks_as_the_database_does', async () => {
    await store.mirror(run, true);
    const fresh = forget();
    const { blob } = await fresh.exportFile(run);
    const fork = await fresh.fork(run, undefined, 'copy');
    expect(fork).toMatchObject({ label: 'copy', home: 'indexeddb', hasData: true, step: 3 });
    expect(await modelOf(fresh, fork.run)).toEqual([...bytesOf(3, 1000)]);
    const imported = await fresh.importFile(blob);
    // Its copy in the alternative storage still has the id.
    expect(imported.run).not.toBe(run);
  });
});
