import { beforeEach, describe, expect, it, vi } from 'vitest';

import { lockRun, sweptIfFree } from '../src/protocol/run-lock.js';
import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { bytesOf, flip, keysOf, modelOf, NOTHING, registered, requestOf, tamper } from './saves.js';

const origin = freshOrigin();
let run = '';
let store = new CheckpointStore();
beforeEach(async () => {
  run = crypto.randomUUID();
  store = new CheckpointStore();
  await registered(store, run);
  await store.save(requestOf(run, 1));
  await store.save(requestOf(run, 2));
});
const put = (name: string, value: unknown, key: IDBValidKey): Promise<void> =>
  tamper((database) => database.put(name, value, key));
const manifestOf = async (generation: number): Promise<object> => {
  let found = {};
  await tamper(
    async (database) => (found = (await database.get('manifests', [run, generation])) as object),
  );
  return found;
};
const words = async (): Promise<unknown[]> =>
  (await store.load(run)).warnings.map((warning) => warning.detail.code);

describe('loading', () => {
  const damages: [string, () => Promise<void>][] = [
    ['checkpoint.chunk.hash', () => flip(run, 2, 0)],
    ['checkpoint.chunk.hash', () => flip(run, 2, 1)],
    ['checkpoint.chunk.length', () => put('chunks', new ArrayBuffer(3), [run, 2, 0])],
    [
      'checkpoint.chunk.missing',
      () => tamper((database) => database.delete('chunks', [run, 2, 1])),
    ],
    ['checkpoint.chunk.missing', () => put('chunks', 'text', [run, 2, 1])],
    ['checkpoint.manifest', () => put('manifests', { format: 1, run }, [run, 2])],
    ['checkpoint.manifest', async () => put('manifests', await manifestOf(1), [run, 2])],
    [
      'checkpoint.file.length',
      async () =>
        put(
          'manifests',
          { ...(await manifestOf(2)), files: [{ name: 'a', bytes: 5, chunks: [] }] },
          [run, 2],
        ),
    ],
  ];
  for (const [word, damage] of damages) {
    it(`falls_back_with_the_warning_${word}`, async () => {
      await damage();
      const { manifest, files, warnings, home } = await store.load(run);
      expect([manifest.generation, home]).toEqual([1, 'indexeddb']);
      expect([
        ...new Uint8Array(
          (await files.get('model.safetensors')?.arrayBuffer()) ?? new ArrayBuffer(0),
        ),
      ]).toEqual([...bytesOf(1, 1000)]);
      expect(warnings).toMatchObject([{ code: 'CHECKPOINT_CORRUPT', detail: { code: word } }]);
      await expect(store.load(run, 2)).rejects.toMatchObject({
        code: 'CHECKPOINT_CORRUPT',
        detail: { code: word },
      });
    });
  }
  it('names_the_chunk_at_fault', async () => {
    await flip(run, 2, 1);
    expect((await store.load(run)).warnings[0]?.detail.chunk).toBe(1);
  });
  it('a_large_value_whose_file_is_gone_is_a_missing_chunk', async () => {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called on its object below
    const get = IDBObjectStore.prototype.get;
    const spy = vi.spyOn(IDBObjectStore.prototype, 'get').mockImplementation(function (
      this: IDBObjectStore,
      key,
    ) {
      if (this.name === 'chunks' && Array.isArray(key) && key[1] === 2)
        throw new DOMException('Failed to read large IndexedDB value', 'NotReadableError');
      return get.call(this, key);
    });
    expect(await words()).toEqual(['checkpoint.chunk.missing']);
    spy.mockRestore();
  });
  it('a_head_that_points_at_nothing_is_reported', async () => {
    for (const head of [7, 'seven']) {
      await put('heads', head, run);
      expect(await words()).toEqual(['checkpoint.head']);
      expect(await modelOf(store, run)).toEqual([...bytesOf(2, 1000)]);
    }
    const generation = (await store.save(requestOf(run, 3))).generation;
    expect(generation).toBeGreaterThan(2);
    expect(await words()).toEqual([]);
  });
  it('a_damaged_run_record_is_listed_as_such', async () => {
    const other = { run: 'other', label: '', createdAt: 1, dataName: '', driver: '' };
    await put('runs', other, run);
    await expect(store.runRecord(run)).rejects.toMatchObject({
      detail: { code: 'checkpoint.run' },
    });
    await put('runs', { run }, run);
    expect((await store.list(run)).map(({ fault, generation }) => [fault, generation])).toEqual([
      ['checkpoint.run', 2],
      ['checkpoint.run', 1],
    ]);
    await expect(store.runRecord(run)).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      detail: { code: 'checkpoint.run' },
    });
    expect(await modelOf(store, run)).toEqual([...bytesOf(2, 1000)]);
  });
  it('a_damaged_manifest_is_listed_as_such', async () => {
    await put('manifests', 7, [run, 2]);
    expect((await store.list(run)).map(({ fault, generation }) => [fault, generation])).toEqual([
      ['checkpoint.manifest', 2],
      [undefined, 1],
    ]);
  });
  it('without_a_generation_is_checkpoint_none', async () => {
    await store.remove(run);
    await expect(store.load(run)).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPT',
      detail: { code: 'checkpoint.none' },
    });
    await expect(store.runRecord(run)).rejects.toMatchObject({
      detail: { code: 'checkpoint.none' },
    });
  });
  it('can_be_aborted', async () => {
    await expect(store.load(run, undefined, AbortSignal.abort())).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});

describe('sweep', () => {
  const orphan = (generation: number): Promise<void> =>
    put('chunks', new ArrayBuffer(4), [run, generation, 0]);
  it('leaves_a_run_whose_lock_is_held', async () => {
    await put('chunks', new ArrayBuffer(4), [run, 0, 0]);
    await orphan(3);
    origin.now.held.add(`tabtune:${run}`);
    await store.sweep();
    expect((await keysOf(run)).chunks).toContain('3/0');
    origin.now.held.clear();
    await store.sweep();
    expect((await keysOf(run)).chunks).toEqual(['0/0', '1/0', '1/1', '2/0', '2/1']);
  });
  it('removes_runs_without_a_generation', async () => {
    const other = crypto.randomUUID();
    await registered(store, other);
    await put('chunks', new ArrayBuffer(4), [other, 0, 0]);
    const staged = crypto.randomUUID();
    await put('chunks', new ArrayBuffer(4), [staged, 1, 0]);
    await store.sweep();
    expect([await keysOf(other), await keysOf(staged)]).toEqual([NOTHING, NOTHING]);
    expect(await modelOf(store, run)).toEqual([...bytesOf(2, 1000)]);
  });
  it('delays_a_start_which_another_tab_does_not', async () => {
    const order: string[] = [];
    let removed = (): void => undefined;
    const sweep = sweptIfFree(run, () => new Promise((done) => (removed = done)));
    const start = lockRun(run).then((lock) => (order.push('start'), lock));
    await new Promise((done) => setTimeout(done, 5));
    order.push('swept');
    removed();
    expect(await sweep).toBe(true);
    expect((await start).warning).toBeUndefined();
    expect(order).toEqual(['swept', 'start']);
    await expect(lockRun(run)).rejects.toMatchObject({
      code: 'BUSY',
      detail: { code: 'run.locked' },
    });
  });
  it('without_web_locks_removes_nothing', async () => {
    await orphan(3);
    vi.stubGlobal('navigator', {});
    await store.sweep();
    expect((await keysOf(run)).chunks).toContain('3/0');
  });
});
