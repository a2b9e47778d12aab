import { beforeEach, describe, expect, it, vi } from 'vitest';

import { TabtuneError } from '../src/protocol/errors.js';
import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { CHUNK_BYTES } from '../src/worker/storage/database.js';
import { freshOrigin } from './origin.js';
import {
  bytesOf,
  contentsOf,
  expectOldHead,
  flip,
  keysOf,
  modelOf,
  NOTHING,
  registered,
  requestOf,
  streamed,
  tamper,
} from './saves.js';

freshOrigin();
let run = '';
let store = new CheckpointStore();
beforeEach(async () => {
  run = crypto.randomUUID();
  store = new CheckpointStore();
  await registered(store, run);
});
describe('a save', () => {
  it('passes_faults_of_the_core_unchanged', async () => {
    await store.save(requestOf(run, 1));
    const lost = new TabtuneError('DEVICE_LOST', 'gone', { reason: 'destroyed' });
    const plain = { kind: 'DEVICE_LOST', code: 'device.lost', message: 'gone' };
    const storageLike = new DOMException('no such file', 'NotFoundError');
    for (const fault of [lost, plain, storageLike]) {
      const next = async (): Promise<never> => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- the core throws plain objects
        throw fault;
      };
      await expect(store.save(requestOf(run, 2, { next }))).rejects.toBe(fault);
      await expect(store.save(requestOf(run, 2, { confirm: next }))).rejects.toBe(fault);
      await expectOldHead(store, run);
    }
  });
  it('checks_the_gpu_after_the_read_back_and_before_it_becomes_the_head', async () => {
    const seen: unknown[] = [];
    const confirm = async (): Promise<void> => {
      seen.push(await keysOf(run));
    };
    await store.save(requestOf(run, 1, { confirm }));
    expect(seen).toEqual([{ ...NOTHING, chunks: ['1/0', '1/1'], runs: [''] }]);
  });
  it('hashes_each_piece_once_while_the_next_is_read_and_holds_two', async () => {
    const events: string[] = [];
    const digest = crypto.subtle.digest.bind(crypto.subtle);
    let hashedBytes = 0;
    const spy = vi.spyOn(crypto.subtle, 'digest').mockImplementation(async (name, bytes) => {
      hashedBytes += bytes.byteLength;
      events.push('hash');
      await new Promise((resolve) => setTimeout(resolve, 5));
      const result = await digest(name, bytes);
      events.push('hashed');
      return result;
    });
    const contents: [string, Uint8Array][] = [
      ['model.safetensors', bytesOf(1, 2 * CHUNK_BYTES + 5)],
      ['checkpoint.json', bytesOf(2, 9)],
    ];
    const { files, next } = streamed(contents);
    const sums: string[] = [];
    const manifest = await store.save(
      requestOf(run, 1, {
        files,
        next: async () => {
          events.push('next');
          return next();
        },
        hashed: (sum) => {
          sums.push(sum);
          events.push('told');
        },
      }),
    );
    spy.mockRestore();
    const readBack = hashedBytes - (2 * CHUNK_BYTES + 14);
    expect([CHUNK_BYTES, 5, 9]).toContain(readBack);
    expect(sums).toEqual(
      manifest.files.flatMap((file) => file.chunks.map((chunk) => chunk.sha256)),
    );
    // A piece is requested while the previous one is hashed; the one before that was reported by then.
    expect(events.slice(0, 4)).toEqual(['next', 'hash', 'next', 'hashed']);
    const toldBefore = events.flatMap((event, at) =>
      event === 'next' ? [events.slice(0, at).filter((e) => e === 'told').length] : [],
    );
    expect(toldBefore).toEqual([0, 0, 1, 3]);
  });
  it('copies_a_piece_before_it_asks_for_the_next', async () => {
    const shared = new Uint8Array(CHUNK_BYTES);
    let piece = 0;
    const next = async (): Promise<Uint8Array> => shared.fill(++piece);
    await store.save(
      requestOf(run, 1, { files: [{ name: 'model.safetensors', bytes: 2 * CHUNK_BYTES }], next }),
    );
    const model = (await store.load(run)).files.get('model.safetensors');
    const bytes = new Uint8Array((await model?.arrayBuffer()) ?? new ArrayBuffer(0));
    expect([bytes[0], bytes[CHUNK_BYTES - 1], bytes[CHUNK_BYTES]]).toEqual([1, 1, 2]);
  });
  it('refuses_a_stream_of_other_pieces', async () => {
    await store.save(requestOf(run, 1));
    for (const piece of [new Uint8Array(999), new Uint8Array(1001), new Uint8Array(0), undefined]) {
      const broken = requestOf(run, 2, { next: async () => piece });
      await expect(store.save(broken)).rejects.toMatchObject({
        code: 'STORAGE_FAILED',
        detail: { code: 'storage.stream' },
      });
      await expectOldHead(store, run);
    }
  });
  it('is_refused_when_what_it_wrote_is_not_read_back', async () => {
    await store.save(requestOf(run, 1));
    for (const damage of [
      () => flip(run, 2, 0),
      () => tamper((database) => database.put('chunks', new ArrayBuffer(3), [run, 2, 0])),
    ]) {
      const contents: [string, Uint8Array][] = [
        ['model.safetensors', bytesOf(2, 50)],
        ['checkpoint.json', new Uint8Array()],
      ];
      let asked = 0;
      const inner = streamed(contents);
      const get = vi.spyOn(Math, 'random').mockReturnValue(0);
      const hashed = async (): Promise<void> => {
        asked += 1;
        await damage();
      };
      await expect(store.save(requestOf(run, 2, { ...inner, hashed }))).rejects.toMatchObject({
        code: 'STORAGE_FAILED',
        detail: { code: 'storage.failed' },
      });
      get.mockRestore();
      expect(asked).toBe(1);
      await expectOldHead(store, run);
    }
  });
  it('ends_as_vanished_when_the_run_or_a_chunk_was_removed', async () => {
    await store.save(requestOf(run, 1));
    const chunkGone = (): Promise<void> =>
      tamper((database) => database.delete('chunks', [run, 2, 1]));
    await expect(store.save(requestOf(run, 2, { confirm: chunkGone }))).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      detail: { code: 'storage.vanished' },
    });
    await expectOldHead(store, run);
    const removed = (): Promise<void> => store.remove(run);
    await expect(store.save(requestOf(run, 2, { confirm: removed }))).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      detail: { code: 'storage.vanished' },
    });
    expect(await keysOf(run)).toEqual(NOTHING);
    let asked = 0;
    const next = async (): Promise<undefined> => void (asked += 1);
    await expect(store.save(requestOf(run, 2, { next }))).rejects.toMatchObject({
      detail: { code: 'storage.vanished' },
    });
    expect(asked).toBe(0);
    await registered(store, run);
    const unknown = (): Promise<void> => tamper((database) => database.delete('runs', run));
    await expect(store.save(requestOf(run, 2, { confirm: unknown }))).rejects.toMatchObject({
      detail: { code: 'storage.vanished' },
    });
    expect((await keysOf(run)).manifests).toEqual([]);
  });
  it('survives_the_removal_of_the_last_listed_generation', async () => {
    await store.save(requestOf(run, 1));
    for (const remover of [store, new CheckpointStore()]) {
      const { generation } = await store.save(requestOf(run, 2));
      const listed = (await store.list(run)).map((info) => info.generation);
      const confirm = async (): Promise<void> => {
        for (const each of listed) await remover.remove(run, each);
      };
      const { files, next } = streamed(contentsOf(3));
      let before = remover === store ? confirm : undefined;
      const pieces = async (): Promise<Uint8Array | undefined> => {
        // The store itself knows of its save before the first chunk is stored.
        await before?.();
        before = undefined;
        return next();
      };
      const saved = await store.save(
        requestOf(run, 3, {
          files,
          next: pieces,
          confirm: remover === store ? undefined : confirm,
        }),
      );
      expect(saved.generation).toBe(generation + 1);
      expect(await modelOf(store, run)).toEqual([...bytesOf(3, 1000)]);
      expect((await store.list(run)).map((info) => info.generation)).toEqual([saved.generation]);
    }
  });
  it('can_be_aborted_between_chunks', async () => {
    await store.save(requestOf(run, 1));
    const controller = new AbortController();
    const { next } = streamed(contentsOf(2));
    let asked = 0;
    const stopping = async (): Promise<Uint8Array | undefined> => {
      asked += 1;
      controller.abort();
      return next();
    };
    await expect(
      store.save(requestOf(run, 2, { next: stopping, signal: controller.signal })),
    ).rejects.toMatchObject({ name: 'AbortError' });
    expect(asked).toBe(1);
    await expectOldHead(store, run);
  });
  it('is_refused_while_the_run_is_being_saved', async () => {
    const confirm = (): Promise<void> => store.save(requestOf(run, 9)).then(() => undefined);
    await expect(store.save(requestOf(run, 1, { confirm }))).rejects.toMatchObject({
      code: 'BUSY',
      detail: { code: 'session.busy' },
    });
  });
  it('says_how_far_it_is', async () => {
    const fractions: number[] = [];
    await store.save(
      requestOf(run, 1, {
        onProgress: ({ phase, fraction }) => fractions.push(phase === 'save' ? fraction : -1),
      }),
    );
    expect(fractions).toHaveLength(2);
    expect(fractions[1]).toBe(1);
  });
});
