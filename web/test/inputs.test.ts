import { afterEach, describe, expect, it, vi } from 'vitest';

import {
  applyDelta,
  deriveDelta,
  extractAdapter,
  inspectData,
  inspectFiles,
  newModel,
  openModel,
  Trainer,
  readTensor,
  verifyFiles,
} from '../src/index.js';
import { toData } from '../src/page/data-inputs.js';
import { toSource, toSources } from '../src/page/inputs.js';
import type { FilesInput } from '../src/page/inputs.js';
import { openSource } from '../src/worker/sources.js';
import { fakeWorker, started } from '../src/testing/channel.js';

const ADDRESS = 'https://here/data/a.txt';
const SHAPE = {
  hiddenSize: 8,
  numHiddenLayers: 1,
  numAttentionHeads: 2,
  numKeyValueHeads: 1,
  maxPositionEmbeddings: 128,
};
const described = (request: Request): ReturnType<typeof toSource> =>
  toSource(request, 'files[0]', 'text.txt');
/** Returns a file of a folder that was picked with an input element. */
const picked = (path: string): File =>
  Object.assign(new File(['{}'], path.replace(/^.*\//, '')), { webkitRelativePath: path });

afterEach(() => vi.unstubAllGlobals());

describe('a Request', () => {
  it('is_sent_with_all_that_it_carries', async () => {
    const request = new Request(ADDRESS, {
      method: 'POST',
      headers: { 'x-key': 'k' },
      body: 'the query',
      mode: 'same-origin',
      credentials: 'include',
      cache: 'no-store',
      redirect: 'error',
      referrer: '',
      referrerPolicy: 'origin',
    });
    const fetched: RequestInit[] = [];
    vi.stubGlobal(
      'fetch',
      async (_: string, init: RequestInit) => (fetched.push(init), new Response('the reply')),
    );
    const source = await openSource(
      await described(request),
      new AbortController().signal,
      () => undefined,
    );
    expect(new TextDecoder().decode(source.read(0, source.size))).toBe('the reply');
    const sent = new Request(ADDRESS, fetched[0]);
    for (const key of [
      'method',
      'mode',
      'credentials',
      'cache',
      'redirect',
      'referrer',
      'referrerPolicy',
    ] as const)
      expect([key, sent[key]]).toEqual([key, request[key]]);
    expect([
      await sent.text(),
      sent.headers.get('x-key'),
      sent.headers.get('content-type'),
    ]).toEqual(['the query', 'k', 'text/plain;charset=UTF-8']);
    // The caller can still send it, and a run could not open it again without its secrets.
    expect([await request.text(), source.origin]).toEqual(['the query', undefined]);
    await openSource(
      await described(new Request(ADDRESS, { integrity: 'sha256-x' })),
      new AbortController().signal,
      () => undefined,
    );
    expect(fetched[1]).toMatchObject({ integrity: 'sha256-x' });
  });
  it('like_a_plain_one_is_a_plain_address', async () => {
    expect(await described(new Request(ADDRESS))).toEqual({
      kind: 'url',
      name: 'a.txt',
      url: ADDRESS,
    });
  });
  it('that_cannot_be_honoured_is_refused_by_its_property', async () => {
    const read = new Request(ADDRESS, { method: 'POST', body: 'x' });
    await read.text();
    const refused: [string, Request][] = [
      ['mode', new Request(ADDRESS, { mode: 'no-cors' })],
      ['mode', Object.defineProperty(new Request(ADDRESS), 'mode', { value: 'navigate' })],
      ['redirect', new Request(ADDRESS, { redirect: 'manual' })],
      ['method', new Request(ADDRESS, { method: 'HEAD' })],
      ['headers', new Request(ADDRESS, { headers: { range: 'bytes=0-9' } })],
      ['body', read],
    ];
    for (const [property, request] of refused)
      await expect(described(request), property).rejects.toMatchObject({
        code: 'BAD_OPTION',
        detail: { path: `files[0].${property}` },
      });
    // No browser makes a Request that may only come from the cache and goes to another origin.
    expect(() => new Request(ADDRESS, { cache: 'only-if-cached' })).toThrow(TypeError);
  });
  it('ends_every_call_with_its_signal', async () => {
    const worker = fakeWorker;
    const model = await newModel(SHAPE, { text: 'to be' }, { worker });
    const fetching = vi.fn();
    vi.stubGlobal('fetch', fetching);
    const gone = new Request(ADDRESS, { signal: AbortSignal.abort() });
    const trained = { model, steps: 1, batchSize: 1, seqLen: 128 };
    const before = started.length;
    const calls: [string, () => Promise<unknown>][] = [
      ['openModel', () => openModel(gone, { worker })],
      ['openModel, adapter', () => openModel(new File([], 'm.gguf'), { adapter: [gone], worker })],
      ['newModel', () => newModel(SHAPE, { files: gone }, { worker })],
      ['newModel, tokenizer', () => newModel(SHAPE, { text: 'a' }, { tokenizer: gone, worker })],
      ['inspectFiles', () => inspectFiles([gone], { worker })],
      ['inspectData', () => inspectData([{ files: [gone], weight: 2 }], { worker })],
      ['verifyFiles', () => verifyFiles(gone, { worker })],
      ['readTensor', () => readTensor(gone, 'a', { worker })],
      ['deriveDelta', () => deriveDelta(new File([], 'm.gguf'), gone, { worker })],
      ['applyDelta', () => applyDelta(new File([], 'm.gguf'), gone, { worker })],
      [
        'extractAdapter',
        () => extractAdapter({ tuned: gone, base: new File([], 'm.gguf'), r: 1, worker }),
      ],
      ['create', () => Trainer.create({ ...trained, data: gone })],
      [
        'create, adapter',
        () => Trainer.create({ ...trained, data: { text: 'a' }, adapter: { from: gone } }),
      ],
      ['resume', () => Trainer.resume({ run: 'r', base: gone, worker })],
      ['estimate', () => Trainer.estimate(model, { adapter: { from: gone } })],
      ['export', () => model.export({ format: 'gguf', base: gone })],
      ['rows', () => model.evaluateRows(gone, { metric: () => 1 })],
    ];
    for (const [name, call] of calls)
      await expect(call(), name).rejects.toMatchObject({ name: 'AbortError', code: 'ABORTED' });
    expect([started.length, fetching.mock.calls.length]).toEqual([before, 0]);
    await model.dispose();
  });
  it('ends_a_call_that_has_begun', async () => {
    const controller = new AbortController();
    const listening = new Promise<void>((resolve) => {
      vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
        resolve();
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError'))),
        );
      });
    });
    const opened = openModel(new Request(ADDRESS, { signal: controller.signal }), {
      worker: fakeWorker,
    });
    await listening;
    controller.abort();
    await expect(opened).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('a Response', () => {
  it('with_a_part_of_a_file_is_refused', async () => {
    for (const status of [206, 202, 404])
      await expect(
        toSource(new Response('a', { status }), 'data', 'text.txt'),
      ).rejects.toMatchObject({ detail: { code: 'source.download' } });
  });
});

describe('a page in place of a file', () => {
  const type = 'text/html; charset=utf-8';
  const text = 'GGUF'.padEnd(300);
  const page = (url: string): Response =>
    Object.defineProperties(new Response(text, { headers: { 'content-type': type } }), {
      url: { value: url },
      // Node's own Blob is none of the tests'.
      blob: { value: async () => new Blob([text], { type }) },
    });
  const served = expect.objectContaining({
    code: 'source.served',
    message:
      'a.txt was served as text/html. If that is a page of the server and not the file, check the address.',
  }) as object;
  it('is_a_warning_of_each_report', async () => {
    vi.stubGlobal('fetch', async () => page(ADDRESS));
    const worker = fakeWorker;
    const url = new URL(ADDRESS);
    const [summary] = await inspectData(url, { worker });
    expect(summary?.warnings).toEqual([served]);
    const files = await openModel(url, { worker });
    expect(files.warnings).toContainEqual(served);
    const model = await newModel(SHAPE, url, { worker });
    expect(model.warnings).toContainEqual(served);
    expect((await inspectData(url, { model })).report.warnings).toEqual([served]);
    expect((await inspectFiles(url, { worker, read: true })).warnings).toEqual([served]);
    const trainer = await Trainer.create({
      model,
      data: url,
      steps: 1,
      batchSize: 1,
      seqLen: 128,
      autosave: false,
    });
    const warnings: unknown[] = [];
    for await (const event of trainer.run()) if (event.type === 'warning') warnings.push(event);
    expect(warnings).toContainEqual(served);
    await trainer.dispose();
    await files.dispose();
  });
  it('is_detected_in_a_response_of_the_caller_and_not_by_its_name', async () => {
    const [given] = await inspectData(page(ADDRESS), { worker: fakeWorker });
    expect(given?.warnings).toEqual([served]);
    for (const name of ['a.html', 'A.HTM']) {
      const [named] = await inspectData(page(`https://here/${name}`), { worker: fakeWorker });
      expect(named?.warnings).toEqual([]);
    }
  });
});

describe('files of one name', () => {
  const twice = (expected: string): object => ({
    code: 'BAD_OPTION',
    detail: { code: 'source.duplicate', path: 'files' },
    message: `2 files are called config.json: ${expected}. Give the one that is meant.`,
  });
  const config = (): File => new File(['{}'], 'config.json');
  const folder = (name: string): FileSystemDirectoryHandle =>
    ({
      kind: 'directory',
      name,
      async *entries() {
        yield ['config.json', { kind: 'file' }];
      },
      getFileHandle: async () => ({
        kind: 'file',
        name: 'config.json',
        getFile: async () => config(),
      }),
    }) as unknown as FileSystemDirectoryHandle;
  const reader = (name: string): FilesInput => ({ name, size: 2, read: () => new Uint8Array(2) });

  it.each<[string, () => FilesInput, string]>([
    [
      'in_a_list',
      () => [config(), new File([], 'model.safetensors'), config()],
      'files[0], files[2]',
    ],
    [
      'in_a_folder_with_subfolders',
      () => [picked('m/config.json'), picked('m/old/config.json')],
      'm/config.json, m/old/config.json',
    ],
    ['in_two_folders', () => [folder('a'), folder('b')], 'a/config.json, b/config.json'],
    [
      'at_two_addresses',
      () => [new URL('https://a/config.json'), new Request('https://b/config.json')],
      'https://a/config.json, https://b/config.json',
    ],
    [
      'under_two_paths',
      () => [reader('a/config.json') as File, reader('b\\config.json') as File],
      'files[0], files[1]',
    ],
  ])('%s_are_refused_by_their_places', async (_, files, expected) => {
    await expect(openModel(files())).rejects.toMatchObject(twice(expected));
    await expect(inspectFiles(files())).rejects.toMatchObject(twice(expected));
  });
  it('are_refused_wherever_files_of_a_model_are_given', async () => {
    const both = [config(), config()];
    const code = { detail: { code: 'source.duplicate' } };
    const one = new File([], 'm.gguf');
    await expect(openModel(one, { adapter: both })).rejects.toMatchObject(code);
    await expect(openModel(one, { mergeAdapter: both })).rejects.toMatchObject(code);
    await expect(inspectFiles(one, { mergeAdapter: both })).rejects.toMatchObject(code);
    await expect(verifyFiles(both)).rejects.toMatchObject(code);
    await expect(extractAdapter({ tuned: both, base: one, r: 1 })).rejects.toMatchObject(code);
    await expect(Trainer.resume({ run: 'r', base: both })).rejects.toMatchObject(code);
  });
  it('are_two_files_of_data_and_two_parts_of_a_model', async () => {
    const { spec } = await toData([new File(['a'], 'a.txt'), new File(['b'], 'a.txt')], undefined);
    expect(spec.files).toHaveLength(2);
    expect(await toSources([new Blob(['GGUF']), new Blob(['GGUF'])], 'files')).toHaveLength(2);
    expect(
      await toSources([picked('m/.DS_Store'), picked('m/sub/.DS_Store')], 'files'),
    ).toHaveLength(2);
  });
});
