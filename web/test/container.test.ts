import { beforeEach, describe, expect, it } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { freshOrigin } from './origin.js';
import { bytesOf, keysOf, modelOf, requestOf, stepEntry, tamper } from './saves.js';

const origin = freshOrigin();
const data = new TextEncoder().encode('words to learn from');
let run = '';
let store = new CheckpointStore();
let file = new Uint8Array();
const history = [
  stepEntry(1),
  stepEntry(2, NaN),
  { type: 'eval', step: 2, loss: NaN, perplexity: Infinity, tokens: 3, accuracy: 0.5 } as const,
];
beforeEach(async () => {
  run = crypto.randomUUID();
  store = new CheckpointStore();
  await store.registerRun(
    { run, label: 'mine', createdAt: 1, dataName: 'some.txt', driver: '{"logEvery":8}' },
    { bytes: data.byteLength, next: async () => data },
  );
  const request = requestOf(run, 2, { history, label: 'a/b: ..' });
  await store.save({ ...request, meta: { ...request.meta, loss: NaN, validationLoss: 3 } });
  file = new Uint8Array(await (await store.exportFile(run)).blob.arrayBuffer());
});
const everything = async (): Promise<unknown> => {
  const found: unknown[] = [];
  await tamper(async (database) => {
    for (const name of database.objectStoreNames) found.push(name, await database.getAllKeys(name));
  });
  return found;
};
/** Returns the file with another head. */
function withHead(
  change: (head: {
    format: number;
    manifest: Record<string, unknown>;
    run: Record<string, unknown>;
  }) => unknown,
): Uint8Array<ArrayBuffer> {
  const length = Number(new DataView(file.buffer).getBigUint64(8, true));
  const head: unknown = JSON.parse(new TextDecoder().decode(file.slice(16, 16 + length)));
  const text = new TextEncoder().encode(JSON.stringify(change(head as never) ?? head));
  const made = new Uint8Array(16 + text.byteLength + file.byteLength - 16 - length);
  made.set(file.slice(0, 16));
  new DataView(made.buffer).setBigUint64(8, BigInt(text.byteLength), true);
  made.set(text, 16);
  made.set(file.slice(16 + length), 16 + text.byteLength);
  return made;
}
const flipped = (at: number): Uint8Array<ArrayBuffer> =>
  file.map((byte, index) => (index === (at < 0 ? file.byteLength + at : at) ? byte ^ 1 : byte));
/** Returns the file with another byte where a text of its head begins. */
function withByte(text: string, byte: number): Uint8Array<ArrayBuffer> {
  const at = new TextDecoder('latin1').decode(file).indexOf(text);
  return file.map((found, index) => (index === at ? byte : found));
}
const named = (name: string): Uint8Array<ArrayBuffer> =>
  withHead(
    ({ manifest }) => void Object.assign((manifest['files'] as object[])[0] ?? {}, { name }),
  );

describe('a .tabtune', () => {
  it('restores_everything_under_the_same_id_if_that_is_free', async () => {
    await store.remove(run);
    const info = await store.importFile(new Blob([file]));
    expect(info).toMatchObject({
      run,
      generation: 1,
      step: 2,
      totalSteps: 9,
      label: 'a/b: ..',
      dataName: 'some.txt',
      hasData: true,
      validationLoss: 3,
      home: 'indexeddb',
    });
    expect(info.loss).toBeNaN();
    expect(await modelOf(store, run)).toEqual([...bytesOf(2, 1000)]);
    expect(await store.history(run, 9)).toEqual(history);
    expect(await store.runRecord(run)).toMatchObject({ driver: '{"logEvery":8}' });
    expect(await (await store.runData(run))?.text()).toBe('words to learn from');
    expect(origin.now.held.size).toBe(0);
  });
  it('is_imported_under_a_new_id_if_the_run_exists_or_is_locked', async () => {
    const again = await store.importFile(new Blob([file]));
    expect(again.run).not.toBe(run);
    expect(await modelOf(store, again.run)).toEqual([...bytesOf(2, 1000)]);
    await store.remove(run);
    origin.now.held.add(`tabtune:${run}`);
    expect((await store.importFile(new Blob([file]))).run).not.toBe(run);
  });
  it('with_an_invalid_id_is_imported_under_a_new_one', async () => {
    for (const id of ['', '..', 'a/b', 'x'.repeat(65), '__proto__/']) {
      const info = await store.importFile(
        new Blob([
          withHead(
            ({ manifest, run: record }) =>
              void Object.assign(manifest, { run: id }, Object.assign(record, { run: id }) && {}),
          ),
        ]),
      );
      expect(info.run).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
  it('has_a_file_name', async () => {
    expect((await store.exportFile(run)).name).toBe('a-b- ..-step-2.tabtune');
  });
  const refusals: [string, string, () => Uint8Array<ArrayBuffer>][] = [
    ['other first bytes', 'checkpoint.container.magic', () => flipped(0)],
    ['nothing', 'checkpoint.container.magic', () => new Uint8Array()],
    ['a head past the end', 'checkpoint.container.head', () => flipped(14)],
    ['a head that is no JSON', 'checkpoint.container.head', () => flipped(16)],
    ['a head of another shape', 'checkpoint.container.head', () => withHead(() => ({ format: 1 }))],
    ['a head that is not UTF-8', 'checkpoint.container.head', () => withByte('a/b: ..', 0xff)],
    [
      'bytes that do not add up',
      'checkpoint.container.head',
      () => withHead(({ manifest }) => void Object.assign(manifest, { bytes: 7 })),
    ],
    [
      'a negative count',
      'checkpoint.container.head',
      () => withHead(({ manifest }) => void Object.assign(manifest, { step: -1 })),
    ],
    ['one byte less', 'checkpoint.container.length', () => file.slice(0, -1)],
    ['one byte more', 'checkpoint.container.length', () => Uint8Array.from([...file, 0])],
    ['a flipped bit of a file', 'checkpoint.container.chunk', () => flipped(-60)],
    ['a flipped bit of the data', 'checkpoint.container.chunk', () => flipped(-1)],
    [
      'a sum that is none',
      'checkpoint.container.chunk',
      () =>
        withHead(
          ({ manifest }) =>
            void Object.assign(
              manifest,
              JSON.parse(JSON.stringify(manifest).replace(/"sha256":"../, '"sha256":"zz')),
            ),
        ),
    ],
    ...['', '.', '..', '../x', 'a/b', 'a\\b', 'a\0b', '/etc/passwd', 'C:x', 'checkpoint.json'].map(
      (name): [string, string, () => Uint8Array<ArrayBuffer>] => [
        `a file called ${JSON.stringify(name)}`,
        'checkpoint.container.name',
        () => named(name),
      ],
    ),
  ];
  for (const [what, word, made] of refusals) {
    it(`with ${what} is ${word} and leaves nothing`, async () => {
      const before = await everything();
      await expect(store.importFile(new Blob([made()]))).rejects.toMatchObject({
        code: 'CHECKPOINT_CORRUPT',
        detail: { code: word },
      });
      expect(await everything()).toEqual(before);
      expect(origin.now.held.size).toBe(0);
    });
  }
  it('of_a_newer_format_is_checkpoint_version', async () => {
    for (const made of [
      withHead((head) => void (head.format = 2)),
      withHead(({ manifest }) => void Object.assign(manifest, { format: 2 })),
    ]) {
      await expect(store.importFile(new Blob([made]))).rejects.toMatchObject({
        code: 'CHECKPOINT_VERSION',
        detail: { code: 'checkpoint.version' },
      });
    }
  });
  it('can_be_aborted_and_leaves_nothing', async () => {
    const before = await everything();
    const controller = new AbortController();
    const importing = store.importFile(new Blob([file]), controller.signal, () =>
      controller.abort(),
    );
    await expect(importing).rejects.toMatchObject({ name: 'AbortError' });
    expect(await everything()).toEqual(before);
  });
  it('without_enough_storage_is_refused', async () => {
    Object.assign(origin.now, { quota: 1000, usage: 0 });
    await expect(store.importFile(new Blob([file]))).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      detail: { code: 'storage.quota', need: 1029, have: 1000 },
    });
  });
  it('says_how_far_it_is', async () => {
    const phases: unknown[] = [];
    await store.importFile(new Blob([file]), undefined, ({ phase, loaded, total }) =>
      phases.push([phase, loaded, total]),
    );
    expect(phases).toEqual([
      ['import', 1000, 1010],
      ['import', 1010, 1010],
    ]);
  });
});

describe('a fork', () => {
  it('is_an_independent_run_with_data_and_history', async () => {
    await store.save(requestOf(run, 4, { history: [stepEntry(3), stepEntry(4)] }));
    const info = await store.fork(run, 1, 'branch');
    expect(info).toMatchObject({
      generation: 1,
      step: 2,
      label: 'branch',
      hasData: true,
      dataName: 'some.txt',
      kept: false,
    });
    await store.remove(run);
    expect(await modelOf(store, info.run)).toEqual([...bytesOf(2, 1000)]);
    expect(await store.history(info.run, 9)).toEqual(history);
    expect(await (await store.runData(info.run))?.text()).toBe('words to learn from');
    expect(await keysOf(info.run)).toEqual({
      chunks: ['0/0', '1/0', '1/1'],
      manifests: ['1'],
      heads: [''],
      runs: [''],
      history: ['1'],
    });
  });
});
