/** Browsers that never answer a question about their storage, or refuse it: a run trains, warns once of each, and saves what can be saved. */
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Trainer } from '../src/index.js';
import { support } from '../src/index.js';
import { lockRun } from '../src/protocol/run-lock.js';
import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { registered, requestOf } from './saves.js';
import { collect, origin, trainerOf } from './runs.js';

type Answer = (real: () => unknown) => unknown;
const CALLS = ['lock', 'estimate', 'getDirectory', 'open', 'transaction'] as const;
type CallName = (typeof CALLS)[number];

/** Opens at the end of a test, so that what is still waiting ends. */
let open: () => void = () => undefined;
let gate = Promise.resolve();
const silent: Answer = async (real) => {
  await gate;
  return real();
};
const refused: Answer = async () => {
  throw new DOMException('denied for this document', 'SecurityError');
};

/** Replaces these calls of the browser. */
function replace(calls: readonly CallName[], answer: Answer): void {
  const { now } = origin;
  const real = now.request.bind(now);
  const of = (name: CallName, call: () => unknown): unknown =>
    calls.includes(name) ? answer(call) : call();
  vi.stubGlobal('navigator', {
    locks: { request: (...given: Parameters<typeof real>) => of('lock', () => real(...given)) },
    storage: {
      estimate: async () => of('estimate', () => ({ quota: 1e9, usage: 0 })),
      getDirectory: async () => of('getDirectory', () => now.files),
      persisted: async () => of('estimate', () => false),
    },
  });
  const plain = new IDBFactory();
  const neverAnswered = (): IDBRequest =>
    Object.assign(Object.create(IDBRequest.prototype) as IDBRequest, { addEventListener: () => 0 });
  if (calls.includes('open')) {
    vi.stubGlobal('indexedDB', {
      open: () => {
        if (answer === refused) throw new DOMException('denied for this document', 'SecurityError');
        return Object.assign(Object.create(IDBOpenDBRequest.prototype) as IDBRequest, {
          addEventListener: () => 0,
        });
      },
    });
  } else vi.stubGlobal('indexedDB', plain);
  if (calls.includes('transaction'))
    for (const method of [
      'get',
      'getKey',
      'getAll',
      'getAllKeys',
      'put',
      'delete',
      'count',
    ] as const) {
      vi.spyOn(IDBObjectStore.prototype, method).mockImplementation(() => {
        if (answer === refused) throw new DOMException('denied for this document', 'UnknownError');
        return neverAnswered();
      });
    }
}

beforeEach(() => {
  gate = new Promise((resolve) => (open = resolve));
  const real = setTimeout;
  // Time limits are a hundred times shorter.
  vi.stubGlobal('setTimeout', (work: () => void, millis = 0) =>
    real(work, millis < 1000 ? millis : millis / 100),
  );
});
afterEach(async () => {
  vi.restoreAllMocks();
  open();
  await new Promise((done) => setTimeout(done, 20));
});

async function trained(): Promise<{ trainer: Trainer; warnings: string[]; steps: number[] }> {
  const trainer = await trainerOf({ steps: 3, saveEvery: 1 });
  const events = await collect(trainer.run());
  return {
    trainer,
    warnings: events.flatMap((event) => (event.type === 'warning' ? [event.code] : [])),
    steps: events.flatMap((event) => (event.type === 'step' ? [event.step] : [])),
  };
}

const SILENT: Record<CallName | 'all', string[]> = {
  lock: ['storage.silent'],
  estimate: ['storage.silent'],
  getDirectory: ['storage.silent'],
  open: ['storage.blocked'],
  transaction: ['storage.blocked'],
  all: ['storage.blocked', 'storage.silent', 'storage.silent', 'storage.silent'],
};
const REFUSED: Record<CallName | 'all', string[]> = {
  lock: ['run.unlocked'],
  estimate: [],
  getDirectory: ['run.private'],
  open: ['run.storage', 'storage.failed'],
  transaction: ['run.storage', 'storage.failed'],
  all: ['run.private', 'run.storage', 'run.unlocked', 'storage.failed'],
};
const namesOf = (table: Record<CallName | 'all', string[]>): [CallName | 'all', string[]][] =>
  [...CALLS, 'all' as const].map((name) => [name, table[name]]);

describe.each([
  ['is never answered', silent, SILENT],
  ['is refused', refused, REFUSED],
] as const)('a run where a question', (how, answer, table) => {
  it.each(namesOf(table))(
    `to_%s_${how.replaceAll(' ', '_')}_trains_and_warns`,
    async (name, expected) => {
      replace(name === 'all' ? CALLS : [name], answer);
      const { trainer, warnings, steps } = await trained();
      expect(steps).toEqual([1, 2, 3]);
      // The database may be reported at the start and again by the first save that fails.
      expect(
        [...warnings]
          .sort()
          .filter((code, at, all) => code !== 'storage.blocked' || code !== all[at - 1]),
      ).toEqual(expected);
      if (['lock', 'estimate', 'getDirectory'].includes(name)) {
        expect((await trainer.checkpoints.list())[0]).toMatchObject({ step: 3 });
        expect((await trainer.save()).step).toBe(3);
      } else await expect(trainer.save()).rejects.toMatchObject({ code: /^STORAGE_/ });
      await trainer.dispose();
    },
  );
});

describe('a browser that does not answer', () => {
  it.each([
    ['does_not_answer', silent],
    ['refuses', refused],
  ] as const)('or_%s_is_supported_without_storage', async (_, answer) => {
    replace(CALLS, answer);
    vi.stubGlobal('Worker', EventTarget);
    const { storage, help } = await support();
    expect(storage).toMatchObject({
      quota: undefined,
      usage: undefined,
      persisted: undefined,
      indexedDb: false,
    });
    // The first thing that this surrounding lacks.
    expect(help).toContain('no WebGPU');
  });
  it('is_not_asked_again_until_it_does', async () => {
    let asked = 0;
    replace(['estimate'], (real) => {
      asked += 1;
      return silent(real);
    });
    const store = new CheckpointStore();
    await registered(store, 'a');
    for (const seed of [1, 2, 3]) await store.save(requestOf('a', seed));
    expect(asked).toBe(1);
    open();
    await new Promise((done) => setTimeout(done, 5));
    await store.save(requestOf('a', 4));
    expect(asked).toBe(2);
  });
  it('within_a_transaction_delays_only_that_one_and_is_used_again_later', async () => {
    replace([], silent);
    const store = new CheckpointStore();
    await registered(store, 'a');
    const listeners = new Map<string, () => void>();
    const addEventListener = (type: string, listener: () => void): unknown =>
      listeners.set(type, listener);
    const late = { addEventListener, removeEventListener: () => undefined, result: undefined };
    const get = vi.spyOn(IDBObjectStore.prototype, 'getKey');
    get.mockImplementationOnce(
      () =>
        Object.create(IDBRequest.prototype, Object.getOwnPropertyDescriptors(late)) as IDBRequest<
          IDBValidKey | undefined
        >,
    );
    const blocked = { code: 'STORAGE_BLOCKED', detail: { code: 'storage.blocked' } };
    await expect(store.hasRun('a')).rejects.toMatchObject(blocked);
    await expect(store.save(requestOf('a', 1))).rejects.toMatchObject(blocked);
    listeners.get('success')?.();
    await new Promise((done) => setTimeout(done, 5));
    expect((await store.save(requestOf('a', 1))).generation).toBe(1);
  });
  it('grants_a_lock_late_which_is_released_with_the_run', async () => {
    replace(['lock'], silent);
    const lock = await lockRun('late');
    expect(lock.warning?.code).toBe('storage.silent');
    open();
    await expect.poll(() => origin.now.held.has('tabtune:late')).toBe(true);
    lock.release();
    await expect.poll(() => origin.now.held.has('tabtune:late')).toBe(false);
  });
  it('about_its_files_does_not_make_a_run_seem_removed', async () => {
    replace(['getDirectory'], silent);
    const store = new CheckpointStore();
    await registered(store, 'a');
    await store.save(requestOf('a', 1));
    await expect(store.remove('a')).rejects.toMatchObject({ detail: { code: 'storage.blocked' } });
  });
});
