import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';

import { CheckpointStore } from '../src/worker/storage/checkpoints.js';
import { CHUNK_BYTES } from '../src/worker/storage/database.js';
import { freshOrigin, StoredFile, StoredFolder } from './origin.js';
import { bytesOf, keysOf, NOTHING, registered, streamed, tamper } from './saves.js';

const origin = freshOrigin();
let store = new CheckpointStore();
beforeEach(() => {
  store = new CheckpointStore();
});
const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const piecesOf = (bytes: Uint8Array): string[] =>
  Array.from({ length: Math.ceil(bytes.byteLength / CHUNK_BYTES) }, (_, i) =>
    sum(bytes.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES)),
  );

type Files = Map<string, Uint8Array<ArrayBuffer>>;
/** Returns a checkpoint's files with their document. */
function folderOf(
  contents: Files,
  change: (document: Record<string, unknown>) => unknown = () => undefined,
): Files {
  const files = [...contents].map(([name, bytes]) => ({
    name,
    bytes: bytes.byteLength,
    pieces: piecesOf(bytes),
  }));
  const environment = { version: '9.9.9', adapter: 'some GPU', kernels: 'gpu' };
  const document = {
    format: 'tabtune.checkpoint',
    version: 1,
    written_by: '0.1.0',
    train: { steps: 40 },
    progress: { completed_steps: 12 },
    files,
    environment,
  };
  change(document);
  return new Map([
    ...contents,
    ['checkpoint.json', new TextEncoder().encode(JSON.stringify(document))],
  ]);
}
const small: Files = new Map([
  ['model.safetensors', bytesOf(1, 900)],
  ['optimizer.safetensors', bytesOf(2, 5)],
  ['empty.txt', new Uint8Array()],
]);
const given = (files: Files): { name: string; blob: Blob }[] =>
  [...files].map(([name, bytes]) => ({ name, blob: new Blob([bytes]) }));
const runs = async (): Promise<unknown[]> => {
  let found: unknown[] = [];
  await tamper(
    async (database) =>
      (found = [
        await database.getAllKeys('runs'),
        await database.getAllKeys('chunks'),
        await database.getAllKeys('manifests'),
      ]),
  );
  return found;
};

describe('a folder', () => {
  it('is_imported', async () => {
    const files = folderOf(new Map([...small, ['big.bin', bytesOf(3, CHUNK_BYTES + 3)]]));
    const info = await store.importFile([
      ...given(files),
      { name: 'README.md', blob: new Blob(['beside it']) },
    ]);
    expect(info).toMatchObject({
      generation: 1,
      step: 12,
      totalSteps: 40,
      hasData: false,
      label: 'checkpoint-12',
    });
    const loaded = await store.load(info.run);
    expect([...loaded.files.keys()].sort()).toEqual([...files.keys()].sort());
    for (const [name, bytes] of files)
      expect(
        Buffer.from((await loaded.files.get(name)?.arrayBuffer()) ?? new ArrayBuffer(0)).equals(
          Buffer.from(bytes),
        ),
      ).toBe(true);
    expect(loaded.manifest.environment).toEqual({ version: '9.9.9', adapter: 'some GPU' });
  });
  it('with_a_flipped_bit_is_refused', async () => {
    const before = await runs();
    for (const name of ['model.safetensors', 'optimizer.safetensors']) {
      const files = folderOf(small);
      files.set(
        name,
        (files.get(name) ?? new Uint8Array()).map((byte, at) => (at === 3 ? byte ^ 4 : byte)),
      );
      await expect(store.importFile(given(files))).rejects.toMatchObject({
        code: 'CHECKPOINT_CORRUPT',
        detail: { code: 'checkpoint.chunk.hash' },
      });
    }
    expect(await runs()).toEqual(before);
  });
  const refusals: [
    string,
    string,
    string | undefined,
    (document: Record<string, unknown>) => unknown,
  ][] = [
    ['another format', 'checkpoint.corrupt', 'format', (d) => (d['format'] = 'x')],
    ['no version', 'checkpoint.corrupt', 'version', (d) => (d['version'] = 0)],
    ['a newer version', 'checkpoint.version', undefined, (d) => (d['version'] = 2)],
    [
      'a negative count',
      'checkpoint.corrupt',
      'progress.completed_steps',
      (d) => (d['progress'] = { completed_steps: -1 }),
    ],
    [
      'a count above 2^53 - 1',
      'checkpoint.corrupt',
      'progress.completed_steps',
      (d) => (d['progress'] = { completed_steps: 2 ** 53 }),
    ],
    [
      'a file without sums',
      'checkpoint.corrupt',
      'files[0].pieces',
      (d) => (d['files'] = [{ name: 'model.safetensors', bytes: 900 }]),
    ],
    [
      'a sum too few',
      'checkpoint.corrupt',
      'model.safetensors',
      (d) => (d['files'] = [{ name: 'model.safetensors', bytes: 900, pieces: [] }]),
    ],
    [
      'a file that is absent',
      'checkpoint.corrupt',
      'gone',
      (d) => (d['files'] = [{ name: 'gone', bytes: 0, pieces: [] }]),
    ],
    [
      'a file of another length',
      'checkpoint.file.length',
      undefined,
      (d) => (d['files'] = [{ name: 'model.safetensors', bytes: 901, pieces: [''] }]),
    ],
    [
      'a file name that is a path',
      'checkpoint.container.name',
      undefined,
      (d) => (d['files'] = [{ name: '../x', bytes: 0, pieces: [] }]),
    ],
    [
      'itself among its files',
      'checkpoint.container.name',
      undefined,
      (d) => (d['files'] = [{ name: 'checkpoint.json', bytes: 0, pieces: [] }]),
    ],
  ];
  for (const [what, word, path, change] of refusals) {
    it(`with ${what} is ${word}`, async () => {
      const code = word === 'checkpoint.version' ? 'CHECKPOINT_VERSION' : 'CHECKPOINT_CORRUPT';
      await expect(store.importFile(given(folderOf(small, change)))).rejects.toMatchObject({
        code,
        detail: path === undefined ? { code: word } : { code: word, path },
      });
    });
  }
  it('without_a_whole_checkpoint_json_is_refused', async () => {
    const cut = folderOf(small);
    cut.set('checkpoint.json', (cut.get('checkpoint.json') ?? new Uint8Array()).slice(0, -1));
    for (const files of [small, cut]) {
      await expect(store.importFile(given(files))).rejects.toMatchObject({
        detail: { code: 'checkpoint.corrupt', path: 'checkpoint.json' },
      });
    }
  });
  it('is_written_with_its_checkpoint_json_last', async () => {
    const run = crypto.randomUUID();
    await registered(store, run);
    const files = folderOf(small);
    const meta = {
      step: 12,
      totalSteps: 40,
      environment: { version: '0', adapter: '' },
      saveTotalLimit: 2,
    };
    // Even if it is not the last one stored.
    await store.save({ run, label: 'l', meta, ...streamed([...files].reverse()) });
    const folder = new StoredFolder('picked', origin.now);
    await (
      await folder.getFileHandle('checkpoint.json', { create: true })
    ).createSyncAccessHandle();
    const stale: boolean[] = [];
    origin.now.onWrite = () => stale.push(folder.entries.has('checkpoint.json'));
    await store.exportFolder(run, undefined, folder as unknown as FileSystemDirectoryHandle);
    expect(stale.slice(0, -1)).toEqual([false, false]);
    expect(origin.now.flushed.at(-1)).toBe('checkpoint.json');
    for (const [name, bytes] of files) {
      const written = folder.at(name);
      expect(
        written instanceof StoredFile && Buffer.from(written.content).equals(Buffer.from(bytes)),
      ).toBe(true);
    }
    const back = await store.importFile(
      given(
        new Map(
          [...folder.entries].map(([name, file]) => [
            name,
            file instanceof StoredFile ? file.content : new Uint8Array(),
          ]),
        ),
      ),
    );
    expect(back).toMatchObject({ step: 12 });
    expect(await keysOf(back.run)).not.toEqual(NOTHING);
  });
  it('that_is_full_is_reported_instead_of_the_storage', async () => {
    const { run } = await store.importFile(given(folderOf(small)));
    origin.now.onWrite = () => {
      throw new DOMException('the disk is full', 'QuotaExceededError');
    };
    const folder = new StoredFolder('picked', origin.now) as unknown as FileSystemDirectoryHandle;
    await expect(store.exportFolder(run, undefined, folder)).rejects.toMatchObject({
      code: 'STORAGE_FAILED',
      detail: { code: 'sink.write', reason: 'QuotaExceededError' },
    });
  });
});
